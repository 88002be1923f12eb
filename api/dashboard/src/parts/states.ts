// Nothing yet, on its way, and gone wrong: each says what to do next.

import { html, nothing, type TemplateResult } from 'lit-html';
import type { Problem } from '../api/client';
import type { Resource } from '../page';
import { icons } from './icons';

export function emptyState(title: string, text: unknown, action: unknown = nothing): TemplateResult {
  return html`<div class="card state" data-state="empty">${icons.empty}<h2>${title}</h2><p>${text}</p>${action}</div>`;
}

export function loadingState(blocks = 1): TemplateResult {
  return html`<div class="card" data-state="loading" role="status">
    <span class="visually-hidden">Loading</span>
    ${Array.from({ length: blocks }, () => html`<div class="skeleton line"></div><div class="skeleton line"></div><div class="skeleton block"></div>`)}
  </div>`;
}

export function problemState(problem: Problem, again?: () => void): TemplateResult {
  const advice: Partial<Record<Problem['kind'], string>> = {
    unauthorized: 'Give a token at the lower left (on a phone: above); `tune token make NAME --scope read` makes one.',
    forbidden: 'Your token may not do this. A token with the right scope may.',
    defect: 'This is a defect of commtune, not of what you asked. Its log has more.',
  };
  return html`<div class="card state problem" data-state="problem" data-kind=${problem.kind} role="alert">
    ${icons.problem}
    <h2>${problem.title}</h2>
    ${problem.detail ? html`<p>${problem.detail}</p>` : nothing}
    ${problem.pointer ? html`<p class="small">At <code>${problem.pointer}</code></p>` : nothing}
    ${advice[problem.kind] ? html`<p class="small">${advice[problem.kind]}</p>` : nothing}
    ${again ? html`<button @click=${again}>Try again</button>` : nothing}
  </div>`;
}

/** The value's view; a value that is being loaded again stays, dimmed. */
export function shown<T>(resource: Resource<T>, view: (value: T) => unknown, loading: () => unknown = loadingState): unknown {
  if (resource.problem && (resource.value === undefined || !resource.loading)) {
    const stale = resource.value !== undefined && resource.problem.kind === 'unreachable';
    if (!stale) return problemState(resource.problem, () => void resource.load());
  }
  if (resource.value === undefined) return loading();
  return html`<div class="shown ${resource.loading ? 'busy' : ''}" aria-busy=${resource.loading}>${view(resource.value)}</div>`;
}
