// Small things that many pages show.

import { html, nothing, type TemplateResult } from 'lit-html';
import { live } from 'lit-html/directives/live.js';
import { age, date } from '../format';

export function pageHead(title: unknown, text: unknown = nothing, actions: unknown = nothing, crumbs: unknown = nothing): TemplateResult {
  return html`<header class="page-head">
    <div>${crumbs === nothing ? nothing : html`<nav class="crumbs" aria-label="Breadcrumb">${crumbs}</nav>`}<h1 tabindex="-1">${title}</h1><p>${text}</p></div>
    <div class="row">${actions}</div>
  </header>`;
}

export function stat(name: string, value: unknown, more: unknown = nothing): TemplateResult {
  return html`<div class="stat"><dt>${name}</dt><dd>${value} ${more === nothing ? nothing : html`<small>${more}</small>`}</dd></div>`;
}

export function badge(kind: 'good' | 'warn' | 'bad' | 'accent' | '', text: unknown): TemplateResult {
  return html`<span class="badge ${kind}">${text}</span>`;
}

/** Beside a run that was handed in without a token. */
export function unattested(run: { readonly attested: boolean }): unknown {
  return run.attested ? nothing : html` <span title="Handed in without a token that may operate: no prediction is judged by it">${badge('warn', 'unattested')}</span>`;
}

/** Beside a run whose hosts were not as they were when the fit behind its plan was made. */
export function otherConditions(run: { readonly differences: readonly string[] }): unknown {
  return run.differences.length === 0 ? nothing : html` <span data-part="other-conditions" title=${run.differences.join('\n')}>${badge('warn', 'other conditions')}</span>`;
}

export function ago(iso: string | null | undefined): TemplateResult {
  return html`<time datetime=${iso ?? ''} title=${date(iso)}>${age(iso)}</time>`;
}

export interface Option {
  readonly value: string;
  readonly text: string;
}

export function select(label: string, id: string, options: readonly Option[], value: string, onChange: (value: string) => void, hint: unknown = nothing): TemplateResult {
  return html`<label class="field">${label}
    <select id=${id} .value=${live(value)} @change=${(event: Event) => onChange((event.target as HTMLSelectElement).value)}>
      ${options.map((option) => html`<option value=${option.value} ?selected=${option.value === value}>${option.text}</option>`)}
    </select>
    ${hint === nothing ? nothing : html`<span class="hint">${hint}</span>`}
  </label>`;
}

export function segmented(label: string, options: readonly Option[], value: string, onChange: (value: string) => void): TemplateResult {
  return html`<div class="segmented" role="group" aria-label=${label}>
    ${options.map((option) => html`<button type="button" data-value=${option.value} aria-pressed=${option.value === value} @click=${() => onChange(option.value)}>${option.text}</button>`)}
  </div>`;
}

/** About a hundred values from low to high on a logarithmic scale, each once after rounding: the places of a slider. */
export function logarithmic(low: number, high: number, rounded: (value: number) => number): readonly number[] {
  const all = Array.from({ length: 101 }, (_, at) => rounded(low * Math.pow(high / low, at / 100)));
  return [...new Set(all)];
}

/** A slider over increasing places. Every step of it is another value, also where they were rounded. */
export function placesSlider(label: string, id: string, value: number, places: readonly number[], show: (value: number) => string, onInput: (value: number) => void): TemplateResult {
  const distance = (at: number): number => Math.abs(Math.log(places[at]! / value));
  const position = places.reduce((best, _, at) => (distance(at) < distance(best) ? at : best), 0);
  const moved = (event: Event): void => onInput(places[Number((event.target as HTMLInputElement).value)]!);
  return html`<div class="field slider">
    <label for=${id}>${label} <output for=${id}>${show(value)}</output></label>
    <input type="range" id=${id} min="0" max=${places.length - 1} step="1" .value=${live(String(position))} aria-valuetext=${show(value)} @input=${moved} />
  </div>`;
}

/** Text that people copy into a terminal. */
export function command(text: string, label: string): TemplateResult {
  const copy = async (event: Event): Promise<void> => {
    const button = event.currentTarget as HTMLButtonElement;
    let worked = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      worked = copyBySelection(text);
    }
    button.textContent = worked ? 'Copied' : 'Select it and copy';
    setTimeout(() => (button.textContent = 'Copy'), 1600);
  };
  return html`<div class="command"><pre tabindex="0" aria-label=${label}>${text}</pre><button type="button" aria-label="Copy ${label}" @click=${copy}>Copy</button></div>`;
}

/** Without https the clipboard is closed to pages; selecting and copying is not. */
function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  document.body.append(area);
  area.select();
  const worked = document.execCommand('copy');
  area.remove();
  return worked;
}
