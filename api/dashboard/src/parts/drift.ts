// When predictions leave what is measured, again and again.

import type { RunSummary } from '../api/types';

export const ALARM = 0.15;
export const WINDOW = 5;

export interface Drift {
  readonly cluster: string;
  readonly model: string;
  readonly error: number;
  readonly runs: number;
}

/** A run that predictions are judged by: not one that anybody could have handed in. */
export function isMeasured(run: RunSummary): boolean {
  return run.attested && run.state === 'complete' && run.predicted_seconds > 0 && run.median_seconds > 0;
}

/** predicted / measured - 1 */
export function errorOf(run: RunSummary): number {
  return run.predicted_seconds / run.median_seconds - 1;
}

export function median(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Per cluster and model: the median error of its newest runs, where it is beyond the alarm. One run alone is no drift. */
export function driftsOf(runs: readonly RunSummary[]): Drift[] {
  const groups = new Map<string, RunSummary[]>();
  for (const run of [...runs].sort((a, b) => b.id - a.id)) {
    const key = JSON.stringify([run.cluster_name, run.model]);
    const group = groups.get(key) ?? [];
    if (group.length < WINDOW) groups.set(key, [...group, run]);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1 && group[0]!.cluster_name !== '')
    .map((group) => ({ cluster: group[0]!.cluster_name, model: group[0]!.model, error: median(group.map(errorOf))!, runs: group.length }))
    .filter((drift) => Math.abs(drift.error) > ALARM);
}
