// A probe, a run or a verification as it goes on.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client, isAbort, Problem } from '../api/client';
import type { Job } from '../api/types';
import { percent, time } from '../format';
import { onLive } from '../live';
import { Page, type Resource } from '../page';
import { ago, badge, pageHead, stat } from '../parts/bits';
import { isOver, JOB_STATES, progressBar } from '../parts/jobs';
import { shown } from '../parts/states';
import type { Route } from '../router';

interface Line {
  readonly id: number;
  readonly at: string;
  readonly text: string;
}

const TITLES = { probe: 'Probe', run: 'Run', tune: 'Verified tuning' } as const;

export class JobPage extends Page {
  readonly title: string;
  private readonly id: number;
  private lines: Line[] = [];
  private says = '';
  private ticking = 0;
  private readonly job: Resource<Job>;
  private readonly log: Resource<true>;

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    this.id = Number(route.parts[1]) || 0;
    this.title = `Job ${this.id}`;
    this.job = this.resource((signal) => client.get('/v1/jobs/{id}', { id: this.id }, undefined, { signal }));
    this.log = this.resource(async (signal) => {
      for (let more = true; more; ) {
        const page = await client.get('/v1/jobs/{id}/log', { id: this.id }, { limit: 500, after: this.lines.at(-1)?.id ?? 0 }, { signal });
        this.lines = [...this.lines, ...page.rows];
        more = page.next !== null;
      }
      return true as const;
    });
    void this.job.load();
    void this.log.load();
    onLive('job', this.signal, (data) => {
      const job = data as Job;
      if (job.id !== this.id) return;
      this.job.value = job;
      void this.log.load();
      this.update();
    });
    this.ticking = window.setInterval(() => this.tick(), 1000);
    this.signal.addEventListener('abort', () => clearInterval(this.ticking));
  }

  /** The time that has passed goes on between events; and a poll now and then covers a lost stream. */
  private tick(): void {
    const job = this.job.value;
    if (!job || isOver(job)) return;
    if (Math.floor(Date.now() / 1000) % 5 === 0 && !this.job.loading) void this.job.load().then(() => this.log.load());
    this.update();
  }

  view(): TemplateResult {
    return html`${shown(this.job, (job) => html`<div class="page">${this.body(job)}</div>`)}`;
  }

  private body(job: Job): TemplateResult {
    const began = job.started ? new Date(job.started).getTime() : 0;
    const until = job.ended ? new Date(job.ended).getTime() : Date.now();
    return html`${pageHead(TITLES[job.kind], html`Job ${job.id}, asked for by ${job.requested_by || 'nobody named'} ${ago(job.created)}`, html`
        ${badge(JOB_STATES[job.state], job.state)}
        ${isOver(job) ? nothing : html`<button data-action="cancel" ?disabled=${job.cancel_requested} @click=${() => void this.act('cancel')}>${job.cancel_requested ? 'Stopping…' : 'Cancel'}</button>`}
        ${job.state === 'interrupted' || job.state === 'failed' ? html`<button data-action="resume" @click=${() => void this.act('resume')}>Queue it again</button>` : nothing}`,
      html`<a href="/tune">Tune</a>`)}
      ${this.says ? html`<p class="note bad" role="alert">${this.says}</p>` : nothing}
      ${job.error ? html`<p class="note bad">${job.error}</p>` : nothing}
      <section class="card stack" aria-live="polite">
        <dl class="stats">
          ${stat('Progress', html`<span data-part="progress">${percent(job.state === 'complete' ? 1 : job.progress, 0)}</span>`)}
          ${began ? stat('For', time(Math.round((until - began) / 1000) || (until - began) / 1000)) : nothing}
          ${job.attempts > 1 ? stat('Attempt', String(job.attempts)) : nothing}
        </dl>
        ${isOver(job) ? nothing : progressBar(job)}
        <p class="muted" data-part="stage">${isOver(job) ? `It is over: ${job.state}.` : job.stage ? `Now: ${job.stage}` : 'It waits for its turn.'}</p>
        ${job.state === 'complete' ? this.outcome(job) : nothing}
      </section>
      <section class="card stack"><h2>What it said</h2>
        ${this.lines.length === 0 ? html`<p class="muted">${isOver(job) ? 'Nothing.' : 'Nothing yet.'}</p>` : html`<div class="log" tabindex="0" role="log" aria-label="Log of the job">${this.lines.map((line) => html`<div>${line.text}</div>`)}</div>`}
      </section>`;
  }

  private outcome(job: Job): TemplateResult {
    if (job.kind === 'tune') return this.verified(job);
    const result = job.result as { runs?: { run: number }[]; fit?: number; cluster?: string | { name?: string } } | null;
    if (job.kind === 'run') {
      return html`<div class="row">${(result?.runs ?? []).map((one) => html`<a class="button" href="/runs/${one.run}">Run ${one.run}</a>`)}<a class="button" href="/runs">All runs</a></div>`;
    }
    const request = job.request as { cluster?: string };
    const cluster = (typeof result?.cluster === 'string' ? result.cluster : result?.cluster?.name) ?? request.cluster;
    return html`<div class="row">${cluster ? html`<a class="button" href="/fits?cluster=${encodeURIComponent(cluster)}">Its fits</a><a class="button" href="/clusters/${encodeURIComponent(cluster)}">The cluster</a>` : html`<a class="button" href="/fits">Fits</a>`}</div>`;
  }

  private verified(job: Job): TemplateResult {
    const result = job.result as { id: number; reason: string } | null;
    return html`<p class="lead" data-part="reason">${result?.reason}</p>
      <div class="row">${result ? html`<a class="button" href="/plans/${result.id}">Plan ${result.id}</a>` : nothing}<a class="button" href="/runs">All runs</a></div>`;
  }

  private async act(what: 'cancel' | 'resume'): Promise<void> {
    this.says = '';
    try {
      if (what === 'cancel') await client.delete(`/v1/jobs/${this.id}`, { signal: this.signal });
      else await client.post('/v1/jobs/{id}/resume', undefined as never, { id: this.id }, { signal: this.signal });
      await this.job.load();
    } catch (error) {
      if (isAbort(error)) return;
      this.says = error instanceof Problem ? `${error.title}. ${error.detail}` : String(error);
    }
    this.update();
  }
}
