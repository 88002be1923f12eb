// Starting a probe from the browser: for those whose token may operate.

import { html, type TemplateResult } from 'lit-html';
import { client, isAbort, Problem } from '../api/client';
import { navigate } from '../router';

export function probeForm(cluster: string, signal: AbortSignal): TemplateResult {
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const read = (name: string): string => (form.elements.namedItem(name) as HTMLInputElement | HTMLSelectElement).value;
    const button = form.querySelector('button')!;
    const says = form.querySelector('[role="alert"]')!;
    says.textContent = '';
    button.disabled = true;
    try {
      const models = read('for').split(/[\s,]+/).filter((name) => name !== '');
      const over = read('transport');
      const request = { budget_seconds: Number(read('budget')), last_bytes: Number(read('largest')) * 1024, ...(models.length > 0 && { for: models }), ...(over !== '' && { transport: over }) };
      const job = await client.post('/v1/clusters/{name}/probes', request, { name: cluster }, { signal });
      navigate(`/jobs/${job.id}`);
    } catch (error) {
      if (isAbort(error)) return;
      says.textContent = error instanceof Problem ? `${error.title}. ${error.detail}` : String(error);
      button.disabled = false;
    }
  };
  return html`<form class="choices" data-form="probe" @submit=${submit}>
    <label class="field">Wall time at most (s)<input type="number" name="budget" min="1" max="86400" step="1" value="30" required /></label>
    <label class="field">Largest message (KiB)<input type="number" name="largest" min="1" max="1073741824" step="1" value="65536" required /></label>
    <label class="field">For these models<input name="for" placeholder="all roads alike" /></label>
    <label class="field">Over<select name="transport"><option value="">the same transport as before</option><option value="auto">each transport that works, in turn</option></select></label>
    <button type="submit">Probe its hosts</button>
    <p class="wrong field" role="alert"></p>
  </form>
  <p class="small muted">Takes the links for itself while it measures. Needs the operate scope.</p>`;
}
