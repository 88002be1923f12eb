// All stored plans, newest first.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client } from '../api/client';
import type { PlanSummary } from '../api/types';
import { count, percent, time } from '../format';
import { onLive } from '../live';
import { Page, type Resource } from '../page';
import { ago, badge, pageHead } from '../parts/bits';
import { emptyState, shown } from '../parts/states';
import { table } from '../parts/table';
import { setQuery, type Route } from '../router';

export class PlansPage extends Page {
  readonly title = 'Plans';
  private rows: PlanSummary[] = [];
  private next: number | null = null;
  private filter: string;
  private whatIfs: boolean;
  private readonly plans: Resource<true>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.filter = route.query.get('q') ?? '';
    this.whatIfs = route.query.get('what-ifs') === 'yes';
    this.plans = this.resource(async (signal) => {
      const page = await client.get('/v1/plans', {}, { limit: 100 }, { signal });
      this.rows = page.rows;
      this.next = page.next;
      return true as const;
    });
    void this.plans.load();
    onLive('plan', this.signal, () => void this.plans.load());
  }

  private async more(): Promise<void> {
    const page = await client.get('/v1/plans', {}, { limit: 100, after: this.next ?? 0 }, { signal: this.signal });
    this.rows = [...this.rows, ...page.rows];
    this.next = page.next;
    this.update();
  }

  view(): TemplateResult {
    return html`${pageHead('Plans', 'How a model\'s gradients should travel on a cluster. Open one for its ranking, timeline and messages.', html`<a class="button" href="/tune">Plan a model</a>`)}
      ${shown(this.plans, () => this.rows.length === 0
        ? emptyState('No plans yet', 'Choose a model and a probed cluster; the ranking takes seconds.', html`<a class="button" href="/tune">Plan a model</a>`)
        : html`<section class="card stack">${this.list()}</section>`)}`;
  }

  private list(): TemplateResult {
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.rows.filter((plan) => (this.whatIfs || plan.fit !== null) && words.every((word) => `${plan.id} ${plan.digest} ${plan.model} ${plan.method} ${plan.road} ${plan.cluster_name}`.toLowerCase().includes(word)));
    const typed = (event: Event): void => {
      this.filter = (event.target as HTMLInputElement).value;
      setQuery({ q: this.filter });
      this.update();
    };
    const toggled = (event: Event): void => {
      this.whatIfs = (event.target as HTMLInputElement).checked;
      setQuery({ 'what-ifs': this.whatIfs ? 'yes' : '' });
      this.update();
    };
    return html`<div class="choices"><label class="field">Find by model, method, road or cluster<input type="text" id="find" .value=${this.filter} @input=${typed} placeholder="resnet50 ring" /></label>
      <label class="row"><input type="checkbox" id="what-ifs" .checked=${this.whatIfs} @change=${toggled} />What-ifs too</label></div>
      ${found.length === 0 ? html`<p class="muted">None of these.</p>` : table(found, [
        { title: 'Plan', key: 'id', numeric: true, value: (plan) => plan.id, show: (plan) => html`<a href="/plans/${plan.id}">${plan.id}</a>` },
        { title: 'Model', key: 'model', value: (plan) => plan.model, show: (plan) => html`<a href="/plans/${plan.id}">${plan.model}</a>` },
        { title: 'Method', key: 'method', value: (plan) => plan.method },
        { title: 'Road', key: 'road', value: (plan) => plan.road },
        { title: 'Workers', key: 'workers', numeric: true, value: (plan) => plan.workers },
        { title: 'Messages', key: 'messages', numeric: true, value: (plan) => plan.messages, show: (plan) => count(plan.messages) },
        { title: 'Predicted', key: 'predicted_seconds', numeric: true, value: (plan) => plan.predicted_seconds, show: (plan) => time(plan.predicted_seconds || null) },
        { title: 'Above its road\'s bound', key: 'gap_ratio', numeric: true, value: (plan) => plan.predicted_seconds / plan.bound_seconds - 1, show: (plan) => (plan.bound_seconds > 0 && plan.predicted_seconds > 0 ? percent(plan.predicted_seconds / plan.bound_seconds - 1) : '–') },
        { title: 'Cluster', key: 'cluster', value: (plan) => plan.cluster_name, show: (plan) => html`${plan.cluster_name || '–'} ${plan.fit === null ? badge('', 'what if') : nothing}` },
        { title: 'Made', key: 'created', value: (plan) => plan.created, show: (plan) => ago(plan.created) },
      ], { caption: 'Stored plans, newest first' })}
      ${this.next ? html`<button @click=${() => void this.more()}>Show more</button>` : nothing}`;
  }
}
