// The iteration of a plan: predicted, and below it what the newest run measured.

import { html, type TemplateResult } from 'lit-html';
import type { RunDetail, Timeline } from '../api/types';
import type { ChartElement } from '../charts/chart';
import { packed, timelineChart, type Span } from '../charts/timeline_chart';
import { percent, plural, size, time } from '../format';
import { memo } from '../page';
import { chartFigure } from './figure';

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

/** When nothing computes before the iteration ends. */
export function exposedSpans(compute: readonly Loose[], end: number): Loose[] {
  const gaps: Loose[] = [];
  let busy = 0;
  const add = (from: number, to: number): void => {
    if (to - from > end * 1e-6) gaps.push({ lane: 'Compute', kind: 'exposed', name: 'Exposed: waits for gradients', start: from, end: to, details: [] });
  };
  for (const span of [...compute].sort((a, b) => a.start - b.start)) {
    add(busy, span.start);
    busy = Math.max(busy, span.end);
  }
  add(busy, end);
  return gaps;
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

interface Built {
  readonly spans: Span[];
  readonly lanes: string[];
  readonly end: number;
  readonly exposed: number;
}

function build(timeline: Timeline, run: RunDetail | undefined): Built {
  const measured = measuredSpans(timeline, measuredMessages(run));
  const compute = computeSpans(timeline);
  const iteration = timeline.prediction.iteration_seconds;
  const gaps = exposedSpans(compute, iteration);
  const messages = messageSpans(timeline);
  const of = (spans: readonly Loose[], lane: string): Span[] => packed(spans.filter((span) => span.lane === lane));
  const lanes = ['Compute', 'Reduce', 'Distribute', ...(measured.length > 0 ? ['Measured reduce', 'Measured distribute'] : [])];
  const exposed = lanes.slice(0, 3).flatMap((lane) => gaps.map((gap): Span => ({ ...gap, lane, row: 0, rows: 1 })));
  const spans = [...exposed, ...of(compute, 'Compute'), ...lanes.slice(1, 3).flatMap((lane) => of(messages, lane)), ...lanes.slice(3).flatMap((lane) => of(measured, lane))];
  const end = Math.max(iteration, run?.median_seconds ?? 0, ...spans.map((span) => span.end));
  return { spans, lanes, end, exposed: gaps.reduce((sum, gap) => sum + gap.end - gap.start, 0) };
}

export function timelineFigure(owner: object, timeline: Timeline, run: RunDetail | undefined, title: string): TemplateResult {
  const withRun = run && measuredMessages(run).length > 0 ? run : undefined;
  const { spans, lanes, end, exposed } = memo(owner, `timeline-${timeline.method}-${withRun?.id ?? ''}`, () => build(timeline, withRun));
  const zoom = (scale: number, move = 0) => (event: Event): void => {
    const chart = (event.currentTarget as Element).closest('figure')!.querySelector('ct-chart') as ChartElement;
    chart.zoomBy(scale, move);
  };
  return chartFigure<Span>({
    id: 'timeline', title: `One iteration of ${title}`, size: lanes.length > 3 ? 'tall' : '',
    text: html`${timeline.road}, ${plural(timeline.messages.length, 'message')}: ${time(timeline.prediction.iteration_seconds)}, of which ${time(exposed)} (${percent(exposed / timeline.prediction.iteration_seconds)}) wait for gradients.${withRun ? html` Below: <a href="/runs/${withRun.id}">run ${withRun.id}</a>, medians of ${withRun.iterations} iterations.` : ''}`,
    spoken: `Timeline of one iteration: ${plural(timeline.layers.length, 'layer')} compute for ${time(timeline.prediction.compute_seconds)}, ${plural(timeline.messages.length, 'message')} are under way for ${time(timeline.prediction.communication_seconds)}, ${time(exposed)} are exposed. Arrow keys move, plus and minus zoom, 0 shows all.`,
    chart: memo(owner, `timeline-chart-${timeline.method}-${withRun?.id ?? ''}`, () => timelineChart(`timeline-${timeline.method}`, spans, lanes, end)),
    tools: html`<button class="quiet" aria-label="Zoom in" @click=${zoom(0.6)}>Zoom in</button><button class="quiet" aria-label="Zoom out" @click=${zoom(1 / 0.6)}>Zoom out</button><button class="quiet" aria-label="All of the iteration" @click=${zoom(1e9)}>All</button>`,
    legend: html`<div class="legend" aria-hidden="true"><span><i class="swatch compute"></i>compute: backward, then forward (paler)</span><span><i class="swatch reduce"></i>reduce stage</span><span><i class="swatch distribute"></i>distribute stage</span><span><i class="swatch exposed"></i>exposed: nothing computes</span></div>`,
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
