// What several pages say about a cluster.

import type { TemplateResult } from 'lit-html';
import { plural } from '../format';
import { badge } from '../parts/bits';

/** Networks change under a fit: after a month it is called old. */
const OLD_DAYS = 30;

export function ageOfFit(made: string | undefined): TemplateResult {
  if (!made) return badge('warn', 'not fitted');
  const days = (Date.now() - new Date(made).getTime()) / 86_400_000;
  return days > OLD_DAYS ? badge('warn', 'old fit: probe again') : badge('good', 'fit is current');
}

export function hostsText(hosts: readonly { name: string; slots: number }[]): string {
  const ranks = hosts.reduce((sum, host) => sum + host.slots, 0);
  return `${plural(ranks, 'rank')} on ${plural(hosts.length, 'host')}`;
}

