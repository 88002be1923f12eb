// Grids of coloured cells: a link matrix, a map of winners.

import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from 'echarts';
import type { Palette } from '../theme';
import { axis, BOUNDS, TOOLTIP, type ChartSpec } from './chart';

export interface Cell {
  readonly column: number;
  readonly row: number;
  readonly color: (colors: Palette) => string;
  /** Written into the cell where there is room. */
  readonly text?: string;
  readonly outlined?: boolean;
  /** Of the outline; the text's colour if left out. */
  readonly outline?: (colors: Palette) => string;
  readonly tip: () => HTMLElement;
}

export interface Cells {
  readonly columns: readonly string[];
  readonly rows: readonly string[];
  readonly columnName: string;
  readonly rowName: string;
  readonly cells: readonly Cell[];
  onClick?(cell: Cell): void;
}

/** Between the colours of the heat scale; 0 is the first, 1 the last. */
export function heatColor(colors: Palette, ratio: number): string {
  const at = Math.min(1, Math.max(0, ratio)) * (colors.heat.length - 1);
  const index = Math.min(colors.heat.length - 2, Math.floor(at));
  return mix(colors.heat[index]!, colors.heat[index + 1]!, at - index);
}

function channels(color: string): number[] {
  return [1, 3, 5].map((from) => parseInt(color.slice(from, from + 2), 16));
}

function mix(from: string, to: string, ratio: number): string {
  const [a, b] = [channels(from), channels(to)];
  return '#' + a.map((value, index) => Math.round(value + (b[index]! - value) * ratio).toString(16).padStart(2, '0')).join('');
}

/** Black or white, whichever is easier to read on the colour. */
export function inkOn(color: string): string {
  const [red = 0, green = 0, blue = 0] = channels(color).map((value) => {
    const ratio = value / 255;
    return ratio <= 0.04045 ? ratio / 12.92 : ((ratio + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.3 ? '#10151c' : '#ffffff';
}

export function cellsChart(key: string, data: Cells): ChartSpec {
  return {
    key,
    data,
    option: (colors, width) => ({
      grid: { ...BOUNDS, left: 6, right: 16, top: 10, bottom: 6 },
      tooltip: { ...TOOLTIP(colors), formatter: (item: unknown) => data.cells[(item as { dataIndex: number }).dataIndex]!.tip() },
      xAxis: { type: 'category', data: [...data.columns], ...axis(colors, data.columnName, { nameGap: 26, splitLine: { show: false }, axisTick: { show: false } }) },
      yAxis: { type: 'category', data: [...data.rows], ...axis(colors, data.rowName, { nameGap: 14, splitLine: { show: false }, axisTick: { show: false }, axisLabel: { color: colors.muted, fontSize: 11.5, width: 100, overflow: 'truncate' } }) },
      series: [{
        type: 'custom',
        data: data.cells.map((cell) => [cell.column, cell.row]),
        renderItem: (_: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => drawCell(data.cells, _.dataIndex, api, colors, width),
      }],
    } as never),
    onClick: ({ dataIndex }) => {
      const cell = data.cells[dataIndex];
      if (cell) data.onClick?.(cell);
    },
  };
}

function drawCell(cells: readonly Cell[], index: number, api: CustomSeriesRenderItemAPI, colors: Palette, width: number): object {
  const cell = cells[index]!;
  const [x, y] = api.coord([cell.column, cell.row]) as [number, number];
  const [w, h] = api.size!([1, 1]) as [number, number];
  const gap = w > 14 && h > 14 ? 2 : 0.5;
  const color = cell.color(colors);
  const children: object[] = [{
    type: 'rect',
    shape: { x: x - w / 2 + gap / 2, y: y - h / 2 + gap / 2, width: w - gap, height: h - gap, r: gap > 1 ? 4 : 0 },
    style: { fill: color, stroke: cell.outlined ? (cell.outline?.(colors) ?? colors.text) : 'none', lineWidth: cell.outlined ? 2.5 : 0 },
    emphasis: { style: { stroke: colors.accent, lineWidth: 2 } },
  }];
  if (cell.text && w > 46 && h > 20 && width > 380) {
    children.push({ type: 'text', silent: true, style: { x, y, text: cell.text, fill: inkOn(color), align: 'center', verticalAlign: 'middle', fontSize: Math.min(12.5, w / 6), width: w - 8, overflow: 'truncate' } });
  }
  return { type: 'group', children };
}
