// What a timeline shows as a trace that Perfetto opens: the object form of Chrome's trace events, in microseconds.

import type { Span } from '../charts/timeline_chart';

const MEASURED = /^Measured /;

/** Spans of one lane overlap, those of a thread of a trace may not: each row of a lane is a thread. */
export function chromeTrace(spans: readonly Span[], title: string): object {
  const threads = new Map<string, number>();
  const names: object[] = [];
  const name = (pid: number, tid: number, what: string, text: string): void => void names.push({ ph: 'M', pid, tid, name: what, args: { name: text } });
  const place = (span: Span): { pid: number; tid: number } => {
    const pid = MEASURED.test(span.lane) ? 1 : 0;
    const thread = `${pid} ${span.lane} ${span.row}`;
    let tid = threads.get(thread);
    if (tid === undefined) {
      threads.set(thread, (tid = threads.size));
      name(pid, tid, 'thread_name', span.lane.replace(MEASURED, ''));
    }
    return { pid, tid };
  };
  const events = spans
    .filter((span) => span.kind !== 'exposed')
    .map((span) => ({ ph: 'X', ...place(span), name: span.name, cat: span.kind, ts: span.start * 1e6, dur: (span.end - span.start) * 1e6, args: Object.fromEntries(span.details) }));
  for (const pid of new Set(events.map((event) => event.pid))) name(pid, 0, 'process_name', pid === 1 ? 'measured' : 'predicted');
  return { traceEvents: [...names, ...events], displayTimeUnit: 'ms', otherData: { title } };
}
