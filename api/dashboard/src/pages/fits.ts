// Measured points and fitted lines of a cluster, and how one fit compares with an earlier one.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client } from '../api/client';
import type { Cluster, FitCurve, FitCurves } from '../api/types';
import { fitChart, WIDEST_RESIDUAL, type FitSeries } from '../charts/fit_chart';
import type { Column } from '../download';
import { count, date, percent, plural, rateOf, signedPercent, size, time } from '../format';
import { onLive } from '../live';
import { memo, Page, type Resource } from '../page';
import { badge, command, pageHead, select } from '../parts/bits';
import { chartFigure } from '../parts/figure';
import { emptyState, shown } from '../parts/states';
import { table } from '../parts/table';
import { setQuery, type Route } from '../router';

type Point = FitCurve['points'][number] & { readonly of: string };

/** R² under this, or half the points further off than that, is called a poor fit. */
const POOR = { r_squared: 0.8, median_relative: 0.25 };

export function curveName(curve: FitCurve): string {
  return curve.road_text ? `${curve.subject}, ${curve.road_text}, ${plural(curve.workers, 'worker')}` : curve.subject;
}

const SETTINGS: Record<FitCurve['setting'], string> = { alone: 'one in flight', streamed: 'many in flight', duplex: 'both ways at once' };

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function keyOf(curve: FitCurve): string {
  return `${curveName(curve)} | ${curve.setting}`;
}

function isPoor(curve: FitCurve): boolean {
  return curve.quality.r_squared < POOR.r_squared || curve.quality.median_relative > POOR.median_relative;
}

export class FitsPage extends Page {
  readonly title = 'Fits';
  private readonly clusters: Resource<Cluster[]>;
  private readonly fit: Resource<FitCurves>;
  private readonly other: Resource<FitCurves>;
  private cluster: string;
  private id: string;
  private against: string;
  private chosen: string;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.cluster = route.query.get('cluster') ?? '';
    this.id = route.query.get('fit') ?? '';
    this.against = route.query.get('against') ?? '';
    this.chosen = route.query.get('curve') ?? '';
    const fetch = (id: () => string) => (signal: AbortSignal) =>
      client.get('/v1/clusters/{name}/fits', { name: this.cluster }, { points: 400, ...(id() ? { fit: Number(id()) } : {}) }, { signal });
    this.clusters = this.resource(async (signal) => (await client.get('/v1/clusters', {}, { limit: 200 }, { signal })).rows.filter((one) => one.current_fit));
    this.fit = this.resource(fetch(() => this.id));
    this.other = this.resource(fetch(() => this.against));
    void this.start();
    onLive('fit', this.signal, () => void this.start());
  }

  private async start(): Promise<void> {
    await this.clusters.load();
    if (!this.cluster) this.cluster = this.clusters.value?.[0]?.name ?? '';
    if (!this.cluster) return;
    void this.fit.load();
    if (this.against) void this.other.load();
  }

  private change(changes: { cluster?: string; fit?: string; against?: string; curve?: string }): void {
    if (changes.cluster !== undefined) {
      this.cluster = changes.cluster;
      this.id = this.against = '';
      this.other.value = undefined;
    }
    if (changes.fit !== undefined) this.id = changes.fit;
    if (changes.against !== undefined) this.against = changes.against;
    if (changes.curve !== undefined) this.chosen = changes.curve;
    setQuery({ cluster: this.cluster, fit: this.id, against: this.against, curve: this.chosen });
    if (changes.cluster !== undefined || changes.fit !== undefined) void this.fit.load();
    if (this.against && changes.against !== undefined) void this.other.load();
    this.update();
  }

  view(): TemplateResult {
    return html`${pageHead('Fits', 'What was measured, the cost that was fitted to it, and how far the one is from the other.')}
    ${shown(this.clusters, (clusters) => clusters.length === 0
      ? emptyState('Nothing is fitted yet', 'A probe measures a cluster\'s links and roads and fits their costs.', command('tune probe --hosts hosts.txt --cluster lab', 'probe command'))
      : html`<div class="page">${this.controls(clusters)}${shown(this.fit, (fit) => html`<div class="page">${this.body(fit)}</div>`)}</div>`)}`;
  }

  private controls(clusters: Cluster[]): TemplateResult {
    const fit = this.fit.value;
    const history = fit?.history ?? [];
    const text = (one: { id: number; created: string; stale: boolean }): string => `${one.id}, ${date(one.created)}${one.stale ? ', old' : ''}`;
    return html`<div class="choices card">
      ${select('Cluster', 'cluster', clusters.map((one) => ({ value: one.name, text: one.name })), this.cluster, (cluster) => this.change({ cluster }))}
      ${select('Fit', 'fit', [{ value: '', text: 'the current one' }, ...history.map((one) => ({ value: String(one.id), text: text(one) }))], this.id, (id) => this.change({ fit: id }))}
      ${select('Compare with', 'against', [{ value: '', text: history.length < 2 ? 'no other fit yet' : 'nothing' }, ...history.filter((one) => one.id !== fit?.fit).map((one) => ({ value: String(one.id), text: text(one) }))], this.against, (against) => this.change({ against }))}
      ${fit ? select('Curve', 'curve', fit.curves.map((curve) => ({ value: keyOf(curve), text: `${curveName(curve)}: ${SETTINGS[curve.setting]}` })), this.curveOf(fit)?.key ?? '', (curve) => this.change({ curve })) : nothing}
    </div>`;
  }

  private curveOf(fit: FitCurves): { key: string; curve: FitCurve } | undefined {
    const curve = fit.curves.find((one) => keyOf(one) === this.chosen) ?? fit.curves[0];
    return curve ? { key: keyOf(curve), curve } : undefined;
  }

  private body(fit: FitCurves): TemplateResult {
    const found = this.curveOf(fit);
    if (!found) return emptyState('This fit has no curves', 'Its probe measured too little.');
    const other = this.against ? this.other.value?.curves.find((one) => keyOf(one) === found.key) : undefined;
    return html`${this.against && this.other.problem ? shown(this.other, () => nothing) : nothing}
      ${this.against && this.other.value && !other ? html`<p class="note warn">Fit ${this.other.value.fit} does not have this curve: its probe did not measure it.</p>` : nothing}
      <section class="card">${this.figure(fit, found.key, found.curve, other)}</section>
      <section class="card stack"><h2>All curves of fit ${fit.fit} ${fit.stale ? badge('warn', 'old fit: probe again') : nothing}</h2>${this.all(fit, found.key)}</section>`;
  }

  private figure(fit: FitCurves, key: string, curve: FitCurve, other: FitCurve | undefined): TemplateResult {
    const series: FitSeries[] = [{ name: `fit ${fit.fit}`, curve }];
    if (other) series.push({ name: `fit ${this.other.value!.fit}`, curve: other });
    const rows: Point[] = series.flatMap((one) => one.curve.points.map((point) => ({ ...point, of: one.name })));
    const quality = curve.quality;
    const thinned = curve.points_total > curve.points.length ? ` Of ${count(curve.points_total)} measured points ${count(curve.points.length)} are shown: the service thinned them to the fastest, the middle and the slowest of neighbouring sizes.` : '';
    const beyond = rows.some((point) => Math.abs(point.residual_ratio) > WIDEST_RESIDUAL) ? ` Residuals beyond ${percent(WIDEST_RESIDUAL, 0)} are drawn at the edge.` : '';
    const columns: Column<Point>[] = [
      { title: 'Fit', key: 'fit', value: (point) => point.of },
      { title: 'Size', key: 'size_bytes', numeric: true, value: (point) => point.size_bytes, show: (point) => size(point.size_bytes) },
      { title: 'Measured', key: 'median_seconds', numeric: true, value: (point) => point.median_seconds, show: (point) => time(point.median_seconds) },
      { title: '95 % interval', key: 'half_width_seconds', numeric: true, value: (point) => point.half_width_seconds, show: (point) => `± ${time(point.half_width_seconds)}` },
      { title: 'Fitted', key: 'fitted_seconds', numeric: true, value: (point) => point.fitted_seconds, show: (point) => time(point.fitted_seconds) },
      { title: 'Residual', key: 'residual_ratio', numeric: true, value: (point) => point.residual_ratio, show: (point) => signedPercent(point.residual_ratio) },
      { title: 'Repetitions', key: 'repetitions', numeric: true, value: (point) => point.repetitions },
    ];
    return chartFigure<Point>({
      id: 'fit', title: curveName(curve), size: 'tall',
      text: html`${capital(SETTINGS[curve.setting])}. ${this.words(curve)} ${isPoor(curve) ? badge('warn', 'explains its samples badly') : nothing}`,
      spoken: `${curveName(curve)}, ${SETTINGS[curve.setting]}: ${plural(curve.points.length, 'measured point')} from ${size(curve.smallest_bytes)} to ${size(curve.largest_bytes)} with the fitted line, its 95 % band and residuals below. R² ${quality.r_squared.toFixed(3)}, median error ${percent(quality.median_relative)}.`,
      chart: fitChart(`fit-${key}`, memo(this, `series-${fit.fit}-${this.other.value?.fit ?? ''}-${other ? 'both' : 'one'}-${key}`, () => series)),
      note: `Solid: within what was measured, with its 95 % band. Dotted: beyond it. Vertical: where a piece of the cost begins.${beyond}${thinned}`,
      rows, columns,
    });
  }

  /** Start-up and rate of each piece. */
  private words(curve: FitCurve): string {
    const word = (index: number): string => (curve.pieces.length > 1 ? `${index === 0 ? 'From' : 'from'} ${size(curve.pieces[index]!.from_bytes)}: ` : '');
    return curve.pieces.map((piece, index) => `${word(index)}${time(piece.alpha_seconds)} start-up, ${rateOf(piece.beta_seconds_per_byte)}`).join('; ') + '.';
  }

  private all(fit: FitCurves, key: string): TemplateResult {
    const link = (curve: FitCurve): TemplateResult => {
      const query = new URLSearchParams({ cluster: this.cluster, curve: keyOf(curve), ...(this.id ? { fit: this.id } : {}) });
      const open = (event: Event): void => {
        event.preventDefault();
        this.change({ curve: keyOf(curve) });
        window.scrollTo({ top: 0, behavior: 'smooth' });
      };
      return html`<a href="/fits?${query}" @click=${open}>${curveName(curve)}</a>`;
    };
    return table(fit.curves, [
      { title: 'What', key: 'what', value: curveName, show: link },
      { title: 'How', key: 'setting', value: (curve) => curve.setting, show: (curve) => html`<span class="nowrap">${SETTINGS[curve.setting]}</span>` },
      { title: 'Start-up', key: 'alpha_seconds', numeric: true, value: (curve) => curve.pieces[0]?.alpha_seconds, show: (curve) => time(curve.pieces[0]?.alpha_seconds) },
      { title: 'Rate', key: 'beta_seconds_per_byte', numeric: true, value: (curve) => curve.pieces.at(-1)?.beta_seconds_per_byte, show: (curve) => rateOf(curve.pieces.at(-1)?.beta_seconds_per_byte ?? 0) },
      { title: 'Pieces', key: 'pieces', numeric: true, value: (curve) => curve.pieces.length },
      { title: 'Points', key: 'points', numeric: true, value: (curve) => curve.points_total, show: (curve) => count(curve.points_total) },
      { title: 'R²', key: 'r_squared', numeric: true, value: (curve) => curve.quality.r_squared, show: (curve) => curve.quality.r_squared.toFixed(3) },
      { title: 'Median error', key: 'median_relative', numeric: true, value: (curve) => curve.quality.median_relative, show: (curve) => percent(curve.quality.median_relative) },
      { title: 'Between sizes', key: 'deviation_ratio', numeric: true, value: (curve) => curve.deviation_ratio, show: (curve) => (curve.deviation_ratio > 0 ? percent(curve.deviation_ratio) : '–') },
      { title: '', key: 'verdict', value: (curve) => (isPoor(curve) ? 'poor' : ''), show: (curve) => (isPoor(curve) ? badge('warn', 'poor') : nothing) },
    ], { caption: `All curves of fit ${fit.fit}`, rowClass: (curve) => (keyOf(curve) === key ? 'chosen' : '') });
  }
}
