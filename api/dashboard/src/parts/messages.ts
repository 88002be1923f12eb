// Which tensors are fused, which are cut: every message a row, every tensor a place along the model.

import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from 'echarts';
import { html, type TemplateResult } from 'lit-html';
import type { Messages } from '../api/types';
import { axis, tip, TOOLTIP, type ChartSpec } from '../charts/chart';
import { count, plural, size, sizeStep } from '../format';
import { memo } from '../page';
import type { Palette } from '../theme';
import { chartFigure } from './figure';

type Row = Messages['rows'][number];
type Piece = Row['pieces'][number];

interface Placed {
  readonly row: Row;
  readonly piece: Piece;
  readonly from: number;
  readonly to: number;
}

function kindOf(row: Row, piece: Piece): 'cut' | 'fused' | 'single' {
  if (!piece.whole) return 'cut';
  return row.pieces.length > 1 ? 'fused' : 'single';
}

/** Tensors side by side in the model's order; pieces where they lie in theirs. */
function place(messages: Messages): { placed: Placed[]; total: number } {
  const sizes = new Map<number, number>();
  for (const row of messages.rows)
    for (const piece of row.pieces) sizes.set(piece.tensor, Math.max(sizes.get(piece.tensor) ?? 0, piece.offset_bytes + piece.length_bytes));
  const starts = new Map<number, number>();
  let total = 0;
  for (const tensor of [...sizes.keys()].sort((a, b) => a - b)) {
    starts.set(tensor, total);
    total += sizes.get(tensor)!;
  }
  const placed = messages.rows.flatMap((row) => row.pieces.map((piece): Placed => {
    const from = starts.get(piece.tensor)! + piece.offset_bytes;
    return { row, piece, from, to: from + piece.length_bytes };
  }));
  return { placed, total };
}

function messagesChart(key: string, messages: Messages, noun: 'Message' | 'Pull' = 'Message'): ChartSpec {
  const { placed, total } = place(messages);
  const color = (one: Placed, colors: Palette): string => ({ fused: colors.series[0]!, cut: colors.series[1]!, single: colors.series[8]! })[kindOf(one.row, one.piece)];
  return {
    key,
    data: messages,
    // ECharts places this axis wrongly by itself: its ends lie between two messages.
    option: (colors) => ({
      grid: { left: 62, right: 22, top: 10, bottom: 46 },
      tooltip: {
        ...TOOLTIP(colors),
        formatter: (item: { dataIndex: number }) => {
          const { row, piece } = placed[item.dataIndex]!;
          return tip(piece.name, [['layer', piece.layer], ['piece', piece.whole ? 'the whole tensor' : `${size(piece.offset_bytes)} + ${size(piece.length_bytes)}`], ['size', size(piece.length_bytes)]],
            `${noun.toLowerCase()} ${row.index}: ${size(row.bytes)} in ${plural(row.pieces.length, 'piece')}`);
        },
      },
      xAxis: { type: 'value', min: 0, max: total, interval: sizeStep(total), ...axis(colors, 'Place in the model, first layer left', { nameGap: 26, axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true, showMaxLabel: false, formatter: (bytes: number) => size(Math.round(bytes)) } }) },
      yAxis: { type: 'value', inverse: true, min: -0.5, max: messages.rows.length - 0.5, minInterval: 1, ...axis(colors, noun, { nameGap: 40, axisTick: { show: false }, splitLine: { show: false }, axisLabel: { color: colors.muted, fontSize: 11.5, formatter: (value: number) => (Number.isInteger(value) ? String(value) : '') } }) },
      series: [{
        type: 'custom', animation: false, data: placed.map((one) => [one.from, one.row.index, one.to]), encode: { x: [0, 2], y: 1 },
        renderItem: (item: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
          const one = placed[item.dataIndex]!;
          const [x1 = 0, y = 0] = api.coord([one.from, one.row.index]);
          const [x2 = 0] = api.coord([one.to, one.row.index]);
          const lot = Math.abs((api.size!([0, 1]) as number[])[1]!);
          const height = Math.max(1.5, lot * 0.8);
          return { type: 'rect', shape: { x: x1, y: y - height / 2, width: Math.max(1, x2 - x1 - 0.4), height }, style: { fill: color(one, colors) }, emphasis: { style: { stroke: colors.text, lineWidth: 1.5 } } };
        },
      }],
    } as never),
  };
}

const TENSORS_COLUMN = { title: 'Tensors', key: 'tensors', value: (row: Row): string => row.pieces.map((piece) => (piece.whole ? piece.name : `${piece.name} [${piece.offset_bytes}, ${piece.offset_bytes + piece.length_bytes})`)).join(' ') };

export function messagesFigure(owner: object, key: string, messages: Messages, title: string): TemplateResult {
  const fused = messages.rows.filter((row) => row.pieces.length > 1).length;
  const cut = new Set(messages.rows.flatMap((row) => row.pieces.filter((piece) => !piece.whole).map((piece) => piece.tensor))).size;
  const windows = messages.rows.some((row) => row.window_bytes !== undefined);
  const order = windows ? `${messages.order === 'priority' ? 'most urgent first' : 'in the listed order'}, each with a window of its own` : messages.order === 'priority' ? `most urgent first, ${messages.credit_bytes > 0 ? `at most ${size(messages.credit_bytes)} in flight` : 'one after another'}` : 'in the listed order';
  const barrier = messages.barrier === 'full' ? 'the next forward pass waits for all' : 'each layer waits for its own';
  const text = `${plural(messages.rows.length, 'message')}, ${fused} fused, ${plural(cut, 'tensor')} cut; ${order}; ${barrier}.`;
  return chartFigure<Row>({
    id: 'messages', title: `Messages of ${title}`, text, size: messages.rows.length > 24 ? 'tall' : '',
    spoken: `Map of messages: ${text}`,
    chart: memo(owner, `messages-${key}`, () => messagesChart(`messages-${key}`, messages)),
    legend: html`<div class="legend" aria-hidden="true"><span><i class="swatch fused"></i>fused: several tensors travel as one</span><span><i class="swatch cut"></i>cut: part of a tensor</span><span><i class="swatch single"></i>a tensor on its own</span></div>`,
    rows: messages.rows,
    columns: [
      { title: 'Message', key: 'index', numeric: true, value: (row) => row.index },
      { title: 'Size', key: 'bytes', numeric: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
      { title: 'Priority', key: 'priority', numeric: true, value: (row) => row.priority },
      ...(windows ? [{ title: 'Window', key: 'window', numeric: true, value: (row: Row) => row.window_bytes ?? 0, show: (row: Row) => size(row.window_bytes ?? 0) }] : []),
      ...(messages.rows.some((row) => row.server !== undefined) ? [{ title: 'Server', key: 'server', numeric: true, value: (row: Row) => row.server ?? 0 }] : []),
      { title: 'Pieces', key: 'pieces', numeric: true, value: (row) => row.pieces.length, show: (row) => count(row.pieces.length) },
      TENSORS_COLUMN,
    ],
    json: messages,
  });
}

/** The same of what comes back from the servers, where that is not what was pushed. */
export function pullsFigure(owner: object, key: string, messages: Messages, title: string): TemplateResult {
  const pulled: Messages = { ...messages, rows: messages.pulls.map((pull) => ({ ...pull, priority: pull.index })) };
  const fused = pulled.rows.filter((row) => row.pieces.length > 1).length;
  const text = `${plural(pulled.rows.length, 'pull')}, ${fused} fused: what comes back from the servers is cut otherwise than what was pushed.`;
  return chartFigure<Row>({
    id: 'pulls', title: `Pulls of ${title}`, text, size: pulled.rows.length > 24 ? 'tall' : '',
    spoken: `Map of pulls: ${text}`,
    chart: memo(owner, `pulls-${key}`, () => messagesChart(`pulls-${key}`, pulled, 'Pull')),
    rows: pulled.rows,
    columns: [
      { title: 'Pull', key: 'index', numeric: true, value: (row) => row.index },
      { title: 'Size', key: 'bytes', numeric: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
      TENSORS_COLUMN,
    ],
    json: messages.pulls,
  });
}
