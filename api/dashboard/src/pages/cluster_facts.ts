// What several pages say about a cluster.

import { html, nothing, type TemplateResult } from 'lit-html';
import { plural } from '../format';
import { badge } from '../parts/bits';

/** Networks change under a fit: from an age that the service's settings say it is called old. */
export function ageOfFit(fit: { readonly stale: boolean } | undefined): TemplateResult {
  if (!fit) return badge('warn', 'not fitted');
  return fit.stale ? badge('warn', 'old fit: probe again') : badge('good', 'fit is current');
}

/** What an answer's reader should know of the fit behind it; nothing where there is nothing. */
export function marksNote(marks: { readonly stale?: boolean; readonly differences?: readonly string[] } | undefined): TemplateResult | typeof nothing {
  const differences = marks?.differences ?? [];
  if (!marks?.stale && differences.length === 0) return nothing;
  return html`<div class="note warn" data-part="marks">
    ${marks?.stale ? html`<p>The fit behind this is old: probe again.</p>` : nothing}
    ${differences.length > 0 ? html`<p>The fit behind this was made under other conditions:</p><ul class="list">${differences.map((difference) => html`<li>${difference}</li>`)}</ul>` : nothing}
  </div>`;
}

export function hostsText(hosts: readonly { name: string; slots: number }[]): string {
  const ranks = hosts.reduce((sum, host) => sum + host.slots, 0);
  return `${plural(ranks, 'rank')} on ${plural(hosts.length, 'host')}`;
}

