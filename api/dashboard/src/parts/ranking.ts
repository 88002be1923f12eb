// The ranking as a figure, with a table whose rows choose the method that the rest of the page shows.

import { html, nothing, type TemplateResult } from 'lit-html';
import type { PlanAnswer, RankingEntry, RunSummary, Verified } from '../api/types';
import { rankingChart, type Ranked } from '../charts/ranking_chart';
import { count, percent, plural, samplesRate, signedPercent, time } from '../format';
import { memo } from '../page';
import { badge, stat } from './bits';
import { chartFigure } from './figure';
import { table } from './table';

export interface RankingOptions {
  readonly id: string;
  readonly answer: { readonly ranking: readonly RankingEntry[]; readonly bound_seconds: number | null; readonly bound_low_seconds?: number | undefined };
  readonly chosen: string;
  readonly selected: string;
  /** Says when the measured values are other ones. */
  readonly stamp: string;
  runOf(method: string): RunSummary | undefined;
  onSelect(method: string): void;
}

/** How sure the choice is. The chosen one need not be the fastest predicted: it loses least where the fits are wrong. */
export function choiceBadge(answer: { readonly ranking: readonly RankingEntry[]; readonly clear_winner: boolean; readonly verified?: Verified | undefined }, chosen: string): TemplateResult {
  if (answer.verified) {
    if (!answer.verified.certain) return badge('warn', 'measured, but not with certainty');
    return badge('good', answer.clear_winner ? 'the fastest, measured with certainty' : 'measured: as fast as others, and the simplest');
  }
  if (!answer.clear_winner) return badge('warn', 'within the doubt of others: the simplest was chosen');
  return answer.ranking[0]?.method === chosen ? badge('good', 'clear winner') : badge('warn', 'not the fastest predicted: the least expected regret');
}

/** That the ranking is what a time limit left of it. Answers from before there was one are complete. */
export function incompleteNote(answer: { readonly complete?: boolean }): TemplateResult | typeof nothing {
  if (answer.complete ?? true) return nothing;
  return html`<div class="row" data-part="incomplete">${badge('warn', 'incomplete')}<span class="muted small">The time limit passed before everything was tried: there may be a better plan. Planning again computes it anew.</span></div>`;
}

type Doubtful = PlanAnswer['doubtful'];

/** Fits that the predictions rest on and that their samples hardly support; nothing to see where there are none. */
export function doubtfulNote(doubtful: Doubtful): TemplateResult | typeof nothing {
  if (doubtful.length === 0) return nothing;
  return html`<div class="stack" data-part="doubtful">
    <div class="row">${badge('warn', 'rests on doubtful fits')}<span class="muted small">A probe with a larger budget may mend them.</span></div>
    <ul class="list small">${doubtful.map((one) => html`<li>${one.fit}: median residual ${percent(one.median_relative)}, p90 ${percent(one.p90_relative)}, R² ${one.r_squared.toFixed(3)} <span class="muted">(${one.methods.join(', ')})</span></li>`)}</ul>
  </div>`;
}

/** That gradients are cast while they travel: what is beside such plans is no plan that loses nothing. */
export function wireBadge(answer: { readonly wire?: string | undefined }): TemplateResult | typeof nothing {
  return answer.wire ? html`<span data-part="wire">${badge('warn', `gradients cast to ${answer.wire}: not lossless`)}</span>` : nothing;
}

interface Bounded {
  /** null: plans that cast stand beside no bound of lossless ones. */
  readonly bound_seconds: number | null;
  /** Absent from answers without draws and from those that older versions stored. */
  readonly bound_low_seconds?: number | undefined;
}

/** What the bound is at the edge of the fits' doubt, if that is known and another. */
export function boundAtEdge(answer: Bounded): string {
  const low = answer.bound_low_seconds;
  return low !== undefined && answer.bound_seconds !== null && low < answer.bound_seconds ? `${time(low)} at the edge of the fits' doubt` : '';
}

/** The bound, and how far above it the plan is; nothing where there is none. */
export function boundStat(answer: Bounded, gap: number | null): TemplateResult | typeof nothing {
  if (answer.bound_seconds === null) return nothing;
  return stat('Bound', time(answer.bound_seconds), [`${percent(gap)} above it`, boundAtEdge(answer)].filter(Boolean).join('; '));
}

function boundText(answer: Bounded): string {
  const edge = boundAtEdge(answer);
  return edge ? `${time(answer.bound_seconds)}, ${edge}` : time(answer.bound_seconds);
}

/** True where the cluster was probed over several transports: then each plan says which it wants. */
function overSeveral(answer: { readonly ranking: readonly RankingEntry[] }): boolean {
  return answer.ranking.some((one) => one.transport !== undefined);
}

const transportColumn = { title: 'Transport', key: 'transport', value: (one: RankingEntry): string => one.transport ?? '' };

export function rankingFigure(owner: object, options: RankingOptions): TemplateResult {
  const { answer, chosen, selected } = options;
  const ranked = answer.ranking.map((one): Ranked => ({
    method: one.method, title: one.title, road: one.road, seconds: one.iteration_seconds, compute_seconds: one.compute_seconds,
    low: one.doubt?.low_seconds, high: one.doubt?.high_seconds, measured: measuredSeconds(one, options.runOf(one.method)), chosen: one.method === chosen,
  }));
  const best = answer.ranking.find((one) => one.method === chosen);
  const measured = ranked.filter((one) => one.measured !== undefined).length;
  const open = (method: string) => (): void => options.onSelect(method);
  return html`${chartFigure<RankingEntry>({
    id: 'ranking', title: 'Ranking', size: 'tall',
    text: `${plural(ranked.length, 'method')}, the best first. Choose a bar or a row to see its iteration and messages below.`,
    spoken: `Bars of the iteration time of ${plural(ranked.length, 'method')}. ${best ? `Chosen: ${best.title} with ${time(best.iteration_seconds)}` : ''}${answer.bound_seconds === null ? '' : `; the bound is ${boundText(answer)}`}. ${measured} have measured values.`,
    chart: memo(owner, `ranking-${options.id}-${selected}-${options.stamp}`, () => rankingChart(`ranking-${options.id}`, ranked, answer.bound_seconds, selected, (method) => options.onSelect(method))),
    legend: html`<div class="legend" aria-hidden="true">
      <span><i class="swatch compute"></i>compute</span><span><i class="swatch exposed strong"></i>exposed communication</span>
      <span>├─┤ 90 % of the draws</span><span>◆ measured</span>${answer.bound_seconds === null ? nothing : html`<span><i class="swatch bound"></i>bound: no lossless plan is faster over the roads that were priced, as far as the fits are right</span>`}</div>`,
    rows: answer.ranking,
    columns: [
      { title: 'Method', key: 'method', value: (one) => one.method, show: (one) => one.title },
      { title: 'Predicted', key: 'iteration_seconds', numeric: true, value: (one) => one.iteration_seconds, show: (one) => time(one.iteration_seconds) },
      { title: 'From', key: 'low_seconds', numeric: true, value: (one) => one.doubt?.low_seconds, show: (one) => time(one.doubt?.low_seconds) },
      { title: 'To', key: 'high_seconds', numeric: true, value: (one) => one.doubt?.high_seconds, show: (one) => time(one.doubt?.high_seconds) },
      { title: 'Measured', key: 'measured_seconds', numeric: true, value: (one) => measuredSeconds(one, options.runOf(one.method)), show: (one) => time(measuredSeconds(one, options.runOf(one.method))) },
      { title: 'Bound of its road', key: 'road_bound_seconds', numeric: true, value: (one) => one.road_bound_seconds, show: (one) => time(one.road_bound_seconds) },
      { title: 'Exposed', key: 'exposed_seconds', numeric: true, value: (one) => one.exposed_seconds, show: (one) => time(one.exposed_seconds) },
      { title: 'Hidden', key: 'hidden_seconds', numeric: true, value: (one) => one.hidden_seconds, show: (one) => time(one.hidden_seconds) },
      { title: 'Samples/s', key: 'samples_per_second', numeric: true, value: (one) => one.samples_per_second, show: (one) => samplesRate(one.samples_per_second) },
      { title: 'Expected regret', key: 'expected_regret_ratio', numeric: true, value: (one) => one.doubt?.expected_regret_ratio, show: (one) => percent(one.doubt?.expected_regret_ratio, 2) },
      { title: 'Road', key: 'road', value: (one) => one.road },
      ...(overSeveral(answer) ? [transportColumn] : []),
      { title: 'Digest', key: 'plan_digest', value: (one) => one.plan_digest, show: (one) => html`<span class="mono">${one.plan_digest}</span>` },
    ],
  })}
  ${table(answer.ranking, [
    { title: 'Method', key: 'method', value: (one) => one.method, show: (one) => html`<button class="link" data-method=${one.method} aria-pressed=${one.method === selected} @click=${open(one.method)}>${one.title}</button> ${one.method === chosen ? badge('accent', 'chosen') : nothing}` },
    { title: 'Road', key: 'road', value: (one) => one.road },
    ...(overSeveral(answer) ? [transportColumn] : []),
    { title: 'Predicted', key: 'predicted', numeric: true, value: (one) => one.iteration_seconds, show: (one) => time(one.iteration_seconds) },
    { title: 'Measured', key: 'measured', numeric: true, value: () => '', show: (one) => measuredCell(one, options.runOf(one.method)) },
    { title: 'Above bound', key: 'gap', numeric: true, value: (one) => one.gap_ratio, show: (one) => percent(one.gap_ratio) },
    { title: 'Messages', key: 'messages', numeric: true, value: (one) => one.messages, show: (one) => count(one.messages) },
    { title: 'Best in', key: 'best', numeric: true, value: (one) => one.doubt?.probability_best, show: (one) => percent(one.doubt?.probability_best, 0) },
    { title: 'Bound by', key: 'binding', value: (one) => one.binding },
  ], { caption: 'Ranking of methods', rowClass: (one) => (one.method === selected ? 'chosen' : '') })}`;
}

/** What chose counts more than a single run: it is the median of several, taken in turn with others. */
function measuredSeconds(one: RankingEntry, run: RunSummary | undefined): number | undefined {
  return one.measured_seconds ?? run?.median_seconds;
}

function measuredCell(one: RankingEntry, run: RunSummary | undefined): unknown {
  const seconds = measuredSeconds(one, run);
  if (seconds === undefined) return one.failure ? html`<span title=${one.failure}>failed</span>` : '–';
  return html`${run ? html`<a href="/runs/${run.id}">${time(seconds)}</a>` : time(seconds)} <span class="muted small">${signedPercent(one.iteration_seconds / seconds - 1)}</span>`;
}
