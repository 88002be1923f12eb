// A figure's numbers as files.

export interface Column<Row> {
  /** Of the heading, and of the file's column: "iteration_seconds" says its unit. */
  readonly title: string;
  readonly key: string;
  /** In base units, for files and sorting. */
  value(row: Row): string | number | boolean | null | undefined;
  /** For people; the value itself if left out. */
  show?(row: Row): unknown;
  readonly numeric?: boolean;
}

export function toCsv<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cell = (value: unknown): string => {
    let text = value === null || value === undefined ? '' : String(value);
    // A spreadsheet would run a text that looks like a formula.
    if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((column) => cell(column.key)), ...rows.map((row) => columns.map((column) => cell(column.value(row))))];
  return lines.map((line) => line.join(',')).join('\r\n') + '\r\n';
}

export function toRecords<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): Record<string, unknown>[] {
  return rows.map((row) => Object.fromEntries(columns.map((column) => [column.key, column.value(row) ?? null])));
}

export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
