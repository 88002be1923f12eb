// The main job from a browser: choose or upload a profile, choose a cluster, see the plan. And what runs at the moment.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client, isAbort, Problem } from '../api/client';
import { planned } from '../api/planned';
import type { Job, PlanAnswer, PlanRequest, Version } from '../api/types';
import { batchText, plural, samplesRate, significant, size, time } from '../format';
import { onLive } from '../live';
import { Page, type Resource } from '../page';
import { command, pageHead, select, stat } from '../parts/bits';
import { fetchChoices, modelOptions, normalized, profileOf, type Choices } from '../parts/choose';
import { jobTable } from '../parts/jobs';
import { probeForm } from '../parts/probe_form';
import { boundStat, choiceBadge, doubtfulNote, incompleteNote, rankingFigure, wireBadge } from '../parts/ranking';
import { emptyState, problemState, shown } from '../parts/states';
import { navigate, setQuery, type Route } from '../router';
import { marksNote } from './cluster_facts';

const LARGEST_PROFILE = 16 * 1024 * 1024;

/** What the training program waits for; "": each plan's own. */
const BARRIERS = [
  { value: '', text: 'whatever the plan says' },
  { value: 'full', text: 'all gradients, as DDP does' },
  { value: 'per-layer', text: 'each layer for its own' },
] as const;
type Barrier = (typeof BARRIERS)[number]['value'];

export class TunePage extends Page {
  readonly title = 'Tune';
  private model: string;
  private cluster: string;
  private barrier: Barrier = '';
  private uploaded = '';
  private uploadProblem = '';
  private busy = false;
  private problem: Problem | undefined;
  private answer: PlanAnswer | undefined;
  private readonly choices: Resource<Choices>;
  private readonly jobs: Resource<Job[]>;
  private readonly version: Resource<Version>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.model = route.query.get('model') ?? '';
    this.cluster = route.query.get('cluster') ?? '';
    this.choices = this.resource((signal) => fetchChoices(signal));
    this.jobs = this.resource(async (signal) => (await client.get('/v1/jobs', {}, { limit: 20 }, { signal })).rows);
    this.version = this.resource((signal) => client.get('/v1/version', {}, undefined, { signal }));
    void this.loadChoices();
    void this.jobs.load();
    void this.version.load();
    client.addEventListener('token', () => void this.version.load(), { signal: this.signal });
    onLive('job', this.signal, (data) => this.heard(data as Job));
    onLive('fit', this.signal, () => void this.loadChoices());
  }

  private async loadChoices(): Promise<void> {
    await this.choices.load();
    const choices = this.choices.value;
    if (!choices) return;
    this.model = normalized(choices, this.model);
    if (!choices.clusters.some((one) => one.name === this.cluster)) this.cluster = choices.clusters[0]?.name ?? '';
    this.update();
  }

  private heard(job: Job): void {
    const rows = this.jobs.value ?? [];
    const index = rows.findIndex((one) => one.id === job.id);
    this.jobs.value = index < 0 ? [job, ...rows] : rows.map((one) => (one.id === job.id ? job : one));
    this.update();
  }

  view(): TemplateResult {
    return html`${pageHead('Tune', 'Which plan should this model use on this cluster, and how good is that answer?')}
      ${shown(this.choices, (choices) => choices.clusters.length === 0
        ? emptyState('No probed cluster', 'Planning starts from what was measured.', command('tune probe --hosts hosts.txt --cluster lab', 'probe command'))
        : html`<section class="card stack">${this.form(choices)}</section>`)}
      ${this.problem ? problemState(this.problem) : nothing}
      ${this.answer ? html`<section class="card stack" data-part="answer">${this.result(this.answer)}</section>` : nothing}
      ${this.cluster ? html`<section class="card stack"><h2>Measure ${this.cluster} again</h2>${probeForm(this.cluster, this.signal)}</section>` : nothing}
      <section class="card stack"><h2>Jobs</h2>${shown(this.jobs, (jobs) => jobs.length === 0 ? html`<p class="muted">Probes and runs that are started here appear here.</p>` : jobTable(jobs))}</section>`;
  }

  private form(choices: Choices): TemplateResult {
    const profile = profileOf(choices, this.model);
    const cluster = choices.clusters.find((one) => one.name === this.cluster);
    const ranks = cluster?.hosts.reduce((sum, host) => sum + host.slots, 0) ?? 1;
    return html`<form class="form" data-form="plan" @submit=${(event: SubmitEvent) => void this.submit(event)}>
      ${select('Model', 'model', modelOptions(choices), this.model, (value) => { this.model = value; setQuery({ model: value }); this.update(); }, profile ? `${plural(profile.layers, 'layer')}, ${plural(profile.tensors, 'tensor')}, times ${profile.how}` : nothing)}
      ${select('Cluster', 'cluster', choices.clusters.map((one) => ({ value: one.name, text: one.name })), this.cluster, (value) => { this.cluster = value; setQuery({ cluster: value }); this.update(); }, `${plural(ranks, 'rank')} over ${cluster?.transport ?? '–'}`)}
      <label class="field">Workers<input type="number" name="workers" min="1" max="4096" placeholder=${`all ${ranks}`} /></label>
      <label class="field">Servers on workers' hosts, at most<input type="number" name="servers" min="1" max="4096" placeholder="as many as workers" /></label>
      <label class="field">Dedicated servers<input type="number" name="dedicated" min="0" max="4096" placeholder="none" /></label>
      <label class="field">Batch a worker<input type="number" name="batch" min="1" max="1048576" placeholder=${profile ? batchText(profile.batch) : ''} /><span class="hint">layer times grow in proportion</span></label>
      ${select('The program waits for', 'barrier', BARRIERS, this.barrier, (value) => { this.barrier = value as Barrier; this.update(); }, 'before its next forward pass; all plans are priced by that')}
      <label class="row"><input type="checkbox" name="thorough" />Search the methods' settings closely: some get 1 % faster, and it takes about five times as long</label>
      ${this.version.value?.scope === 'operate' ? html`<label class="field">Check by running, seconds<input type="number" name="check" min="1" max="86400" placeholder="predict only" /><span class="hint">runs the leading plans on its hosts, and corrects costs by what that takes</span></label>
        <label class="field">Verify by running, seconds at most<input type="number" name="verify" min="1" max="86400" placeholder="predict only" /><span class="hint">replays on its hosts what the doubt cannot tell apart; then the measurement chooses</span></label>` : nothing}
      <label class="field wide">Or upload a profile (commtune/profile/1)
        <input type="file" name="profile" accept="application/json,.json" aria-describedby="upload-says" @change=${(event: Event) => void this.upload(event)} />
        <span id="upload-says" role="status" class=${this.uploadProblem ? 'wrong' : 'hint'}>${this.uploadProblem || this.uploaded || nothing}</span>
      </label>
      <div class="wide row"><button class="primary" type="submit" ?disabled=${this.busy}>${this.busy ? 'Planning…' : 'Plan it'}</button><span class="muted small">Ranks the published methods that it knows and a plan of its own, and says how far each is from a lower bound on what the fits allow.</span></div>
    </form>`;
  }

  private async upload(event: Event): Promise<void> {
    const file = (event.target as HTMLInputElement).files?.[0];
    if (!file) return;
    this.uploaded = this.uploadProblem = '';
    try {
      if (file.size > LARGEST_PROFILE) throw new Problem('refused', `${file.name} is ${size(file.size)}`, `a profile may be ${size(LARGEST_PROFILE)}`);
      const profile = JSON.parse(await file.text()) as never;
      const stored = await client.post('/v1/profiles', profile, {}, { signal: this.signal });
      this.model = stored.digest;
      await this.loadChoices();
      this.uploaded = `${stored.model} is stored and chosen: ${size(stored.gradient_bytes)} of gradients, ${time(stored.compute_seconds)} of compute.`;
    } catch (error) {
      if (isAbort(error)) return;
      this.uploadProblem = error instanceof Problem ? `${error.title}. ${error.detail}` : `${file.name} is not JSON: ${error instanceof Error ? error.message : ''}`;
    }
    this.update();
  }

  private async submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const fields = (event.target as HTMLFormElement).elements;
    const number = (name: string): number | undefined => Number((fields.namedItem(name) as HTMLInputElement | null)?.value) || undefined;
    const body: PlanRequest = { model: this.model, cluster: this.cluster, draws: 64, seed: 1, keep: 'all', strict: false };
    const workers = number('workers');
    const servers = number('servers');
    const dedicated = number('dedicated');
    const batch = number('batch');
    const check = number('check');
    const verify = number('verify');
    if (workers) body.workers = workers;
    if (servers) body.servers = servers;
    if (dedicated) body.dedicated_servers = dedicated;
    const usual = this.choices.value ? profileOf(this.choices.value, this.model)?.batch : undefined;
    if (batch && batch !== usual) body.overrides = { bandwidth_scale: 1, latency_scale: 1, device_speed_scale: 1, gradient_scale: 1, batch };
    if (this.barrier) body.barrier = this.barrier;
    if ((fields.namedItem('thorough') as HTMLInputElement).checked) body.thorough = true;
    if (check) body.check = `${check}s`;
    if (verify) body.verify = { plans: 3, budget_seconds: verify };
    this.busy = true;
    this.problem = undefined;
    this.update();
    try {
      const reply = await client.post('/v1/plans', body, {}, { signal: this.signal });
      if ('kind' in reply) navigate(`/jobs/${reply.id}`);
      else this.answer = planned(reply);
    } catch (error) {
      if (isAbort(error)) return;
      this.answer = undefined;
      this.problem = error instanceof Problem ? error : new Problem('defect', 'This page has a defect', String(error));
    }
    this.busy = false;
    this.update();
  }

  private result(answer: PlanAnswer): TemplateResult {
    const { low_seconds: low, high_seconds: high } = answer.iteration;
    return html`<div class="row"><span class="badge accent">${answer.title}</span><span class="muted">${answer.road}, over ${answer.transport}</span>${wireBadge(answer)}${choiceBadge(answer, answer.method)}</div>
      <p class="lead">${answer.reason}</p>
      ${incompleteNote(answer)}
      ${doubtfulNote(answer.doubtful)}
      ${marksNote(answer)}
      <dl class="stats">
        ${stat('Iteration', time(answer.iteration.seconds), low !== null && high !== null ? `${time(low)} to ${time(high)}` : nothing)}
        ${stat('Speed-up', significant(answer.speedup), `of ${answer.workers}`)}
        ${stat('Samples a second', samplesRate(answer.samples_per_second))}
        ${boundStat(answer, answer.gap_ratio)}
      </dl>
      ${answer.notes.length > 0 ? html`<ul class="list muted">${answer.notes.map((note) => html`<li>${note}</li>`)}</ul>` : nothing}
      <div class="row"><a class="button" href="/plans/${answer.id}">Timeline, messages and settings of plan ${answer.id}</a></div>
      ${command(answer.launch, 'launch command')}
      ${rankingFigure(this, { id: answer.digest, answer, chosen: answer.method, selected: answer.method, stamp: '', runOf: () => undefined, onSelect: (method) => navigate(`/plans/${answer.id}?method=${encodeURIComponent(method)}`) })}`;
  }
}
