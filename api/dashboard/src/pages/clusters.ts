// All clusters: what they are, how old their numbers are, and what to be wary of.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client } from '../api/client';
import type { Cluster, Links, Probe } from '../api/types';
import { plural } from '../format';
import { onLive } from '../live';
import { Page } from '../page';
import { ago, badge, command, pageHead } from '../parts/bits';
import { emptyState, shown } from '../parts/states';
import type { Route } from '../router';
import { ageOfFit, hostsText } from './cluster_facts';

interface Shown {
  readonly cluster: Cluster;
  readonly fitted: string | undefined;
  readonly probe: Probe | undefined;
  readonly links: Links | undefined;
}

export class ClustersPage extends Page {
  readonly title = 'Clusters';
  private readonly clusters = this.resource((signal) => this.fetch(signal));

  constructor(route: Route, redraw: () => void) {
    super(route, redraw);
    void this.clusters.load();
    onLive('fit', this.signal, () => void this.clusters.load());
  }

  private async fetch(signal: AbortSignal): Promise<Shown[]> {
    const { rows } = await client.get('/v1/clusters', {}, { limit: 200 }, { signal });
    return Promise.all(rows.map(async (cluster) => {
      const probes = await client.get('/v1/probes', {}, { cluster: cluster.name, limit: 20 }, { signal });
      const links = cluster.current_fit ? await client.get('/v1/clusters/{name}/links', { name: cluster.name }, undefined, { signal }) : undefined;
      const complete = probes.rows.find((probe) => probe.state === 'complete');
      return { cluster, probe: probes.rows[0], links, fitted: cluster.current_fit ? (complete?.ended ?? undefined) : undefined };
    }));
  }

  view(): TemplateResult {
    return html`${pageHead('Clusters', 'What was measured, how old it is, and which links depart from the rest.')}
    ${shown(this.clusters, (clusters) => clusters.length === 0 ? this.empty() : html`<div class="grid">${clusters.map((one) => this.card(one))}</div>`)}`;
  }

  private empty(): TemplateResult {
    return emptyState('No cluster has been probed yet', 'Measure this machine, or the hosts that your jobs run on. It takes about a minute; everything is kept.',
      html`${command('tune probe --hosts hosts.txt --cluster lab', 'probe command')}`);
  }

  private card({ cluster, fitted, probe, links }: Shown): TemplateResult {
    const verdicts = links ? links.verdicts : [];
    return html`<a class="card stack" href="/clusters/${encodeURIComponent(cluster.name)}" data-cluster=${cluster.name}>
      <div class="row spread"><h2>${cluster.name}</h2>${ageOfFit(cluster.current_fit ? cluster : undefined)}</div>
      <p class="muted">${hostsText(cluster.hosts)} over ${cluster.transport}</p>
      <div class="row">
        ${verdicts.length > 0 ? badge('bad', plural(verdicts.length, 'slow link or host', 'slow links or hosts')) : cluster.current_fit && cluster.hosts.length > 1 ? badge('good', 'links alike') : nothing}
        ${probe && probe.state !== 'complete' ? badge(probe.state === 'running' ? 'accent' : 'warn', `last probe ${probe.state}`) : nothing}
      </div>
      <dl class="facts">
        <dt>Fingerprint</dt><dd class="mono">${cluster.fingerprint}</dd>
        <dt>Last seen</dt><dd>${ago(cluster.seen)}</dd>
        <dt>Fit</dt><dd>${cluster.current_fit ? html`${cluster.current_fit}, made ${ago(fitted)}` : 'none yet'}</dd>
      </dl>
    </a>`;
  }
}
