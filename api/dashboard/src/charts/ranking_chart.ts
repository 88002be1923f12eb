// The ranking: predicted with its interval, measured beside it, the bound as a line.

import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from 'echarts';
import { percent, signedPercent, time, timeUnit } from '../format';
import { axis, BOUNDS, tip, TOOLTIP, type ChartSpec } from './chart';

export interface Ranked {
  readonly method: string;
  readonly title: string;
  readonly road: string;
  readonly seconds: number;
  readonly compute_seconds: number;
  readonly low: number | undefined;
  readonly high: number | undefined;
  readonly measured: number | undefined;
  readonly chosen: boolean;
}

export function rankingChart(key: string, ranking: readonly Ranked[], bound: number | null, selected: string, onClick: (method: string) => void): ChartSpec {
  return {
    key,
    data: { ranking, selected },
    option: (colors, width) => {
      const most = Math.max(...ranking.flatMap((one) => [one.seconds, one.high ?? 0, one.measured ?? 0]));
      const { scale, unit } = timeUnit(most);
      const narrow = width < 520;
      return {
        grid: { ...BOUNDS, left: 6, right: 26, top: 12, bottom: 6 },
        tooltip: {
          ...TOOLTIP(colors),
          formatter: (item: { dataIndex: number }) => {
            const one = ranking[item.dataIndex]!;
            const rows: [string, string][] = [['predicted', time(one.seconds)]];
            if (one.low !== undefined && one.high !== undefined) rows.push(['90 % of draws', `${time(one.low)} to ${time(one.high)}`]);
            if (one.measured !== undefined) rows.push(['measured', time(one.measured)], ['prediction', signedPercent(one.seconds / one.measured - 1)]);
            rows.push(['compute', time(one.compute_seconds)], ['exposed', time(one.seconds - one.compute_seconds)]);
            if (bound !== null) rows.push(['above the bound', percent(one.seconds / bound - 1)]);
            return tip(one.title, rows, one.road);
          },
        },
        xAxis: { type: 'value', min: 0, ...axis(colors, `Time of an iteration (${unit})`, { nameGap: 26, axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true, formatter: (seconds: number) => String(Number((seconds / scale).toPrecision(6))) } }) },
        yAxis: { type: 'category', inverse: true, data: ranking.map((one) => one.title), ...axis(colors, '', { axisTick: { show: false }, axisLabel: { color: colors.text, fontSize: narrow ? 11 : 12, interval: 0, width: narrow ? 112 : 150, overflow: 'truncate' } }) },
        series: [
          {
            type: 'bar', id: 'compute', stack: 'time', barWidth: '58%', cursor: 'pointer', data: ranking.map((one) => ({ value: Math.min(one.seconds, one.compute_seconds), itemStyle: { opacity: one.method === selected ? 1 : 0.62 } })), itemStyle: { color: colors.compute },
            markLine: {
              symbol: 'none', silent: true, precision: 15, animation: false, lineStyle: { color: colors.bound, type: 'solid', width: 2 },
              label: { show: false }, data: bound === null ? [] : [{ xAxis: bound }],
            },
          },
          { type: 'bar', id: 'exposed', stack: 'time', cursor: 'pointer', data: ranking.map((one) => ({ value: Math.max(0, one.seconds - one.compute_seconds), itemStyle: { opacity: one.method === selected ? 1 : 0.62, borderRadius: [0, 3, 3, 0] } })), itemStyle: { color: colors.exposed } },
          {
            type: 'custom', id: 'interval', z: 4, data: ranking.map((one, index) => [one.low ?? one.seconds, index, one.high ?? one.seconds]), encode: { x: [0, 2], y: 1 },
            renderItem: (item: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
              const one = ranking[item.dataIndex]!;
              const height = (api.size!([0, 1]) as number[])[1]! * 0.24;
              const [high = 0, y = 0] = api.coord([one.high ?? one.seconds, item.dataIndex]);
              const [low = 0] = api.coord([one.low ?? one.seconds, item.dataIndex]);
              const line = (x1: number, y1: number, x2: number, y2: number): object => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: colors.text, lineWidth: 1.4 } });
              return { type: 'group', children: one.low === undefined ? [] : [line(low, y, high, y), line(low, y - height / 2, low, y + height / 2), line(high, y - height / 2, high, y + height / 2)] };
            },
          },
          { type: 'scatter', id: 'measured', z: 5, symbol: 'diamond', symbolSize: 12, data: ranking.map((one, index) => (one.measured === undefined ? [NaN, index] : [one.measured, index])), itemStyle: { color: colors.measured, borderColor: colors.surface, borderWidth: 1.5 } },
        ],
      } as never;
    },
    onClick: ({ dataIndex }) => {
      const one = ranking[dataIndex];
      if (one) onClick(one.method);
    },
  };
}
