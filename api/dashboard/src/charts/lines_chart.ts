// Lines over a number of things, with bands: speed-up over workers, time over servers, error over time.

import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from 'echarts';
import type { Palette } from '../theme';
import { axis, BOUNDS, TOOLTIP, type ChartSpec } from './chart';

export interface LinePoint {
  readonly x: number | string;
  readonly y: number;
  readonly low?: number;
  readonly high?: number;
  readonly tip: () => HTMLElement;
}

export interface Line {
  readonly name: string;
  readonly points: readonly LinePoint[];
  readonly color: (colors: Palette) => string;
  readonly style?: 'solid' | 'dashed' | 'none';
  readonly strong?: boolean;
  readonly silent?: boolean;
  readonly symbol?: string;
}

export interface Lines {
  readonly x: { readonly name: string; readonly type: 'log' | 'time' | 'category' | 'value'; readonly format?: (value: number) => string; readonly min?: number; readonly max?: number; readonly categories?: readonly string[] };
  readonly y: { readonly name: string; readonly type?: 'log' | 'value'; readonly format: (value: number) => string; readonly min?: number; readonly max?: number };
  readonly lines: readonly Line[];
  /** A line across, such as no error at all. */
  readonly level?: { readonly at: number; readonly color: (colors: Palette) => string; readonly dashed?: boolean }[];
  /** A legend inside the chart; it is a picture only. */
  readonly legend?: boolean;
  /** Names of lines that are not drawn. */
  readonly hidden?: ReadonlySet<string>;
  onClick?(line: number, point: number): void;
}

export function linesChart(key: string, data: Lines): ChartSpec {
  return {
    key,
    data,
    option: (colors) => ({
      grid: { ...BOUNDS, left: 6, right: 22, top: data.legend ? 44 : 14, bottom: 6 },
      legend: data.legend ? { type: 'scroll', selectedMode: false, top: 4, icon: 'circle', itemWidth: 10, itemHeight: 10, padding: [6, 4], textStyle: { color: colors.muted, fontSize: 12 }, pageIconColor: colors.muted, pageTextStyle: { color: colors.muted }, data: data.lines.filter((line) => !line.silent).map((line) => line.name) } : undefined,
      tooltip: TOOLTIP(colors),
      xAxis: {
        type: data.x.type, logBase: 2, min: data.x.min, max: data.x.max, data: data.x.categories,
        ...axis(colors, data.x.name, { nameGap: 26, splitLine: { show: false }, axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true, ...(data.x.format ? { formatter: data.x.format } : {}) } }),
      },
      yAxis: {
        type: data.y.type ?? 'value', logBase: data.y.type === 'log' ? 2 : undefined, min: data.y.min, max: data.y.max,
        ...axis(colors, data.y.name, { nameGap: 14, axisLabel: { color: colors.muted, fontSize: 11.5, formatter: data.y.format } }),
      },
      series: data.lines.flatMap((line, index) => (data.hidden?.has(line.name) ? [] : seriesOf(line, index, data, colors))),
    } as never),
    onClick: ({ seriesId, dataIndex }) => {
      const line = Number(seriesId?.replace('line-', ''));
      if (Number.isInteger(line)) data.onClick?.(line, dataIndex);
    },
  };
}

function seriesOf(line: Line, index: number, data: Lines, colors: Palette): object[] {
  const color = line.color(colors);
  const values = line.points.map((point) => [point.x, point.y]);
  const banded = line.points.some((point) => point.low !== undefined);
  const level = index === 0 ? data.level : undefined;
  return [
    ...(banded ? [{
      type: 'custom', silent: true, z: 1, name: line.name, itemStyle: { color }, data: [values[0]], clip: true, animation: false,
      renderItem: (_: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
        const at = (pick: 'low' | 'high') => line.points.map((point) => api.coord([point.x, point[pick] ?? point.y] as never));
        return { type: 'polygon', shape: { points: [...at('high'), ...at('low').reverse()] }, style: { fill: color, opacity: line.strong ? 0.2 : 0.09 } };
      },
    }] : []),
    {
      type: line.style === 'none' ? 'scatter' : 'line', id: `line-${index}`, name: line.name, data: values, silent: line.silent, cursor: data.onClick ? 'pointer' : 'default',
      z: line.strong ? 5 : 3, symbol: line.silent ? 'none' : (line.symbol ?? 'circle'), symbolSize: line.style === 'none' ? 9 : line.strong ? 8 : 6, showAllSymbol: true,
      lineStyle: { color, width: line.strong ? 3 : 1.6, type: line.style === 'dashed' ? 'dashed' : 'solid', opacity: line.silent ? 0.7 : 1 },
      itemStyle: { color, borderColor: colors.surface, borderWidth: line.style === 'none' ? 1 : 0 },
      tooltip: { formatter: (item: { dataIndex: number }) => line.points[item.dataIndex]!.tip() },
      emphasis: { focus: line.silent ? 'none' : 'series' },
      markLine: level ? {
        symbol: 'none', silent: true, precision: 15, animation: false, label: { show: false },
        data: level.map((one) => ({ yAxis: one.at, lineStyle: { color: one.color(colors), type: one.dashed ? 'dashed' : 'solid', width: 1.2 } })),
      } : undefined,
    },
  ];
}
