// Tables: for reading, and beside every chart.

import { html, nothing, type TemplateResult } from 'lit-html';
import type { Column } from '../download';

export interface TableOptions<Row> {
  /** Read out before the table. */
  readonly caption: string;
  readonly visibleCaption?: boolean;
  readonly tall?: boolean;
  rowClass?(row: Row): string;
  /** The column that names a row. */
  readonly head?: number;
}

export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], options: TableOptions<Row>): TemplateResult {
  const head = options.head ?? 0;
  const cell = (row: Row, column: Column<Row>, index: number): TemplateResult => {
    const content = column.show ? column.show(row) : (column.value(row) ?? '–');
    const kind = column.numeric ? 'number' : '';
    return index === head ? html`<th scope="row" class=${kind}>${content}</th>` : html`<td class=${kind}>${content}</td>`;
  };
  return html`<div class="scroll ${options.tall ? 'tall' : ''}" tabindex="0" role="region" aria-label=${options.caption}>
    <table>
      <caption class=${options.visibleCaption ? '' : 'visually-hidden'}>${options.caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.numeric ? 'number' : ''}>${column.title}</th>`)}</tr></thead>
      <tbody>
        ${rows.map((row) => html`<tr class=${options.rowClass?.(row) ?? nothing}>${columns.map((column, index) => cell(row, column, index))}</tr>`)}
      </tbody>
    </table>
  </div>`;
}
