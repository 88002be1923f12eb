// One plan: the ranking it came from, why the winner wins, its iteration, its messages, and how to use it.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client, Problem } from '../api/client';
import type { Messages, PlanAnswer, PlanDetail, RankingEntry, RunDetail, RunSummary, Timeline, Verified } from '../api/types';
import { count, percent, plural, samplesRate, significant, size, time } from '../format';
import { onLive } from '../live';
import { Page, type Resource } from '../page';
import { ago, badge, pageHead, stat } from '../parts/bits';
import { messagesFigure, pullsFigure } from '../parts/messages';
import { boundStat, choiceBadge, doubtfulNote, incompleteNote, rankingFigure, wireBadge } from '../parts/ranking';
import { runForm } from '../parts/run_form';
import { shown } from '../parts/states';
import { timelineFigure } from '../parts/timeline';
import { useFigure, type Exports } from '../parts/use_plan';
import { setQuery, type Route } from '../router';
import { marksNote } from './cluster_facts';

/** What a chosen plan was stored with. */
export interface StoredAnswer {
  readonly ranking: RankingEntry[];
  readonly bounds: { road: string; bound_seconds: number; explanation: string }[];
  /** null: it casts (`wire`). */
  readonly bound_seconds: number | null;
  readonly bound_low_seconds?: number;
  /** Absent from what older versions stored: then the plan's own. */
  readonly doubtful?: PlanAnswer['doubtful'];
  readonly compute_seconds: number;
  readonly reason: string;
  readonly clear_winner: boolean;
  readonly complete?: boolean;
  readonly verified?: Verified;
  readonly chosen: string;
  readonly wire?: string;
  readonly batch: number;
  readonly intensity_operations_per_parameter?: number;
}

export class PlanPage extends Page {
  readonly title: string;
  private readonly id: string;
  private method: string;
  private target: Exports['target'] = 'ddp';
  private readonly plan: Resource<PlanDetail>;
  private readonly timeline: Resource<Timeline>;
  private readonly messages: Resource<Messages>;
  private readonly exports: Resource<Exports>;
  private readonly runs: Resource<RunSummary[]>;
  private readonly measured: Resource<RunDetail | undefined>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.id = route.parts[1]!;
    this.title = `Plan ${this.id}`;
    this.method = route.query.get('method') ?? '';
    const target = route.query.get('export');
    if (target) this.target = target as Exports['target'];
    const id = this.id;
    const query = (): { method?: string } => (this.method ? { method: this.method } : {});
    this.plan = this.resource((signal) => client.get('/v1/plans/{id}', { id }, undefined, { signal }));
    this.timeline = this.resource(async (signal) => (await client.get('/v1/plans/{id}/timeline', { id }, query(), { signal })) as Timeline);
    this.messages = this.resource((signal) => client.get('/v1/plans/{id}/messages', { id }, query(), { signal }));
    this.exports = this.resource((signal) => client.get('/v1/plans/{id}/exports/{target}', { id, target: this.target }, query() as never, { signal }));
    this.runs = this.resource(async (signal) => {
      const cluster = this.plan.value?.cluster_name;
      return cluster ? (await client.get('/v1/runs', {}, { cluster, limit: 1000 }, { signal })).rows : [];
    });
    this.measured = this.resource(async (signal) => {
      const run = this.runOf(this.method || this.plan.value?.method || '');
      return run ? await client.get('/v1/runs/{id}', { id: run.id }, undefined, { signal }) : undefined;
    });
    void this.start();
    onLive('run', this.signal, () => void this.loadRuns());
  }

  private async start(): Promise<void> {
    await this.plan.load();
    if (!this.plan.value) return;
    this.loadMethod();
    await this.loadRuns();
  }

  private loadMethod(): void {
    void this.timeline.load();
    void this.messages.load();
    void this.exports.load();
  }

  private async loadRuns(): Promise<void> {
    await this.runs.load();
    await this.measured.load();
  }

  private choose(method: string): void {
    if (method === (this.method || this.plan.value?.method)) return;
    this.method = method === this.plan.value?.method ? '' : method;
    setQuery({ method: this.method });
    this.loadMethod();
    void this.measured.load();
    this.update();
  }

  private answer(): StoredAnswer | undefined {
    return this.plan.value?.ranking?.answer as StoredAnswer | undefined;
  }

  private planIds(): Record<string, number> {
    const plan = this.plan.value;
    return plan ? { [plan.method]: plan.id, ...(plan.ranking?.plans ?? {}) } : {};
  }

  /** The newest complete run of a method's plan that somebody answers for. */
  private runOf(method: string): RunSummary | undefined {
    const id = this.planIds()[method];
    const verifying = this.plan.value?.ranking?.runs?.[method] ?? [];  // of the same plan in an earlier row
    return this.runs.value?.find((run) => (run.plan === id || verifying.includes(run.id)) && run.state === 'complete' && run.attested);
  }

  view(): TemplateResult {
    return html`${shown(this.plan, (plan) => html`<div class="page">${this.body(plan)}</div>`)}`;
  }

  private body(plan: PlanDetail): TemplateResult {
    const answer = this.answer();
    const method = this.method || plan.method;
    const entry = answer?.ranking.find((one) => one.method === method);
    return html`${pageHead(html`${plan.model} on ${plan.cluster_name || 'no cluster'}`,
        html`Plan ${plan.id}, <span class="mono">${plan.digest}</span>, ${plural(plan.workers, 'worker')}, made ${ago(plan.created)}${plan.fit ? html` from <a href="/fits?cluster=${encodeURIComponent(plan.cluster_name)}&fit=${plan.fit}">fit ${plan.fit}</a>` : html` ${badge('', 'what if: belongs to no fit')}`}`,
        html`<a class="button" href="/what-if?model=${encodeURIComponent(String((plan.plan as { profile?: string }).profile ?? plan.model))}&cluster=${encodeURIComponent(plan.cluster_name)}">What if…</a>`,
        html`<a href="/plans">Plans</a>`)}
      ${marksNote(plan.ranking?.marks)}
      ${answer ? this.why(plan, answer) : doubtfulNote(plan.doubtful)}
      ${answer ? html`<section class="card">${rankingFigure(this, {
        id: `${plan.id}`, answer, chosen: plan.method, selected: method, runOf: (name) => this.runOf(name), onSelect: (name) => this.choose(name), stamp: (this.runs.value ?? []).map((run) => run.id).join(),
      })}</section>` : nothing}
      <section class="card stack" id="iteration">
        ${shown(this.timeline, (timeline) => timelineFigure(this, timeline, this.measured.value, entry?.title ?? method))}
        ${this.measured.value === undefined && this.timeline.value ? html`<p class="small muted">Measured: no run of this method's plan yet. Run it below, and it appears under the prediction on the same scale.</p>` : nothing}
      </section>
      <section class="card">${shown(this.messages, (messages) => messagesFigure(this, `${plan.id}-${method}`, messages, entry?.title ?? method))}</section>
      ${this.messages.value?.pulls.length ? html`<section class="card">${pullsFigure(this, `${plan.id}-${method}`, this.messages.value, entry?.title ?? method)}</section>` : nothing}
      <div class="halves">
        <section class="card stack"><h2>Use it</h2>${shown(this.exports, (exports) => useFigure(plan, method, exports, this.target, (target) => this.exportTo(target)))}</section>
        <section class="card stack"><h2>Replay it</h2>${this.run(plan, answer)}</section>
      </div>`;
  }

  private exportTo(target: Exports['target']): void {
    this.target = target;
    setQuery({ export: target === 'ddp' ? '' : target });
    void this.exports.load();
    this.update();
  }

  private why(plan: PlanDetail, answer: StoredAnswer): TemplateResult {
    const best = answer.ranking.find((one) => one.method === plan.method);
    if (!best) return html``;
    const measured = this.runOf(plan.method);
    const doubt = best.doubt;
    return html`<section class="card stack" data-part="why">
      <div class="row"><span class="badge accent">${best.title}</span><span class="muted">${best.road}</span>
        ${wireBadge(answer)}
        ${choiceBadge(answer, plan.method)}
        ${best.extrapolated ? badge('warn', 'some messages are outside the probed sizes') : nothing}
        ${best.basis === 'measured' ? badge('good', 'priced by measured operations') : badge('', 'priced by formula')}</div>
      <p class="lead">${answer.reason}</p>
      ${incompleteNote(answer)}
      ${doubtfulNote(answer.doubtful ?? plan.doubtful)}
      <dl class="stats">
        ${stat('Predicted iteration', time(best.iteration_seconds), doubt ? `${time(doubt.low_seconds)} to ${time(doubt.high_seconds)}` : nothing)}
        ${best.measured_seconds !== undefined ? stat('Measured', time(best.measured_seconds), `± ${time(best.measured?.half_width_seconds)}, in ${plural(best.measured?.rounds ?? 0, 'round')}`)
          : measured ? stat('Measured', time(measured.median_seconds), html`<a href="/runs/${measured.id}">run ${measured.id}</a>`) : nothing}
        ${boundStat(answer, answer.bound_seconds === null ? null : best.iteration_seconds / answer.bound_seconds - 1)}
        ${stat('Speed-up', significant(best.speedup), `of ${plan.workers}`)}
        ${stat('Samples a second', samplesRate(best.samples_per_second))}
        ${stat('Exposed', time(best.exposed_seconds), `${time(best.hidden_seconds)} hidden`)}
        ${stat('Bound by', best.binding)}
        ${doubt ? stat('Best in', percent(doubt.probability_best, 0), 'of the draws') : nothing}
        ${stat('Messages', count(best.messages), size(this.messages.value?.rows.reduce((sum, row) => sum + row.bytes, 0) ?? null))}
      </dl>
    </section>`;
  }

  private run(plan: PlanDetail, answer: StoredAnswer | undefined): TemplateResult {
    if (!plan.cluster_name || plan.fit === null) return html`<p class="muted">This plan belongs to no fit of a cluster, so the service does not run it.</p>`;
    return html`${this.runs.problem instanceof Problem ? shown(this.runs, () => nothing) : nothing}
      ${runForm(plan.id, this.method || plan.method, answer?.ranking ?? [], this.signal)}`;
  }
}
