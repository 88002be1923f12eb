// Curves and maps of what would happen.

import type { TemplateResult } from 'lit-html';
import type { PhaseMap, Scaling, ServerSweep } from '../api/types';
import { cellsChart, type Cell } from '../charts/cells';
import { tip } from '../charts/chart';
import { linesChart, type Line } from '../charts/lines_chart';
import { count, factor, percent, plural, samplesRate, significant, time } from '../format';
import { memo } from '../page';
import type { Palette } from '../theme';
import { select } from './bits';
import { chartFigure } from './figure';
import { html } from 'lit-html';

/** Lines beyond these begin again with the first colour, dashed. */
const COLORS = 10;
const color = (index: number) => (colors: Palette): string => colors.series[index % colors.series.length]!;

export interface SpeedupOptions {
  readonly most: number;
  /** Workers of the cluster itself. */
  readonly own: number;
  /** Methods whose lines are left out. */
  readonly hidden: ReadonlySet<string>;
  onMost(most: number): void;
  onToggle(method: string): void;
}

export function speedupFigure(scaling: Scaling, { most, own, hidden, onMost, onToggle }: SpeedupOptions): TemplateResult {
  const rows = scaling.curves.flatMap((curve) => curve.points.map((point) => ({ ...point, method: curve.title })));
  const best = scaling.curves[0];
  const last = best?.points.at(-1);
  const chart = memo(scaling, `speedup-${[...hidden].join()}`, () => {
    const largest = Math.max(...rows.map((row) => row.workers));
    const ideal: Line = { name: 'ideal', color: (colors) => colors.muted, style: 'dashed', silent: true, points: [1, largest].map((at) => ({ x: at, y: at, tip: () => tip('ideal', []) })) };
    const lines = scaling.curves.map((curve, index): Line => ({
      name: curve.title, color: color(index), strong: index === 0, style: index < COLORS ? 'solid' : 'dashed',
      points: curve.points.map((point) => ({
        x: point.workers, y: point.speedup,
        // The interval of the time, as a speed-up: the same work in a shorter or longer iteration.
        low: (point.speedup * point.iteration_seconds) / point.high_seconds, high: (point.speedup * point.iteration_seconds) / point.low_seconds,
        tip: () => tip(curve.title, [['workers', count(point.workers)], ['speed-up', significant(point.speedup)], ['efficiency', percent(point.efficiency_ratio)], ['iteration', time(point.iteration_seconds)], ['90 % of draws', `${time(point.low_seconds)} to ${time(point.high_seconds)}`], ['samples a second', samplesRate(point.samples_per_second)]]),
      })),
    }));
    return linesChart(`speedup-${scaling.model}-${scaling.cluster}-${most}`, {
      hidden, x: { name: 'Workers', type: 'log', min: 1, max: largest, format: (value) => count(Math.round(value)) }, y: { name: 'Speed-up over one worker', type: 'log', min: undefined as never, format: (value) => significant(value, 2) }, lines: [ideal, ...lines],
    });
  });
  return chartFigure({
    id: 'speedup', title: 'Speed-up', size: 'tall', text: `What would more workers buy? The best at the right end comes first; the cluster itself has ${own}.`,
    spoken: `Speed-up against workers for ${plural(scaling.curves.length, 'method')}. ${best && last ? `${best.title} reaches ${significant(last.speedup)} with ${last.workers} workers, an efficiency of ${percent(last.efficiency_ratio)}.` : ''}`,
    chart, rows,
    legend: html`<div class="legend" role="group" aria-label="Methods to show">${scaling.curves.map((curve, index) => html`<button type="button" class="key" data-curve=${curve.method} aria-pressed=${!hidden.has(curve.title)} @click=${() => onToggle(curve.title)}><i class="swatch series-${(index % COLORS) + 1} ${index < COLORS ? '' : 'dashed'}"></i>${curve.title}</button>`)}<span>┄ ideal</span><span>shaded: 90 % of the draws</span></div>`,
    tools: html`<div class="inline-select">${select('Workers up to', 'most', [8, 16, 32, 64, 128, 256].map((value) => ({ value: String(value), text: String(value) })), String(most), (value) => onMost(Number(value)))}</div>`,
    note: `Beyond ${own} workers the costs are carried on by formula, and its hosts are taken to go on like the first. The curves follow the sliders. Choose a name above the chart to hide or show its line.`,
    columns: [
      { title: 'Method', key: 'method', value: (row) => row.method },
      { title: 'Workers', key: 'workers', numeric: true, value: (row) => row.workers },
      { title: 'Speed-up', key: 'speedup', numeric: true, value: (row) => row.speedup, show: (row) => significant(row.speedup) },
      { title: 'Efficiency', key: 'efficiency_ratio', numeric: true, value: (row) => row.efficiency_ratio, show: (row) => percent(row.efficiency_ratio) },
      { title: 'Iteration', key: 'iteration_seconds', numeric: true, value: (row) => row.iteration_seconds, show: (row) => time(row.iteration_seconds) },
      { title: 'From', key: 'low_seconds', numeric: true, value: (row) => row.low_seconds, show: (row) => time(row.low_seconds) },
      { title: 'To', key: 'high_seconds', numeric: true, value: (row) => row.high_seconds, show: (row) => time(row.high_seconds) },
      { title: 'Samples/s', key: 'samples_per_second', numeric: true, value: (row) => row.samples_per_second, show: (row) => samplesRate(row.samples_per_second) },
    ],
  });
}

type PhaseCell = PhaseMap['cells'][number];

const bandwidthOf = (cell: PhaseCell): number => Number((1 / cell.time_per_byte_factor).toPrecision(3));

export function phaseFigure(map: PhaseMap, own: number): TemplateResult {
  const workers = [...new Set(map.cells.map((cell) => cell.workers))].sort((a, b) => a - b);
  const bandwidths = [...new Set(map.cells.map(bandwidthOf))].sort((a, b) => a - b);
  const winners = [...new Set(map.cells.map((cell) => cell.published))];
  const here = map.cells.find((cell) => cell.workers === own && bandwidthOf(cell) === 1);
  const chart = memo(map, 'phase', () => cellsChart(`phase-${map.model}-${map.cluster}`, {
    columns: workers.map(String), rows: bandwidths.map((value) => (value === 1 ? 'as measured' : factor(value))), columnName: 'Workers', rowName: 'Bandwidth',
    cells: map.cells.map((cell): Cell => ({
      column: workers.indexOf(cell.workers), row: bandwidths.indexOf(bandwidthOf(cell)), color: color(winners.indexOf(cell.published)), text: cell.published, outlined: cell === here,
      tip: () => tip(cell.published, [['workers', count(cell.workers)], ['bandwidth', bandwidthOf(cell) === 1 ? 'as measured' : factor(bandwidthOf(cell))], ['fastest plan of all', cell.road], ['its iteration', time(cell.iteration_seconds)], ['published method over it', percent(cell.joint_win_ratio - 1)], ['bound by', cell.binding]], cell === here ? 'this cluster' : ''),
    })),
  }));
  return chartFigure<PhaseCell>({
    id: 'phase', title: 'Which method wins where', size: 'map', text: 'The fastest method of the literature over workers and bandwidth; this cluster is outlined.',
    spoken: `Map of ${plural(workers.length, 'number')} of workers by ${plural(bandwidths.length, 'bandwidth')}: ${winners.join(', ')} win somewhere.${here ? ` Here: ${here.published}.` : ''}`,
    chart, rows: map.cells,
    legend: html`<div class="legend" aria-hidden="true">${winners.map((name, index) => html`<span><i class="swatch series-${(index % 10) + 1}"></i>${name}</span>`)}</div>`,
    note: map.flips.length > 0 ? html`${map.flips.map((flip) => html`${flip.sentence} `)}` : 'No change of network, device, workers or servers up to a factor of 64 makes another method win.',
    columns: [
      { title: 'Workers', key: 'workers', numeric: true, value: (cell) => cell.workers },
      { title: 'Bandwidth', key: 'bandwidth_scale', numeric: true, value: bandwidthOf, show: (cell) => factor(bandwidthOf(cell)) },
      { title: 'Fastest published method', key: 'published', value: (cell) => cell.published },
      { title: 'Road of the fastest plan', key: 'road', value: (cell) => cell.road },
      { title: 'Its iteration', key: 'iteration_seconds', numeric: true, value: (cell) => cell.iteration_seconds, show: (cell) => time(cell.iteration_seconds) },
      { title: 'Published over it', key: 'joint_win_ratio', numeric: true, value: (cell) => cell.joint_win_ratio, show: (cell) => percent(cell.joint_win_ratio - 1) },
      { title: 'Bound by', key: 'binding', value: (cell) => cell.binding },
    ],
  });
}

export function serversFigure(sweep: ServerSweep): TemplateResult {
  const chart = memo(sweep, 'servers', () => linesChart(`servers-${sweep.model}-${sweep.cluster}`, {
    x: { name: 'Servers', type: 'category', categories: sweep.points.map((point) => String(point.servers)) }, y: { name: 'Iteration', format: time, min: 0 },
    lines: [{
      name: 'best plan', color: color(0), strong: true,
      points: sweep.points.map((point, index) => ({ x: index, y: point.iteration_seconds, tip: () => tip(plural(point.servers, 'server'), [['iteration', time(point.iteration_seconds)], ['gain over the point before', percent(point.marginal_gain_ratio)]]) })),
    }],
  }));
  const best = [...sweep.points].sort((a, b) => a.iteration_seconds - b.iteration_seconds)[0];
  return chartFigure({
    id: 'servers', title: 'Parameter servers', size: 'short', text: `The best plan over a number of ${sweep.placement} servers, for ${plural(sweep.workers, 'worker')}.`,
    spoken: `Iteration time over the number of servers. ${best ? `Least with ${plural(best.servers, 'server')}: ${time(best.iteration_seconds)}.` : ''}`,
    chart, rows: sweep.points,
    columns: [
      { title: 'Servers', key: 'servers', numeric: true, value: (point) => point.servers },
      { title: 'Iteration', key: 'iteration_seconds', numeric: true, value: (point) => point.iteration_seconds, show: (point) => time(point.iteration_seconds) },
      { title: 'Gain', key: 'marginal_gain_ratio', numeric: true, value: (point) => point.marginal_gain_ratio, show: (point) => percent(point.marginal_gain_ratio) },
    ],
  });
}
