// Long work as rows.

import { html, type TemplateResult } from 'lit-html';
import type { Job } from '../api/types';
import { percent } from '../format';
import { ago, badge } from './bits';
import { table } from './table';

export const JOB_STATES = { queued: '', running: 'accent', complete: 'good', failed: 'bad', cancelled: 'warn', interrupted: 'warn' } as const;

export function isOver(job: Job): boolean {
  return job.state !== 'queued' && job.state !== 'running';
}

export function progressBar(job: Job): TemplateResult {
  return html`<progress max="1" .value=${job.progress} aria-label="Progress of job ${job.id}">${percent(job.progress, 0)}</progress>`;
}

export function jobTable(jobs: readonly Job[]): TemplateResult {
  return table(jobs, [
    { title: 'Job', key: 'id', numeric: true, value: (job) => job.id, show: (job) => html`<a href="/jobs/${job.id}">${job.id}</a>` },
    { title: 'What', key: 'kind', value: (job) => job.kind },
    { title: 'State', key: 'state', value: (job) => job.state, show: (job) => badge(JOB_STATES[job.state], job.state) },
    { title: 'Progress', key: 'progress', value: (job) => job.progress, show: (job) => (isOver(job) ? '' : progressBar(job)) },
    { title: 'Doing', key: 'stage', value: (job) => job.stage, show: (job) => (isOver(job) ? job.error : job.stage) },
    { title: 'By', key: 'requested_by', value: (job) => job.requested_by },
    { title: 'Made', key: 'created', value: (job) => job.created, show: (job) => ago(job.created) },
  ], { caption: 'Jobs, newest first' });
}
