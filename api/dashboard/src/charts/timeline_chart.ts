// One iteration: what computes, what each message does, and when nothing computes because gradients are awaited.

import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from 'echarts';
import { percent, time, timeUnit } from '../format';
import type { Palette } from '../theme';
import { axis, tip, TOOLTIP, type ChartSpec } from './chart';

export type SpanKind = 'backward' | 'forward' | 'reduce' | 'distribute' | 'both' | 'exposed';

export interface Span {
  readonly lane: string;
  readonly kind: SpanKind;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** Which of the spans that share its lane at a time: 0 is the top. */
  readonly row: number;
  /** How many share it. */
  readonly rows: number;
  readonly details: readonly (readonly [string, string])[];
}

/** Spans of one lane that overlap are put beside each other, as many as fit. */
export function packed(spans: readonly Omit<Span, 'row' | 'rows'>[], most = 6): Span[] {
  const ends: number[] = [];
  const rows = [...spans].sort((a, b) => a.start - b.start || a.end - b.end).map((span) => {
    let row = ends.findIndex((end) => end <= span.start + 1e-12);
    if (row < 0) row = ends.length < most ? ends.length : ends.indexOf(Math.min(...ends));
    ends[row] = Math.max(ends[row] ?? 0, span.end);
    return { ...span, row };
  });
  return rows.map((span) => ({ ...span, rows: Math.max(1, ends.length) }));
}

function colorOf(span: Span, colors: Palette): string {
  const table: Record<SpanKind, string> = { backward: colors.compute, forward: colors.compute, reduce: colors.reduce, distribute: colors.distribute, both: colors.reduce, exposed: colors.exposed };
  return table[span.kind];
}

export function timelineChart(key: string, spans: readonly Span[], lanes: readonly string[], end: number): ChartSpec {
  return {
    key,
    data: spans,
    zooms: true,
    option: (colors, width) => {
      const { scale, unit } = timeUnit(end);
      const left = width < 500 ? 84 : 132;
      const digits = (seconds: number): string => String(Number((seconds / scale).toPrecision(5)));
      return {
        grid: { left, right: 20, top: 8, bottom: 82 },
        tooltip: {
          ...TOOLTIP(colors),
          formatter: (item: { dataIndex: number }) => {
            const span = spans[item.dataIndex];
            if (!span) return ''; // zoomed away under a pointer that rests
            return tip(span.name, [['from', time(span.start)], ['to', time(span.end)], ['for', `${time(span.end - span.start)} (${percent((span.end - span.start) / end)})`], ...span.details]);
          },
        },
        dataZoom: [
          // A finger on it scrolls the page; there the bar below and the buttons move it.
          { type: 'inside', disabled: window.matchMedia('(pointer: coarse)').matches, filterMode: 'weakFilter', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true, moveOnMouseWheel: false },
          { type: 'slider', filterMode: 'weakFilter', height: 22, bottom: 10, borderColor: colors.line, fillerColor: colors.accent + '22', handleStyle: { color: colors.surface, borderColor: colors.accent }, moveHandleSize: 0, showDataShadow: false, textStyle: { color: colors.muted, fontSize: 11 }, labelFormatter: (seconds: number) => time(seconds), backgroundColor: 'transparent', dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } },
        ],
        xAxis: { type: 'value', min: 0, max: end, ...axis(colors, `Time from the start of the backward pass (${unit})`, { nameGap: 24, axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true, showMaxLabel: false, formatter: digits } }) },
        yAxis: { type: 'category', inverse: true, data: [...lanes], ...axis(colors, '', { axisTick: { show: false }, splitLine: { show: true, lineStyle: { color: colors.faint } }, axisLabel: { color: colors.text, fontSize: 12, interval: 0, width: left - 14, overflow: 'break', lineHeight: 14 } }) },
        series: [{
          type: 'custom', encode: { x: [1, 2], y: 0 }, animation: false, clip: true,
          data: spans.map((span) => [lanes.indexOf(span.lane), span.start, span.end]),
          renderItem: (item: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => drawSpan(spans[item.dataIndex]!, item, api, colors),
        }],
      } as never;
    },
  };
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

function drawSpan(span: Span, item: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI, colors: Palette): object | undefined {
  const lane = api.value(0);
  const [x1 = 0, middle = 0] = api.coord([span.start, lane]);
  const [x2 = 0] = api.coord([span.end, lane]);
  const area = item.coordSys as unknown as Area;
  const from = Math.max(x1, area.x);
  const to = Math.min(x2, area.x + area.width);
  if (to < area.x || from > area.x + area.width || to < from) return undefined;
  const lot = (api.size!([0, 1]) as number[])[1]!;
  if (span.kind === 'exposed') {
    return { type: 'rect', z2: -1, shape: { x: from, y: middle - lot / 2, width: Math.max(1, to - from), height: lot }, style: { fill: colors.exposed, opacity: 0.2 } };
  }
  const full = lot * 0.78;
  const height = full / span.rows;
  const top = middle - full / 2 + span.row * height;
  const gap = to - from > 4 ? 0.6 : 0;
  const color = colorOf(span, colors);
  const wide = to - from;
  return {
    type: 'group',
    children: [
      {
        type: 'rect',
        shape: { x: from + gap / 2, y: top, width: Math.max(0.6, wide - gap), height: Math.max(1.5, height - (span.rows > 1 ? 1 : 0)), r: wide > 8 ? 2 : 0 },
        style: { fill: color, opacity: span.kind === 'forward' ? 0.62 : 0.95 },
        emphasis: { style: { stroke: colors.text, lineWidth: 1.5 } },
      },
      ...(wide > 60 && height > 14 ? [{ type: 'text', silent: true, style: { x: from + 5, y: top + height / 2 - 0.5, text: span.name, fill: colors.surface, fontSize: 11, verticalAlign: 'middle', width: wide - 10, overflow: 'truncate' } }] : []),
    ],
  };
}
