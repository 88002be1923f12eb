// One run: every iteration, and its way through them.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client } from '../api/client';
import type { RunDetail, Timeline } from '../api/types';
import { tip } from '../charts/chart';
import { linesChart } from '../charts/lines_chart';
import { count, plural, signedPercent, time } from '../format';
import { memo, Page, type Resource } from '../page';
import { ago, badge, command, pageHead, stat, unattested } from '../parts/bits';
import { errorOf, isMeasured } from '../parts/drift';
import { chartFigure } from '../parts/figure';
import { shown } from '../parts/states';
import { measuredMessages, timelineFigure } from '../parts/timeline';
import type { Route } from '../router';
import { marksNote } from './cluster_facts';

export class RunPage extends Page {
  readonly title: string;
  private readonly run: Resource<RunDetail>;
  private readonly timeline: Resource<Timeline>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    const id = route.parts[1]!;
    this.title = `Run ${id}`;
    this.run = this.resource((signal) => client.get('/v1/runs/{id}', { id }, undefined, { signal }));
    this.timeline = this.resource(async (signal) => (await client.get('/v1/plans/{id}/timeline', { id: this.run.value!.plan }, undefined, { signal })) as Timeline);
    void this.run.load().then(() => this.run.value && this.timeline.load());
  }

  view(): TemplateResult {
    return html`${shown(this.run, (run) => html`<div class="page">${this.body(run)}</div>`)}`;
  }

  private body(run: RunDetail): TemplateResult {
    const kinds = { running: 'accent', complete: 'good', interrupted: 'warn', failed: 'bad' } as const;
    return html`${pageHead(`${run.method} for ${run.model}`, html`Run ${run.id} of <a href="/plans/${run.plan}">plan ${run.plan}</a> on ${run.cluster_name || 'no cluster'}, ${plural(run.workers, 'worker')}, started ${ago(run.created)}`, html`${badge(kinds[run.state], run.state)}${unattested(run)}`, html`<a href="/runs">Runs</a>`)}
      ${run.error ? html`<p class="note bad">${run.error}</p>` : nothing}
      ${marksNote(run)}
      <section class="card"><dl class="stats">
        ${stat('Measured', time(run.median_seconds || null), run.iterations > 0 ? `${time(run.low_seconds)} to ${time(run.high_seconds)}` : nothing)}
        ${stat('Predicted', time(run.predicted_seconds || null))}
        ${isMeasured(run) ? stat('Prediction', signedPercent(errorOf(run)), 'over measured') : nothing}
        ${stat('Iterations', count(run.iterations))}
      </dl></section>
      ${run.iteration_seconds.length > 0 ? html`<section class="card">${this.iterations(run)}</section>` : nothing}
      ${measuredMessages(run).length > 0 ? html`<section class="card">${shown(this.timeline, (timeline) => timelineFigure(this, timeline, run, run.method))}</section>` : nothing}
      <div class="halves">
        <section class="card stack"><h2>Where</h2><dl class="facts">
          <dt>Hosts</dt><dd>${run.hosts.map((host) => `${host.name}:${host.slots}`).join(' ') || '–'}</dd>
          ${Object.entries(run.versions).map(([name, version]) => html`<dt>${name}</dt><dd>${version}</dd>`)}
          ${Object.entries((run.settings as Record<string, unknown> | null) ?? {}).filter(([, value]) => typeof value !== 'object' && value !== '').map(([name, value]) => html`<dt>${name}</dt><dd>${typeof value === 'number' ? count(Number(value.toPrecision(6))) : String(value)}</dd>`)}
        </dl></section>
        <section class="card stack"><h2>Trace</h2>
          ${run.trace_path ? html`<p>One file a rank; Perfetto opens them.</p>${command(run.trace_path, 'trace folder')}` : html`<p class="muted">This run wrote none. A run with <code>--trace</code> does:</p>${command(`tune run ${run.plan} --trace traces --iterations 5`, 'trace command')}`}
        </section>
      </div>`;
  }

  private iterations(run: RunDetail): TemplateResult {
    const rows = run.iteration_seconds.map((seconds, index) => ({ index: index + 1, seconds }));
    return chartFigure({
      id: 'iterations', title: 'Every iteration', text: 'The slowest worker\'s. Line: predicted.', size: 'short',
      spoken: `${plural(rows.length, 'iteration')} between ${time(Math.min(...run.iteration_seconds))} and ${time(Math.max(...run.iteration_seconds))}; predicted ${time(run.predicted_seconds || null)}.`,
      chart: memo(this, 'iterations', () => linesChart('iterations', {
        x: { name: 'Iteration', type: 'value', min: 1, max: Math.max(2, rows.length), format: (value) => (Number.isInteger(value) ? String(value) : '') }, y: { name: 'Time', format: time, min: 0 },
        lines: [{ name: 'measured', strong: true, color: (colors) => colors.series[0]!, points: rows.map((row) => ({ x: row.index, y: row.seconds, tip: () => tip(`Iteration ${row.index}`, [['measured', time(row.seconds)], ['predicted', time(run.predicted_seconds || null)]]) })) }],
        ...(run.predicted_seconds > 0 ? { level: [{ at: run.predicted_seconds, color: (colors: { bound: string }) => colors.bound }] } : {}),
      })),
      rows,
      columns: [
        { title: 'Iteration', key: 'iteration', numeric: true, value: (row) => row.index },
        { title: 'Time', key: 'seconds', numeric: true, value: (row) => row.seconds, show: (row) => time(row.seconds) },
      ],
    });
  }
}
