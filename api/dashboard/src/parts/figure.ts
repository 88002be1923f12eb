// A chart with its words, its numbers as a table, and these as files.

import { html, nothing, type TemplateResult } from 'lit-html';
import type { ChartSpec } from '../charts/chart';
import { save, toCsv, toRecords, type Column } from '../download';
import { count } from '../format';
import { table } from './table';

export interface FigureOptions<Row> {
  readonly id: string;
  readonly title: string;
  readonly text?: unknown;
  /** Said instead of the picture: what it shows, in a sentence or two. */
  readonly spoken: string;
  readonly chart: ChartSpec;
  readonly size?: '' | 'short' | 'tall' | 'long' | 'map';
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly tools?: unknown;
  readonly legend?: unknown;
  readonly note?: unknown;
  /** Rows of the table on the page; the files have all. */
  readonly most?: number;
  /** For the JSON file, where the rows are less than what there is. */
  readonly json?: unknown;
}

export function chartFigure<Row>(options: FigureOptions<Row>): TemplateResult {
  const most = options.most ?? 500;
  const csv = (): void => save(`commtune-${options.id}.csv`, 'text/csv', toCsv(options.rows, options.columns));
  const json = (): void =>
    save(`commtune-${options.id}.json`, 'application/json', JSON.stringify(options.json ?? toRecords(options.rows, options.columns), null, 2));
  return html`<figure class="chart" data-figure=${options.id}>
    <header>
      <figcaption><h2>${options.title}</h2>${options.text ? html`<p>${options.text}</p>` : nothing}</figcaption>
      <div class="tools">
        ${options.tools ?? nothing}
        <button class="quiet" data-save="csv" aria-label="${options.title}: save as CSV" @click=${csv}>CSV</button>
        <button class="quiet" data-save="json" aria-label="${options.title}: save as JSON" @click=${json}>JSON</button>
      </div>
    </header>
    ${options.legend ?? nothing}
    <ct-chart class=${options.size ?? ''} .spec=${options.chart} .label=${options.spoken}></ct-chart>
    ${options.note ? html`<p class="small muted">${options.note}</p>` : nothing}
    <details class="numbers">
      <summary>The numbers, ${count(options.rows.length)} ${options.rows.length === 1 ? 'row' : 'rows'}</summary>
      ${table(options.rows.slice(0, most), options.columns, { caption: `${options.title}: numbers`, tall: true })}
      ${options.rows.length > most ? html`<p class="small muted">The first ${count(most)}; the files have all.</p>` : nothing}
    </details>
  </figure>`;
}
