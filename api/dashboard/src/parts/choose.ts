// Choosing a model and a cluster: what several pages begin with.

import { client } from '../api/client';
import type { Cluster, ProfileSummary } from '../api/types';
import { size, time } from '../format';
import type { Option } from './bits';

export interface Choices {
  readonly clusters: Cluster[];
  readonly shipped: ProfileSummary[];
  readonly stored: ProfileSummary[];
}

export async function fetchChoices(signal: AbortSignal): Promise<Choices> {
  const [clusters, profiles] = await Promise.all([client.get('/v1/clusters', {}, { limit: 200 }, { signal }), client.get('/v1/profiles', {}, { limit: 200 }, { signal })]);
  const shipped = new Set(profiles.shipped.map((profile) => profile.digest));
  return { clusters: clusters.rows.filter((cluster) => cluster.current_fit), shipped: profiles.shipped, stored: profiles.rows.filter((profile) => !shipped.has(profile.digest)) };
}

/** Shipped ones by name, stored ones by digest. */
export function modelOptions(choices: Choices): Option[] {
  const text = (profile: ProfileSummary): string => `${profile.model}: ${size(profile.gradient_bytes)}, ${time(profile.compute_seconds)} at ${profile.batch > 0 ? `batch ${profile.batch}` : 'an unknown batch'}`;
  return [
    ...choices.shipped.map((profile) => ({ value: profile.model, text: text(profile) })),
    ...choices.stored.map((profile) => ({ value: profile.digest, text: `${text(profile)} (stored)` })),
  ];
}

export function profileOf(choices: Choices, model: string): ProfileSummary | undefined {
  return choices.shipped.find((profile) => profile.model === model || profile.digest === model) ?? choices.stored.find((profile) => profile.digest === model || profile.model === model);
}

/** The address may name a shipped profile by its digest: the form then says its name. */
export function normalized(choices: Choices, model: string): string {
  const found = profileOf(choices, model);
  if (!found) return choices.shipped.find((profile) => profile.model === 'resnet50')?.model ?? choices.shipped[0]?.model ?? '';
  return choices.shipped.includes(found) ? found.model : found.digest;
}
