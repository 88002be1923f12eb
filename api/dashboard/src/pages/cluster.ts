// One cluster: facts, the matrix of links with verdicts, scalars, probes; and a new probe.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client } from '../api/client';
import type { ClusterDetail, FitCurves, Links, PlanSummary } from '../api/types';
import { cellsChart, heatColor, type Cell } from '../charts/cells';
import { tip } from '../charts/chart';
import { age, percent, plural, rate, rateOf, significant, size, time } from '../format';
import { onLive } from '../live';
import { memo, Page, type Resource } from '../page';
import { ago, badge, command, pageHead, segmented, stat } from '../parts/bits';
import { chartFigure } from '../parts/figure';
import { probeForm } from '../parts/probe_form';
import { emptyState, shown } from '../parts/states';
import { table } from '../parts/table';
import { setQuery, type Route } from '../router';
import { ageOfFit, hostsText, marksNote } from './cluster_facts';

type Link = Links['links'][number];
type Measure = 'bandwidth' | 'latency';
type Scalars = Record<string, { value: number; half_width: number } | undefined>;

export class ClusterPage extends Page {
  readonly title: string;
  private readonly name: string;
  private measure: Measure;
  private readonly cluster: Resource<ClusterDetail>;
  private readonly links: Resource<Links>;
  private readonly curves: Resource<FitCurves>;
  private readonly plans: Resource<PlanSummary[]>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.name = route.parts[1]!;
    this.title = this.name;
    this.measure = route.query.get('show') === 'latency' ? 'latency' : 'bandwidth';
    const name = this.name;
    this.cluster = this.resource((signal) => client.get('/v1/clusters/{name}', { name }, undefined, { signal }));
    this.links = this.resource((signal) => client.get('/v1/clusters/{name}/links', { name }, undefined, { signal }));
    this.curves = this.resource((signal) => client.get('/v1/clusters/{name}/fits', { name }, { points: 2 }, { signal }));
    this.plans = this.resource(async (signal) => (await client.get('/v1/plans', {}, { cluster: name, limit: 8 }, { signal })).rows);
    this.load();
    onLive('fit', this.signal, () => this.load());
  }

  private load(): void {
    void this.cluster.load().then(() => {
      if (!this.cluster.value?.current_fit) return;
      void this.links.load();
      void this.curves.load();
      void this.plans.load();
    });
  }

  view(): TemplateResult {
    return html`${shown(this.cluster, (cluster) => html`<div class="page">${this.body(cluster)}</div>`)}`;
  }

  private body(cluster: ClusterDetail): TemplateResult {
    const fit = cluster.current_fit;
    return html`${pageHead(cluster.name, html`${hostsText(cluster.hosts)} over ${cluster.transports.map((one) => one.transport).join(', ') || cluster.transport}`, html`
        ${ageOfFit(fit ?? undefined)}
        ${fit ? html`<a class="button" href="/fits?cluster=${encodeURIComponent(cluster.name)}">See its fits</a><a class="button" href="/tune?cluster=${encodeURIComponent(cluster.name)}">Plan a model</a>` : nothing}`,
      html`<a href="/clusters">Clusters</a>`)}
      ${fit ? marksNote(fit) : nothing}
      ${fit ? html`
        <div class="main-and-side">
          <section class="card">${shown(this.links, (links) => this.matrix(links))}</section>
          <aside class="stack">
            <section class="card stack">${shown(this.curves, (curves) => this.scalars(curves))}</section>
            <section class="card stack">${this.facts(cluster)}</section>
          </aside>
        </div>` : emptyState('Not fitted yet', 'No probe of this cluster as it is now was completed.', command(`tune probe --cluster ${cluster.name}`, 'probe command'))}
      <div class="halves">
        <section class="card stack"><h2>Probes</h2>${this.probes(cluster)}</section>
        <section class="card stack"><h2>Latest plans</h2>${fit ? shown(this.plans, (plans) => this.planList(plans)) : html`<p class="muted">Needs a fit.</p>`}</section>
      </div>
      <section class="card stack"><h2>Probe it again</h2>${probeForm(cluster.name, this.signal)}</section>`;
  }

  // ---- links ----

  private matrix(links: Links): TemplateResult {
    const verdicts = links.verdicts.length === 0
      ? html`<p class="row">${badge('good', 'No verdicts')} <span class="muted">No host or link departs from its class.</span></p>`
      : html`<ul class="list">${links.verdicts.map((verdict) => html`<li>${badge('bad', `${significant(verdict.ratio, 2)} times`)} ${verdict.text}</li>`)}</ul>`;
    if (links.hosts.length < 2 || links.links.length === 0) {
      return html`<h2>Links between hosts</h2><p class="muted">One host has no links between hosts. What its ranks have between them is under <a href="/fits?cluster=${encodeURIComponent(this.name)}">fits</a>.</p>${verdicts}`;
    }
    const show = this.measure;
    const valueOf = (link: Link): number => (show === 'bandwidth' ? (link.bandwidth_bytes_per_second ?? 0) : link.latency_seconds);
    const text = (link: Link): string => (show === 'bandwidth' ? rate(link.bandwidth_bytes_per_second) : time(link.latency_seconds));
    const values = links.links.map(valueOf).filter((value) => value > 0);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    // Alike links look alike: the scale covers a factor of two at least.
    const span = Math.max(Math.log(most / least), Math.log(2));
    const slow = (link: Link): boolean => links.verdicts.some((verdict) => verdict.host === link.from || verdict.host === link.to) && valueOf(link) > 0;
    const cells = links.links.map((link): Cell => ({
      column: link.to, row: links.hosts.length - 1 - link.from,
      color: (colors) => valueOf(link) > 0 ? heatColor(colors, show === 'bandwidth' ? 1 - Math.log(most / valueOf(link)) / span : Math.log(valueOf(link) / least) / span) : colors.line,
      text: links.hosts.length <= 12 ? text(link) : '', outlined: slow(link), outline: (colors) => colors.bad,
      tip: () => tip(`${links.hosts[link.from]} to ${links.hosts[link.to]}`, [['latency', time(link.latency_seconds)], ['bandwidth, one way', rate(link.bandwidth_bytes_per_second)], ['per byte', `${significant(link.beta_seconds_per_byte * 1e9)} ns`]], slow(link) ? 'one of its hosts has a verdict' : ''),
    }));
    return html`${chartFigure<Link>({
      id: 'links', title: 'Links between hosts', text: 'From the host of the row to the host of the column, one direction.', size: 'map',
      spoken: `Matrix of ${show} between ${plural(links.hosts.length, 'host')}: from ${show === 'bandwidth' ? rate(least) : time(least)} to ${show === 'bandwidth' ? rate(most) : time(most)}. ${plural(links.verdicts.length, 'verdict')}.`,
      chart: cellsChart(`links-${this.name}-${show}`, memo(this, `matrix-${links.session}-${show}`, () => ({ columns: links.hosts, rows: [...links.hosts].reverse(), columnName: 'to', rowName: 'from', cells }))),
      tools: segmented('What the matrix shows', [{ value: 'bandwidth', text: 'Bandwidth' }, { value: 'latency', text: 'Latency' }], show, (value) => this.change(value as Measure)),
      legend: html`${verdicts}<div class="legend" aria-hidden="true"><span class="heat">${show === 'bandwidth' ? rate(most / Math.exp(span)) : time(least)}<i>${[1, 2, 3, 4, 5, 6].map(() => html`<b></b>`)}</i>${show === 'bandwidth' ? rate(most) : time(least * Math.exp(span))}</span>${links.verdicts.length > 0 ? html`<span><i class="swatch verdict"></i>one of its hosts has a verdict</span>` : nothing}</div>`,
      rows: links.links,
      columns: [
        { title: 'From', key: 'from', value: (link) => links.hosts[link.from] },
        { title: 'To', key: 'to', value: (link) => links.hosts[link.to] },
        { title: 'Latency', key: 'latency_seconds', numeric: true, value: (link) => link.latency_seconds, show: (link) => time(link.latency_seconds) },
        { title: 'Bandwidth', key: 'bandwidth_bytes_per_second', numeric: true, value: (link) => link.bandwidth_bytes_per_second, show: (link) => rate(link.bandwidth_bytes_per_second) },
      ],
    })}`;
  }

  private change(measure: Measure): void {
    this.measure = measure;
    setQuery({ show: measure === 'bandwidth' ? '' : measure });
    this.update();
  }

  // ---- the rest ----

  private scalars(curves: FitCurves): TemplateResult {
    const scalars = curves.scalars as Scalars;
    const { reduce_seconds_per_byte: sum, copy_seconds_per_byte: copy, interference, backlog_seconds: headOfLine, connection_backlog_seconds: connection, jitter_seconds: jitter } = scalars;
    return html`<h2>Beside the links</h2><dl class="stats">
      ${stat('Summing', rateOf(sum!.value))} ${stat('Copying', rateOf(copy!.value))}
      ${stat('Compute slows by', percent(interference!.value), 'while bytes move')} ${stat('Jitter', time(jitter!.value), 'a step')}
      ${stat('Head-of-line wait', time(headOfLine!.value), 'of what is urgent, at a busy server')} ${stat('Head-of-line wait', time(connection!.value), 'on a busy connection')}
      ${this.gpu(scalars)}
    </dl>`;
  }

  /** Of a cluster whose GPUs were probed. */
  private gpu({ contention, launch_seconds: launch, upload_seconds_per_byte: upload, download_seconds_per_byte: download }: Scalars): TemplateResult | typeof nothing {
    if (!launch || !upload || !download) return nothing;
    return html`${stat('Traffic slows by', percent(contention!.value), 'while layers run')} ${stat('Kernel launch', time(launch.value))}
      ${stat('From the host', rateOf(upload.value), 'to a GPU')} ${stat('To the host', rateOf(download.value), 'from a GPU')}`;
  }

  private facts(cluster: ClusterDetail): TemplateResult {
    return html`<h2>What it is</h2><dl class="facts">
      <dt>Fingerprint</dt><dd class="mono">${cluster.fingerprint}</dd>
      <dt>Hosts</dt><dd>${cluster.hosts.map((host) => `${host.name}:${host.slots}`).join(' ')}</dd>
      <dt>Last seen</dt><dd>${ago(cluster.seen)}</dd>
    </dl>
    <details class="numbers"><summary>What the fingerprint is made of</summary>
      <dl class="facts">${Object.entries(cluster.facts).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    </details>`;
  }

  private probes(cluster: ClusterDetail): TemplateResult {
    if (cluster.probes.length === 0) return html`<p class="muted">None yet.</p>`;
    const kinds = { running: 'accent', complete: 'good', interrupted: 'warn', failed: 'bad' } as const;
    return table(cluster.probes.slice(0, 12), [
      { title: 'Probe', key: 'id', numeric: true, value: (probe) => probe.id },
      { title: 'State', key: 'state', value: (probe) => probe.state, show: (probe) => badge(kinds[probe.state], probe.state) },
      { title: 'Samples', key: 'samples', numeric: true, value: (probe) => probe.samples },
      { title: 'Largest', key: 'last_bytes', numeric: true, value: () => '', show: (probe) => size((probe.settings as { last_bytes?: number } | null)?.last_bytes) },
      { title: 'Started', key: 'created', value: (probe) => probe.created, show: (probe) => html`<span title=${probe.error}>${age(probe.created)}${probe.error ? html` · ${probe.error}` : nothing}</span>` },
    ], { caption: 'Probes of this cluster, newest first' });
  }

  private planList(plans: PlanSummary[]): TemplateResult {
    if (plans.length === 0) return html`<p class="muted">None yet. <a href="/tune?cluster=${encodeURIComponent(this.name)}">Plan a model</a>.</p>`;
    return table(plans, [
      { title: 'Plan', key: 'id', numeric: true, value: (plan) => plan.id, show: (plan) => html`<a href="/plans/${plan.id}">${plan.id}</a>` },
      { title: 'Model', key: 'model', value: (plan) => plan.model },
      { title: 'Method', key: 'method', value: (plan) => plan.method },
      { title: 'Predicted', key: 'predicted_seconds', numeric: true, value: (plan) => plan.predicted_seconds, show: (plan) => time(plan.predicted_seconds) },
    ], { caption: 'Latest plans on this cluster' });
  }
}
