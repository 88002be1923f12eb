// Measured points and the fitted line on log axes, its band and breaks, residuals below.

import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from 'echarts';
import type { FitCurve } from '../api/types';
import { percent, signedPercent, size, time } from '../format';
import type { Palette } from '../theme';
import { axis, tip, TOOLTIP, type ChartSpec } from './chart';

export interface FitSeries {
  readonly name: string;
  readonly curve: FitCurve;
}

/** Residuals beyond it are drawn at the edge. */
export const WIDEST_RESIDUAL = 2;

type Range = [number, number];
type Api = CustomSeriesRenderItemAPI;

const atMost = (value: number, base: number): number => Math.pow(base, Math.floor(Math.log(value) / Math.log(base) + 1e-9));
const atLeast = (value: number, base: number): number => Math.pow(base, Math.ceil(Math.log(value) / Math.log(base) - 1e-9));

/** The fitted cost beyond what was measured, where the service draws no line. */
function extrapolated(curve: FitCurve, bytes: number): number {
  let piece = curve.pieces[0];
  for (const next of curve.pieces) if (next.from_bytes <= bytes) piece = next;
  return piece ? piece.alpha_seconds + piece.beta_seconds_per_byte * bytes : 0;
}

/** A factor of 4 beyond the sizes on both sides, and whole decades of time. */
function ranges(all: readonly FitSeries[]): { x: Range; y: Range } {
  const from = Math.min(...all.map((one) => Math.max(1, one.curve.smallest_bytes)));
  const to = Math.max(...all.map((one) => Math.max(16, one.curve.largest_bytes)));
  const x: Range = [atMost(from, 4) / 4, atLeast(to, 4) * 4];
  const times = all
    .flatMap((one) => [...one.curve.points.map((point) => point.median_seconds), ...one.curve.line.map((at) => at.seconds), ...x.map((bytes) => extrapolated(one.curve, bytes))])
    .filter((seconds) => seconds > 0);
  return { x, y: [atMost(Math.min(...times), 10), atLeast(Math.max(...times), 10)] };
}

/** Sizes to be written at the axis. */
function powersBetween([from, to]: Range, base: number): number[] {
  const sizes = [];
  for (let bytes = atLeast(from, base); bytes <= to * 1.001; bytes *= base) sizes.push(bytes);
  return sizes;
}

export function fitChart(key: string, all: readonly FitSeries[]): ChartSpec {
  return {
    key,
    data: all,
    option: (colors, width) => {
      const { x, y } = ranges(all);
      const worst = Math.max(0.1, ...all.flatMap((one) => one.curve.points.map((point) => Math.abs(point.residual_ratio))));
      const limit = Math.min(WIDEST_RESIDUAL, Math.ceil(worst * 10) / 10);
      const left = width < 500 ? 62 : 78;
      const axisX = { type: 'log', logBase: 4, min: x[0], max: x[1] };
      const sizes = powersBetween(x, width < 500 ? 64 : 16);
      const labels = (formatter: (value: number) => string): object => ({ axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true, formatter } });
      return {
        grid: [{ left, right: 34, top: 34, bottom: '36%' }, { left, right: 34, top: '70%', bottom: 46 }],
        legend: { selectedMode: false, top: 0, left: left - 4, icon: 'circle', itemWidth: 10, textStyle: { color: colors.muted }, data: all.map((one) => one.name) },
        tooltip: TOOLTIP(colors),
        xAxis: [
          { ...axisX, gridIndex: 0, ...axis(colors, '', { axisLabel: { show: false }, axisTick: { show: false, customValues: sizes } }) },
          { ...axisX, gridIndex: 1, ...axis(colors, 'Message size', { nameGap: 28, axisTick: { customValues: sizes }, axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true, customValues: sizes, formatter: (bytes: number) => size(Math.round(bytes)) } }) },
        ],
        yAxis: [
          { type: 'log', gridIndex: 0, min: y[0], max: y[1], ...axis(colors, 'Time', { nameGap: left - 20, ...labels(time) }) },
          { type: 'value', gridIndex: 1, min: -limit, max: limit, interval: limit, ...axis(colors, 'Residual', { nameGap: left - 20, ...labels((ratio) => percent(ratio, 0)) }) },
        ],
        series: all.flatMap((one, index) => seriesOf(one, colors, index, x, y, limit)),
      } as never;
    },
  };
}

function seriesOf({ name, curve }: FitSeries, colors: Palette, index: number, x: Range, y: Range, limit: number): object[] {
  const color = colors.series[index]!;
  const clamp = (seconds: number): number => Math.min(y[1], Math.max(y[0], seconds));
  const spread = (from: number, to: number): number[][] =>
    from < to ? Array.from({ length: 24 }, (_, at) => from * Math.pow(to / from, at / 23)).map((bytes) => [bytes, clamp(extrapolated(curve, bytes))]) : [];
  const inside = curve.line.filter((at) => at.size_bytes >= curve.smallest_bytes && at.size_bytes <= curve.largest_bytes);
  const symbol = { symbol: index === 0 ? 'circle' : 'diamond', itemStyle: { color, borderColor: colors.surface, borderWidth: 1 } };
  const outside = { type: 'line', showSymbol: false, silent: true, z: 2, lineStyle: { color, width: 1.5, type: [3, 4], opacity: 0.75 } };
  const tooltip = {
    formatter: (item: { dataIndex: number }): HTMLElement => {
      const point = curve.points[item.dataIndex]!;
      return tip(size(point.size_bytes), [
        ['measured', time(point.median_seconds)], ['95 % interval', `± ${time(point.half_width_seconds)}`], ['fitted', time(point.fitted_seconds)],
        ['residual', signedPercent(point.residual_ratio)], ['repetitions', String(point.repetitions)],
      ], name);
    },
  };
  const measured = curve.points.map((point) => [point.size_bytes, clamp(point.median_seconds)]);
  return [
    { type: 'custom', silent: true, z: 1, data: [[x[0], y[0]]], renderItem: (_: CustomSeriesRenderItemParams, api: Api) => drawBand(inside.map((at) => [at.size_bytes, clamp(at.low_seconds), clamp(at.high_seconds)]), api, color) },
    { type: 'line', name, showSymbol: false, silent: true, z: 3, data: inside.map((at) => [at.size_bytes, clamp(at.seconds)]), lineStyle: { color, width: 2 }, itemStyle: { color }, markLine: breaks(curve, colors) },
    { ...outside, data: spread(x[0], curve.smallest_bytes) },
    { ...outside, data: spread(curve.largest_bytes, x[1]) },
    { type: 'custom', silent: true, z: 3, data: measured, renderItem: (item: CustomSeriesRenderItemParams, api: Api) => drawWhisker(curve.points[item.dataIndex]!, clamp, api, color) },
    { type: 'scatter', name, z: 4, large: false, data: measured, ...symbol, symbolSize: index === 0 ? 7 : 9, tooltip },
    {
      type: 'scatter', name, z: 4, xAxisIndex: 1, yAxisIndex: 1, ...symbol, symbolSize: 6, tooltip,
      data: curve.points.map((point) => [point.size_bytes, Math.min(limit, Math.max(-limit, point.residual_ratio))]),
      markLine: { symbol: 'none', silent: true, precision: 15, animation: false, label: { show: false }, lineStyle: { color: colors.muted, type: 'solid', width: 1 }, data: [{ yAxis: 0 }] },
    },
  ];
}

/** Where one piece of the cost ends and the next begins. */
function breaks(curve: FitCurve, colors: Palette): object | undefined {
  if (curve.pieces.length < 2) return undefined;
  return {
    symbol: 'none', silent: true, precision: 15, animation: false, lineStyle: { color: colors.muted, type: 'dotted', width: 1 },
    label: { formatter: (mark: { value: number }) => size(Math.round(mark.value)), color: colors.muted, fontSize: 11, position: 'insideEndTop' },
    data: curve.pieces.slice(1).map((piece) => ({ xAxis: piece.from_bytes })),
  };
}

function drawBand(band: readonly number[][], api: Api, color: string): object {
  const upper = band.map(([bytes, , high]) => api.coord([bytes!, high!]));
  const lower = band.map(([bytes, low]) => api.coord([bytes!, low!])).reverse();
  return { type: 'polygon', shape: { points: [...upper, ...lower] }, style: { fill: color, opacity: 0.17 } };
}

function drawWhisker(point: FitCurve['points'][number], clamp: (seconds: number) => number, api: Api, color: string): object {
  const [x = 0, top = 0] = api.coord([point.size_bytes, clamp(point.median_seconds + point.half_width_seconds)]);
  const [, bottom = 0] = api.coord([point.size_bytes, clamp(point.median_seconds - point.half_width_seconds)]);
  return { type: 'line', shape: { x1: x, y1: top, x2: x, y2: bottom }, style: { stroke: color, lineWidth: 1.2, opacity: 0.7 } };
}
