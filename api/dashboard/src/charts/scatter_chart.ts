// Predicted against measured, both on log axes; on the diagonal the prediction was right.

import { signedPercent, time } from '../format';
import type { Palette } from '../theme';
import { axis, BOUNDS, tip, TOOLTIP, type ChartSpec } from './chart';

export interface Pair {
  readonly id: number;
  readonly group: string;
  readonly name: string;
  readonly predicted: number;
  readonly measured: number;
  readonly low: number;
  readonly high: number;
}

export function scatterChart(key: string, pairs: readonly Pair[], onClick: (id: number) => void): ChartSpec {
  const groups = [...new Set(pairs.map((pair) => pair.group))];
  return {
    key,
    data: pairs,
    option: (colors) => {
      const all = pairs.flatMap((pair) => [pair.predicted, pair.measured]);
      const from = Math.min(...all) * 0.85;
      const to = Math.max(...all) * 1.18;
      const ends = (ratio: number): number[][] => [[from, from * ratio], [to, to * ratio]];
      const ticks = oneTwoFive(from, to);
      const scaleAxis = { type: 'log', min: from, max: to };
      const label = { axisTick: { customValues: ticks, lineStyle: { color: colors.line } }, splitLine: { show: false }, axisLabel: { customValues: ticks, color: colors.muted, fontSize: 11.5, hideOverlap: true, formatter: (seconds: number) => time(seconds) } };
      const guide = (name: string, ratio: number, type: string, opacity: number): object => ({ type: 'line', name, silent: true, showSymbol: false, data: ends(ratio), lineStyle: { color: colors.muted, type, width: 1.2, opacity } });
      return {
        grid: { ...BOUNDS, left: 6, right: 22, top: groups.length > 1 ? 40 : 14, bottom: 6 },
        legend: groups.length > 1 ? { type: 'scroll', selectedMode: false, top: 4, icon: 'circle', textStyle: { color: colors.muted }, data: groups } : undefined,
        tooltip: TOOLTIP(colors),
        xAxis: { ...scaleAxis, ...axis(colors, 'Predicted', { nameGap: 26, ...label }) },
        yAxis: { ...scaleAxis, ...axis(colors, 'Measured', { nameGap: 14, ...label }) },
        series: [
          guide('exact', 1, 'solid', 0.9), guide('+10 %', 1.1, 'dashed', 0.5), guide('-10 %', 1 / 1.1, 'dashed', 0.5),
          ...groups.map((group, index) => groupSeries(group, pairs.filter((pair) => pair.group === group), colors, index)),
        ],
      } as never;
    },
    onClick: ({ data }) => {
      const id = (data as { id?: number } | undefined)?.id;
      if (id !== undefined) onClick(id);
    },
  };
}

/** 1, 2 and 5 times a power of ten between the two. */
function oneTwoFive(from: number, to: number): number[] {
  const values = [];
  for (let decade = Math.floor(Math.log10(from)); Math.pow(10, decade) <= to; ++decade)
    for (const digit of [1, 2, 5]) values.push(Number((digit * Math.pow(10, decade)).toPrecision(1)));
  return values.filter((value) => value >= from && value <= to);
}

function groupSeries(name: string, pairs: readonly Pair[], colors: Palette, index: number): object {
  const color = colors.series[index % colors.series.length];
  return {
    type: 'scatter', name, symbolSize: 11, cursor: 'pointer', itemStyle: { color, opacity: 0.88, borderColor: colors.surface, borderWidth: 1 },
    data: pairs.map((pair) => ({ id: pair.id, value: [pair.predicted, pair.measured] })),
    tooltip: {
      formatter: (item: { dataIndex: number }) => {
        const pair = pairs[item.dataIndex]!;
        return tip(pair.name, [['predicted', time(pair.predicted)], ['measured', time(pair.measured)], ['iterations', `${time(pair.low)} to ${time(pair.high)}`], ['prediction', signedPercent(pair.predicted / pair.measured - 1)]], `run ${pair.id}`);
      },
    },
  };
}
