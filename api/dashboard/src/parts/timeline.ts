// The iteration of a plan: predicted, and below it what the newest run measured.

import { html, type TemplateResult } from 'lit-html';
import type { RunDetail, Timeline } from '../api/types';
import type { ChartElement } from '../charts/chart';
import { packed, timelineChart, type Span } from '../charts/timeline_chart';
import { percent, plural, size, time } from '../format';
import { memo } from '../page';
import { save } from '../download';
import { chartFigure } from './figure';
import { chromeTrace } from './trace';

type Loose = Omit<Span, 'row' | 'rows'>;

/** Medians over the timed iterations, seconds from the start of the backward pass. */
export interface MeasuredMessage {
  readonly queued_seconds: number;
  readonly started_seconds: number;
  readonly reduced_seconds: number;
  readonly distributed_seconds: number;
  readonly used_seconds: number;
}

export function measuredMessages(run: RunDetail | undefined): readonly MeasuredMessage[] {
  return (run as { messages?: MeasuredMessage[] } | undefined)?.messages ?? [];
}

function computeSpans(timeline: Timeline): Loose[] {
  return timeline.layers.flatMap((layer) => [
    { lane: 'Compute', kind: 'backward' as const, name: `${layer.name}, backward`, start: layer.backward.start_seconds, end: layer.backward.end_seconds, details: [] },
    { lane: 'Compute', kind: 'forward' as const, name: `${layer.name}, forward`, start: layer.forward.start_seconds, end: layer.forward.end_seconds, details: [] },
  ]).filter((span) => span.end > span.start);
}

interface Interval {
  readonly start: number;
  readonly end: number;
}

/** What the intervals leave free from 0 to the end. */
export function gapsBetween(busy: readonly Interval[], end: number): Interval[] {
  const gaps: Interval[] = [];
  let until = 0;
  const add = (from: number, to: number): void => {
    if (to - from > end * 1e-6) gaps.push({ start: from, end: to });
  };
  for (const one of [...busy].sort((a, b) => a.start - b.start)) {
    add(until, Math.min(one.start, end));
    until = Math.max(until, one.end);
  }
  add(until, end);
  return gaps;
}

/** Shades the lanes while gradients are awaited. */
function exposedSpans(waits: readonly Interval[], lanes: readonly string[]): Span[] {
  return lanes.flatMap((lane) => waits.map((wait): Span => ({ ...wait, lane, kind: 'exposed', name: 'Exposed: waits for gradients', details: [], row: 0, rows: 1 })));
}

const total = (intervals: readonly Interval[]): number => intervals.reduce((sum, one) => sum + one.end - one.start, 0);

/** What comes back as one, where that is not what was pushed as one. */
function pullSpans(timeline: Timeline): Loose[] {
  return timeline.pulls.map((pull): Loose => ({
    lane: 'Distribute', kind: 'distribute', name: `pull ${pull.index}: ${pull.label}`, start: pull.distribute.start_seconds, end: pull.distribute.end_seconds,
    details: [['size', size(pull.bytes)], ['pieces', String(pull.pieces)], ['summed', time(pull.released_seconds)]],
  }));
}

function messageSpans(timeline: Timeline): Loose[] {
  return timeline.messages.flatMap((message) => {
    const details = [['size', size(message.bytes)], ['pieces', String(message.pieces)], ['released', time(message.released_seconds)]] as const;
    const name = `${message.index}: ${message.label}`;
    return [
      { lane: 'Reduce', kind: 'reduce' as const, name, start: message.reduce.start_seconds, end: message.reduce.end_seconds, details },
      { lane: 'Distribute', kind: 'distribute' as const, name, start: message.distribute.start_seconds, end: message.distribute.end_seconds, details },
    ];
  }).filter((span) => span.end > span.start);
}

function measuredSpans(timeline: Timeline, measured: readonly MeasuredMessage[]): Loose[] {
  return measured.flatMap((message, index) => {
    const plan = timeline.messages[index];
    const name = plan ? `${index}: ${plan.label}` : String(index);
    const details = [['size', size(plan?.bytes)], ['last gradient', time(message.queued_seconds)], ['asked for', time(message.used_seconds)]] as const;
    return [
      { lane: 'Measured reduce', kind: 'reduce' as const, name, start: message.started_seconds, end: message.reduced_seconds, details },
      { lane: 'Measured distribute', kind: 'distribute' as const, name, start: message.reduced_seconds, end: message.distributed_seconds, details },
    ];
  }).filter((span) => span.end > span.start);
}

/** From when a layer of the forward pass asks for a message until that has come: the worker stands still. */
function measuredWaits(measured: readonly MeasuredMessage[], end: number): Interval[] {
  const waits = measured.map((message) => ({ start: message.used_seconds, end: message.distributed_seconds })).filter((wait) => wait.end > wait.start);
  return gapsBetween(gapsBetween(waits, end), end);
}

interface Built {
  readonly spans: Span[];
  readonly lanes: string[];
  readonly end: number;
  readonly exposed: number;
  /** 0 without a run. */
  readonly measuredExposed: number;
}

const PREDICTED = ['Compute', 'Reduce', 'Distribute'];
const MEASURED = ['Measured compute', 'Measured reduce', 'Measured distribute'];

function build(timeline: Timeline, run: RunDetail | undefined): Built {
  const messages = measuredMessages(run);
  const measured = measuredSpans(timeline, messages);
  const compute = computeSpans(timeline);
  const iteration = timeline.prediction.iteration_seconds;
  const gaps = gapsBetween(compute, iteration);
  const lasted = run?.median_seconds ?? 0;
  const waits = measuredWaits(messages, lasted);
  const computing = gapsBetween(waits, lasted).map((one): Loose => ({ ...one, lane: MEASURED[0]!, kind: 'backward', name: 'Computes: nothing is waited for', details: [] }));
  const predicted = [...compute, ...messageSpans(timeline), ...pullSpans(timeline)];
  const of = (spans: readonly Loose[], lanes: readonly string[], rows: number): Span[] => lanes.flatMap((lane) => packed(spans.filter((span) => span.lane === lane), rows));
  const spans = [...exposedSpans(gaps, PREDICTED), ...of(predicted, PREDICTED, 6)];
  if (measured.length > 0) spans.push(...exposedSpans(waits, MEASURED), ...of([...computing, ...measured], MEASURED, 16));
  const end = Math.max(iteration, lasted, ...spans.map((span) => span.end));
  return { spans, lanes: measured.length > 0 ? [...PREDICTED, ...MEASURED] : PREDICTED, end, exposed: total(gaps), measuredExposed: total(waits) };
}

export function timelineFigure(owner: object, timeline: Timeline, run: RunDetail | undefined, title: string): TemplateResult {
  const withRun = run && measuredMessages(run).length > 0 ? run : undefined;
  const { spans, lanes, end, exposed, measuredExposed } = memo(owner, `timeline-${timeline.method}-${withRun?.id ?? ''}`, () => build(timeline, withRun));
  const zoom = (scale: number, move = 0) => (event: Event): void => {
    const chart = (event.currentTarget as Element).closest('figure')!.querySelector('ct-chart') as ChartElement;
    chart.zoomBy(scale, move);
  };
  const trace = (): void => save('commtune-timeline.trace.json', 'application/json', JSON.stringify(chromeTrace(spans, `${timeline.method} on ${timeline.road}`)));
  return chartFigure<Span>({
    id: 'timeline', title: `One iteration of ${title}`, size: lanes.length > 3 ? 'long' : '',
    text: html`${timeline.road}, ${plural(timeline.messages.length, 'message')}: ${time(timeline.prediction.iteration_seconds)}, of which ${time(exposed)} (${percent(exposed / timeline.prediction.iteration_seconds)}) wait for gradients.${withRun ? html` Below: <a href="/runs/${withRun.id}">run ${withRun.id}</a>, medians of ${withRun.iterations} iterations: ${time(withRun.median_seconds)}, of which ${time(measuredExposed)} (${percent(measuredExposed / withRun.median_seconds)}) were waited for gradients.` : ''}`,
    spoken: `Timeline of one iteration: ${plural(timeline.layers.length, 'layer')} compute for ${time(timeline.prediction.compute_seconds)}, ${plural(timeline.messages.length, 'message')} are under way for ${time(timeline.prediction.communication_seconds)}, ${time(exposed)} are exposed. ${withRun ? `Below it a run: ${time(withRun.median_seconds)}, of which ${time(measuredExposed)} exposed. ` : ''}Arrow keys move, plus and minus zoom, 0 shows all.`,
    chart: memo(owner, `timeline-chart-${timeline.method}-${withRun?.id ?? ''}`, () => timelineChart(`timeline-${timeline.method}`, spans, lanes, end)),
    tools: html`<button class="quiet" aria-label="Zoom in" @click=${zoom(0.6)}>Zoom in</button><button class="quiet" aria-label="Zoom out" @click=${zoom(1 / 0.6)}>Zoom out</button><button class="quiet" aria-label="All of the iteration" @click=${zoom(1e9)}>All</button><button class="quiet" data-save="trace" title="Opens in Perfetto" aria-label="Save as a trace for Perfetto" @click=${trace}>Trace</button>`,
    legend: html`<div class="legend" aria-hidden="true"><span><i class="swatch compute"></i>compute: backward, then forward (paler)</span><span><i class="swatch reduce"></i>reduce stage</span><span><i class="swatch distribute"></i>distribute stage</span><span><i class="swatch exposed"></i>exposed: nothing computes</span></div>`,
    note: 'Drag it or the bar below to move; Ctrl and the wheel, or + and −, zoom; 0 shows all. Point at a message for its pieces.',
    rows: spans,
    columns: [
      { title: 'Lane', key: 'lane', value: (span) => span.lane },
      { title: 'What', key: 'name', value: (span) => span.name },
      { title: 'From', key: 'start_seconds', numeric: true, value: (span) => span.start, show: (span) => time(span.start) },
      { title: 'To', key: 'end_seconds', numeric: true, value: (span) => span.end, show: (span) => time(span.end) },
      { title: 'For', key: 'seconds', numeric: true, value: (span) => span.end - span.start, show: (span) => time(span.end - span.start) },
    ],
    json: { predicted: timeline, measured: withRun ? measuredMessages(withRun) : null },
  });
}
