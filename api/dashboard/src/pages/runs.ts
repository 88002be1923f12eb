// How good the predictions were: predicted against measured, over time, and where they drift away.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client } from '../api/client';
import type { RunSummary } from '../api/types';
import { tip } from '../charts/chart';
import { linesChart, type Line } from '../charts/lines_chart';
import { scatterChart, type Pair } from '../charts/scatter_chart';
import { date, percent, plural, signedPercent, time } from '../format';
import { onLive } from '../live';
import { memo, Page, type Resource } from '../page';
import { ago, badge, otherConditions, pageHead, select, stat, unattested } from '../parts/bits';
import { driftsOf, errorOf, isMeasured, median, ALARM, WINDOW } from '../parts/drift';
import { chartFigure } from '../parts/figure';
import { emptyState, shown } from '../parts/states';
import { table } from '../parts/table';
import { navigate, setQuery, type Route } from '../router';

const STATES = { running: 'accent', complete: 'good', interrupted: 'warn', failed: 'bad' } as const;

export class RunsPage extends Page {
  readonly title = 'Runs';
  private cluster: string;
  private model: string;
  private stamp = 0;
  private readonly runs: Resource<RunSummary[]>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.cluster = route.query.get('cluster') ?? '';
    this.model = route.query.get('model') ?? '';
    this.runs = this.resource(async (signal) => {
      const { rows } = await client.get('/v1/runs', {}, { limit: 1000 }, { signal });
      ++this.stamp;
      return rows;
    });
    void this.runs.load();
    onLive('run', this.signal, () => void this.runs.load());
  }

  private change(changes: { cluster?: string; model?: string }): void {
    Object.assign(this, changes);
    setQuery({ cluster: this.cluster, model: this.model });
    this.update();
  }

  view(): TemplateResult {
    return html`${pageHead('Runs', 'Replays of plans, in which nothing is trained, and times that jobs handed in: predicted and measured.')}
      ${shown(this.runs, (runs) => runs.length === 0
        ? emptyState('Nothing has run yet', 'Open a plan and replay it, or hand back what a job measured.', html`<a class="button" href="/plans">To the plans</a>`)
        : html`<div class="page">${this.body(runs)}</div>`)}`;
  }

  private body(runs: RunSummary[]): TemplateResult {
    const options = (pick: (run: RunSummary) => string, all: string) => [{ value: '', text: all }, ...[...new Set(runs.map(pick))].filter(Boolean).sort().map((text) => ({ value: text, text }))];
    const found = runs.filter((run) => (!this.cluster || run.cluster_name === this.cluster) && (!this.model || run.model === this.model));
    const measured = found.filter(isMeasured);
    return html`<div class="choices card">
        ${select('Cluster', 'cluster', options((run) => run.cluster_name, 'all clusters'), this.cluster, (cluster) => this.change({ cluster }))}
        ${select('Model', 'model', options((run) => run.model, 'all models'), this.model, (model) => this.change({ model }))}
        ${this.summary(measured)}
      </div>
      ${this.drift(measured)}
      ${measured.length > 0 ? html`<div class="halves"><section class="card">${this.scatter(measured)}</section><section class="card">${this.history(measured)}</section></div>` : nothing}
      <section class="card stack"><h2>${plural(found.length, 'run')}</h2>${this.list(found)}</section>`;
  }

  private summary(measured: RunSummary[]): TemplateResult {
    const errors = measured.map((run) => Math.abs(errorOf(run)));
    return html`<dl class="stats">${stat('Measured runs', String(measured.length))}${stat('Median error', percent(median(errors)))}${stat('Worst', percent(errors.length > 0 ? Math.max(...errors) : undefined))}</dl>`;
  }

  private drift(measured: RunSummary[]): TemplateResult {
    const drifts = driftsOf(measured);
    const rule = `An alarm: the median error of the newest ${WINDOW} runs of a cluster and model is beyond ${percent(ALARM, 0)}.`;
    if (drifts.length === 0) return html`<p class="row" data-part="drift">${badge('good', 'No drift')} <span class="muted small">${rule}</span></p>`;
    return html`<section class="card stack" data-part="drift"><h2>Drift</h2>
      <ul class="list">${drifts.map((one) => html`<li>${badge('bad', signedPercent(one.error))} ${one.model} on <a href="/clusters/${encodeURIComponent(one.cluster)}">${one.cluster}</a>: predictions are ${one.error < 0 ? 'too fast' : 'too slow'} over the newest ${plural(one.runs, 'run')}. Probe the cluster again, or measure the model's layers again.</li>`)}</ul>
      <p class="small muted">${rule}</p></section>`;
  }

  private scatter(measured: RunSummary[]): TemplateResult {
    const pairs = measured.map((run): Pair => ({ id: run.id, group: `${run.model} on ${run.cluster_name || 'no cluster'}`, name: run.method, predicted: run.predicted_seconds, measured: run.median_seconds, low: run.low_seconds, high: run.high_seconds }));
    const near = measured.filter((run) => Math.abs(errorOf(run)) <= 0.1).length;
    return chartFigure({
      id: 'scatter', title: 'Predicted against measured', text: 'Above the diagonal the run was slower than predicted. Dashed: 10 % off.', size: 'map',
      spoken: `${plural(pairs.length, 'run')}: ${near} within 10 % of the prediction. Median error ${percent(median(measured.map((run) => Math.abs(errorOf(run)))))}.`,
      chart: memo(this, `scatter-${this.stamp}-${this.cluster}-${this.model}`, () => scatterChart('scatter', pairs, (id) => navigate(`/runs/${id}`))),
      rows: measured, columns: COLUMNS,
    });
  }

  private history(measured: RunSummary[]): TemplateResult {
    const groups = new Map<string, RunSummary[]>();
    for (const run of measured) {
      const name = `${run.model} on ${run.cluster_name || 'no cluster'}`;
      groups.set(name, [...(groups.get(name) ?? []), run]);
    }
    const ordered = [...groups].map(([name, runs]) => ({ name, runs: [...runs].sort((a, b) => a.id - b.id) }));
    const lines = ordered.map(({ name, runs }, index): Line => ({
      name, style: 'none', color: (colors) => colors.series[index % colors.series.length]!,
      points: runs.map((run) => ({ x: run.created, y: errorOf(run), tip: () => tip(`${run.method}, ${name}`, [['prediction', signedPercent(errorOf(run))], ['predicted', time(run.predicted_seconds)], ['measured', time(run.median_seconds)], ['when', date(run.created)]], `run ${run.id}`) })),
    }));
    const limit = Math.max(0.2, Math.ceil(Math.max(...measured.map((run) => Math.abs(errorOf(run)))) * 10) / 10);
    return chartFigure({
      id: 'history', title: 'Error over time', text: 'Below zero the prediction was too fast. Dashed: where an alarm begins.', size: 'map',
      spoken: `Errors of ${plural(measured.length, 'run')} over time, from ${signedPercent(Math.min(...measured.map(errorOf)))} to ${signedPercent(Math.max(...measured.map(errorOf)))}.`,
      chart: memo(this, `history-${this.stamp}-${this.cluster}-${this.model}`, () => linesChart('history', {
        legend: lines.length > 1, x: { name: 'Started', type: 'time' }, y: { name: 'Prediction over measurement', format: (value) => signedPercent(value, 0), min: -limit, max: limit }, lines,
        level: [{ at: 0, color: (colors) => colors.muted }, { at: ALARM, color: (colors) => colors.bad, dashed: true }, { at: -ALARM, color: (colors) => colors.bad, dashed: true }],
        onClick: (line, point) => { const run = ordered[line]?.runs[point]; if (run) navigate(`/runs/${run.id}`); },
      })),
      rows: measured, columns: COLUMNS,
    });
  }

  private list(runs: RunSummary[]): TemplateResult {
    return table(runs.slice(0, 300), [
      { title: 'Run', key: 'id', numeric: true, value: (run) => run.id, show: (run) => html`<a href="/runs/${run.id}">${run.id}</a>` },
      { title: 'Model', key: 'model', value: (run) => run.model },
      { title: 'Method', key: 'method', value: (run) => run.method, show: (run) => html`<a href="/plans/${run.plan}">${run.method}</a>` },
      { title: 'Cluster', key: 'cluster', value: (run) => run.cluster_name || '–' },
      { title: 'Workers', key: 'workers', numeric: true, value: (run) => run.workers },
      { title: 'Workload', key: 'workload', value: (run) => run.workload || '–' },
      { title: 'State', key: 'state', value: (run) => run.state, show: (run) => html`<span title=${run.error}>${badge(STATES[run.state], run.state)}</span>${unattested(run)}${otherConditions(run)}` },
      { title: 'Predicted', key: 'predicted', numeric: true, value: (run) => run.predicted_seconds, show: (run) => time(run.predicted_seconds || null) },
      { title: 'Measured', key: 'measured', numeric: true, value: (run) => run.median_seconds, show: (run) => time(run.median_seconds || null) },
      { title: 'Error', key: 'error', numeric: true, value: (run) => errorOf(run), show: (run) => (isMeasured(run) ? signedPercent(errorOf(run)) : '–') },
      { title: 'Started', key: 'created', value: (run) => run.created, show: (run) => ago(run.created) },
    ], { caption: 'Runs, newest first', tall: true });
  }
}

const COLUMNS = [
  { title: 'Run', key: 'run', numeric: true, value: (run: RunSummary) => run.id },
  { title: 'Model', key: 'model', value: (run: RunSummary) => run.model },
  { title: 'Cluster', key: 'cluster', value: (run: RunSummary) => run.cluster_name },
  { title: 'Method', key: 'method', value: (run: RunSummary) => run.method },
  { title: 'Started', key: 'created', value: (run: RunSummary) => run.created, show: (run: RunSummary) => date(run.created) },
  { title: 'Predicted', key: 'predicted_seconds', numeric: true, value: (run: RunSummary) => run.predicted_seconds, show: (run: RunSummary) => time(run.predicted_seconds) },
  { title: 'Measured', key: 'median_seconds', numeric: true, value: (run: RunSummary) => run.median_seconds, show: (run: RunSummary) => time(run.median_seconds) },
  { title: 'Error', key: 'error_ratio', numeric: true, value: errorOf, show: (run: RunSummary) => signedPercent(errorOf(run)) },
];
