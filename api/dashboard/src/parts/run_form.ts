// Starting a run from the browser: for those whose token may operate.

import { html, type TemplateResult } from 'lit-html';
import { client, isAbort, Problem } from '../api/client';
import type { RankingEntry } from '../api/types';
import { navigate } from '../router';

export function runForm(plan: number, method: string, ranking: readonly RankingEntry[], signal: AbortSignal): TemplateResult {
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const read = (name: string): string => (form.elements.namedItem(name) as HTMLInputElement).value;
    const button = form.querySelector('button')!;
    const says = form.querySelector('[role="alert"]')!;
    says.textContent = '';
    button.disabled = true;
    const methods = read('methods');
    try {
      const body = { iterations: Number(read('iterations')), strict: false, ...(methods ? { methods: [methods] } : {}) };
      const job = await client.post('/v1/plans/{id}/runs', body, { id: plan }, { signal });
      navigate(`/jobs/${job.id}`);
    } catch (error) {
      if (isAbort(error)) return;
      says.textContent = error instanceof Problem ? `${error.title}. ${error.detail}` : String(error);
      button.disabled = false;
    }
  };
  const others = ranking.filter((one) => one.method !== method);
  return html`<form class="choices" data-form="run" @submit=${submit}>
    <label class="field">Method
      <select name="methods">
        <option value=${ranking.length > 0 ? method : ''}>${ranking.find((one) => one.method === method)?.title ?? method}</option>
        ${ranking.length > 0 ? html`<option value="all">all of the ranking</option>` : ''}
        ${others.map((one) => html`<option value=${one.method}>${one.title}</option>`)}
      </select>
    </label>
    <label class="field">Timed iterations<input type="number" name="iterations" min="1" max="100000" value="20" required /></label>
    <button type="submit">Replay it</button>
    <p class="wrong field" role="alert"></p>
  </form>
  <p class="small muted">A replay: made-up gradients of the model's sizes travel between the cluster's hosts, layers sleep for the profile's times, nothing is trained. Needs the operate scope.</p>`;
}
