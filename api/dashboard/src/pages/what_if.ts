// More workers, another network, another device: everything is planned again through the service as a slider moves.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client, isAbort, Problem } from '../api/client';
import { planned } from '../api/planned';
import type { PhaseMap, PlanAnswer, PlanRequest, Scaling, ServerSweep } from '../api/types';
import { factor, percent, samplesRate, significant, signedPercent, time } from '../format';
import { debounced, Page, type Resource } from '../page';
import { badge, command, logarithmic, pageHead, placesSlider, select, stat } from '../parts/bits';
import { fetchChoices, modelOptions, normalized, profileOf, type Choices } from '../parts/choose';
import { phaseFigure, serversFigure, speedupFigure } from '../parts/what_if_figures';
import { choiceBadge, doubtfulNote, incompleteNote, rankingFigure } from '../parts/ranking';
import { emptyState, shown } from '../parts/states';
import { navigate, setQuery, type Route } from '../router';
import { marksNote } from './cluster_facts';

type Overrides = Partial<NonNullable<PlanRequest['overrides']>>;

interface Question {
  model: string;
  cluster: string;
  bandwidth: number;
  latency: number;
  device: number;
  batch: number;
  most: number;
}

const twoDigits = (value: number): number => Number(value.toPrecision(2));
const NETWORK_FACTORS = logarithmic(0.01, 100, twoDigits);
const DEVICE_FACTORS = logarithmic(0.1, 10, (value) => Number(value.toPrecision(3)));
const BATCHES = logarithmic(1, 4096, Math.round);
const SCALES = ['bandwidth', 'latency', 'device'] as const;

export class WhatIfPage extends Page {
  readonly title = 'What if';
  private readonly question: Question;
  private readonly choices: Resource<Choices>;
  private readonly base: Resource<PlanAnswer>;
  private readonly answer: Resource<PlanAnswer>;
  private readonly scaling: Resource<Scaling>;
  private readonly servers: Resource<ServerSweep>;
  private readonly map: Resource<PhaseMap>;
  private selected = '';
  private readonly hidden = new Set<string>();
  private readonly replan = debounced(150, () => void this.answer.load());
  private readonly redrawCurves = debounced(500, () => this.loadCurves());
  private keeping = false;
  private keepProblem = '';

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    const number = (name: string, otherwise: number): number => Number(route.query.get(name)) || otherwise;
    this.question = {
      model: route.query.get('model') ?? '', cluster: route.query.get('cluster') ?? '',
      bandwidth: number('bandwidth', 1), latency: number('latency', 1), device: number('device', 1), batch: number('batch', 0), most: number('most', 64),
    };
    this.choices = this.resource((signal) => fetchChoices(signal));
    this.base = this.resource((signal) => this.plan({}, signal));
    this.answer = this.resource((signal) => this.plan(this.overrides(), signal));
    this.scaling = this.resource((signal) => client.get('/v1/scaling', {}, { ...this.subject(), ...this.overrides(), most: this.question.most }, { signal }));
    this.servers = this.resource((signal) => client.get('/v1/servers', {}, { ...this.subject(), ...this.overrides() }, { signal }));
    // Its rows are factors of the measured bandwidth, so that slider alone does not move it.
    this.map = this.resource((signal) => client.get('/v1/phase-map', {}, { ...this.subject(), ...this.assumedDevice(), latency_scales: String(this.question.latency), workers: this.workers().join(), bandwidth_scales: BANDWIDTHS.join() }, { signal }));
    void this.start();
  }

  private subject(): { model: string; cluster: string } {
    return { model: this.question.model, cluster: this.question.cluster };
  }

  private async start(): Promise<void> {
    await this.choices.load();
    const choices = this.choices.value;
    if (!choices || choices.clusters.length === 0) return;
    this.question.model = normalized(choices, this.question.model);
    if (!choices.clusters.some((one) => one.name === this.question.cluster)) this.question.cluster = choices.clusters[0]!.name;
    this.loadAll();
  }

  private loadAll(): void {
    void this.base.load();
    void this.answer.load();
    this.loadCurves();
  }

  private loadCurves(): void {
    for (const resource of [this.scaling, this.servers, this.map]) void resource.load();
  }

  private toggle(method: string): void {
    if (!this.hidden.delete(method)) this.hidden.add(method);
    this.update();
  }

  private async keep(): Promise<void> {
    this.keeping = true;
    this.keepProblem = '';
    this.update();
    try {
      const { id } = await this.plan(this.overrides(), this.signal, 'all');
      navigate(`/plans/${id}`);
    } catch (error) {
      if (isAbort(error)) return;
      this.keepProblem = error instanceof Problem ? `${error.title}. ${error.detail}` : String(error);
    }
    this.keeping = false;
    this.update();
  }

  private batchNow(): number {
    return this.question.batch || (this.choices.value ? (profileOf(this.choices.value, this.question.model)?.batch ?? 1) : 1);
  }

  private overrides(): Overrides {
    const { bandwidth, latency } = this.question;
    return { ...(bandwidth !== 1 ? { bandwidth_scale: bandwidth } : {}), ...(latency !== 1 ? { latency_scale: latency } : {}), ...this.assumedDevice() };
  }

  private assumedDevice(): Overrides {
    const { device, batch } = this.question;
    return { ...(device !== 1 ? { device_speed_scale: device } : {}), ...(batch ? { batch } : {}) };
  }

  /** Nothing is stored unless asked for: a slider passes many questions on its way. */
  private async plan(overrides: Overrides, signal: AbortSignal, keep: NonNullable<PlanRequest['keep']> = 'none'): Promise<PlanAnswer> {
    const body = { ...this.subject(), draws: 16, seed: 1, keep, ...(Object.keys(overrides).length > 0 ? { overrides } : {}) } as PlanRequest;
    const reply = await client.post('/v1/plans', body, {}, { signal });
    return planned(reply);
  }

  /** Powers of two up to the most that the curve shows, at most 8 of them and this cluster's own. */
  private workers(): number[] {
    const own = this.ownWorkers();
    const all = [2, 4, 8, 16, 32, 64, own].filter((number) => number > 1);
    return [...new Set(all)].sort((a, b) => a - b);
  }

  private ownWorkers(): number {
    return this.choices.value?.clusters.find((one) => one.name === this.question.cluster)?.hosts.reduce((sum, host) => sum + host.slots, 0) ?? 2;
  }

  private set(changes: Partial<Question>): void {
    Object.assign(this.question, changes);
    const { model, cluster, bandwidth, latency, device, batch, most } = this.question;
    setQuery({ model, cluster, bandwidth: bandwidth === 1 ? '' : bandwidth, latency: latency === 1 ? '' : latency, device: device === 1 ? '' : device, batch: batch || '', most: most === 64 ? '' : most });
    if (changes.model !== undefined || changes.cluster !== undefined) {
      for (const resource of [this.base, this.answer, this.scaling, this.servers, this.map]) resource.value = undefined;
      this.selected = '';
      this.loadAll();
    } else if (changes.most !== undefined) {
      void this.scaling.load();
    } else {
      this.replan();
      this.redrawCurves();
    }
    this.update();
  }

  view(): TemplateResult {
    return html`${pageHead('What if', 'Move a slider: the service plans again. Factors are assumptions of yours; everything else is measured.')}
      ${shown(this.choices, (choices) => choices.clusters.length === 0
        ? emptyState('Needs a probed cluster', 'What-ifs start from what was measured.', command('tune probe --hosts hosts.txt --cluster lab', 'probe command'))
        : html`<div class="page">${this.body(choices)}</div>`)}`;
  }

  private body(choices: Choices): TemplateResult {
    const { model, cluster } = this.question;
    return html`<div class="choices card">
        ${select('Model', 'model', modelOptions(choices), model, (value) => this.set({ model: value, batch: 0 }))}
        ${select('Cluster', 'cluster', choices.clusters.map((one) => ({ value: one.name, text: one.name })), cluster, (value) => this.set({ cluster: value }))}
      </div>
      <div class="main-and-side turn">
        <section class="card stack">${shown(this.answer, (answer) => this.now(answer))}</section>
        <aside class="card stack" aria-label="Assumptions">${this.sliders()}</aside>
      </div>
      <section class="card">${shown(this.scaling, (scaling) => speedupFigure(scaling, {
        most: this.question.most, own: this.ownWorkers(), hidden: this.hidden, onMost: (most) => this.set({ most }), onToggle: (method) => this.toggle(method),
      }))}</section>
      <section class="card">${shown(this.map, (map) => phaseFigure(map, this.ownWorkers()))}</section>
      <section class="card">${shown(this.servers, (servers) => serversFigure(servers))}</section>`;
  }

  private sliders(): TemplateResult {
    const { bandwidth, latency, device } = this.question;
    const batch = this.batchNow();
    const changed = SCALES.some((name) => this.question[name] !== 1) || this.question.batch !== 0;
    const scale = (low: string, high: string) => (value: number): string => (value === 1 ? 'as measured' : `${factor(value)} (${value < 1 ? low : high})`);
    return html`<h2>Suppose</h2>
      ${placesSlider('Bandwidth', 'bandwidth', bandwidth, NETWORK_FACTORS, scale('slower', 'faster'), (value) => this.set({ bandwidth: value }))}
      ${placesSlider('Latency', 'latency', latency, NETWORK_FACTORS, scale('shorter', 'longer'), (value) => this.set({ latency: value }))}
      ${placesSlider('Device speed', 'device', device, DEVICE_FACTORS, scale('slower', 'faster'), (value) => this.set({ device: value }))}
      ${batch > 0 ? placesSlider('Batch', 'batch', batch, BATCHES, (value) => `${value} a worker`, (value) => this.set({ batch: value })) : html`<p class="small muted">The profile does not say of which batch its times are.</p>`}
      <button type="button" data-action="reset" ?disabled=${!changed} @click=${() => this.set({ bandwidth: 1, latency: 1, device: 1, batch: 0 })}>As measured</button>`;
  }

  private now(answer: PlanAnswer): TemplateResult {
    const base = this.base.value;
    const change = base ? answer.iteration.seconds / base.iteration.seconds - 1 : 0;
    return html`<div class="row"><span class="badge accent" data-part="winner">${answer.title}</span><span class="muted">${answer.road}</span>
        ${base && base.method !== answer.method ? badge('warn', `instead of ${base.title}`) : nothing}
        ${choiceBadge(answer, answer.method)}</div>
      <p>${answer.reason}</p>
      ${incompleteNote(answer)}
      ${doubtfulNote(answer.doubtful)}
      ${marksNote(answer)}
      <dl class="stats">
        ${stat('Iteration', html`<span data-part="iteration">${time(answer.iteration.seconds)}</span>`, base && Math.abs(change) > 0.0005 ? `${signedPercent(change)} to as measured` : nothing)}
        ${stat('Speed-up', significant(answer.speedup), `of ${answer.workers}`)}
        ${stat('Samples a second', samplesRate(answer.samples_per_second))}
        ${stat('Exposed', time(answer.iteration.exposed_seconds))}
        ${stat('Above the bound', percent(answer.gap_ratio))}
      </dl>
      <div class="row"><button type="button" data-action="keep" ?disabled=${this.keeping} @click=${() => void this.keep()}>${this.keeping ? 'Storing…' : 'Store this plan and open it'}</button>
        <span class="small muted">With its timeline, messages and settings. Moving a slider stores nothing.</span></div>
      <p class="wrong field" role="alert">${this.keepProblem}</p>
      <details class="numbers" ?open=${false}><summary>All ${answer.ranking.length} methods</summary>
        ${rankingFigure(this, { id: answer.digest + String(answer.iteration.seconds), answer, chosen: answer.method, selected: this.selected || answer.method, stamp: '', runOf: () => undefined, onSelect: (method) => { this.selected = method; this.update(); } })}
      </details>`;
  }
}

/** Of the map's rows. */
const BANDWIDTHS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10];
