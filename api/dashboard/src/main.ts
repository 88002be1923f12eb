// Starts the dashboard: address to page, page to screen.

import './styles/main.css';
import { html, render } from 'lit-html';
import { client } from './api/client';
import { live } from './live';
import type { Page } from './page';
import { ClusterPage } from './pages/cluster';
import { ClustersPage } from './pages/clusters';
import { FitsPage } from './pages/fits';
import { JobPage } from './pages/job';
import { PlanPage } from './pages/plan';
import { PlansPage } from './pages/plans';
import { RunPage } from './pages/run';
import { RunsPage } from './pages/runs';
import { TunePage } from './pages/tune';
import { WhatIfPage } from './pages/what_if';
import { emptyState } from './parts/states';
import { currentRoute, navigate, startRouter, type Route } from './router';
import { Shell } from './shell';
import { takeTokenFromAddress, takeTokensFromLaterAddresses } from './start_token';
import { applyTheme } from './theme';

type Maker = new (route: Route, redraw: () => void) => Page;

/** First part of the path -> its list, and one of it. */
const PAGES: Record<string, { readonly list: Maker; readonly one?: Maker }> = {
  clusters: { list: ClustersPage, one: ClusterPage },
  fits: { list: FitsPage },
  plans: { list: PlansPage, one: PlanPage },
  'what-if': { list: WhatIfPage },
  runs: { list: RunsPage, one: RunPage },
  tune: { list: TunePage },
  jobs: { list: TunePage, one: JobPage },
};

const root = document.getElementById('app')!;
let page: Page | undefined;
let frame = 0;

function redraw(): void {
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    draw();
  });
}

const shell = new Shell(redraw);

function draw(): void {
  const route = currentRoute();
  const view = page ? page.view() : emptyState('No such page', html`<a href="/clusters">To the clusters</a>`);
  render(shell.view(route.path === '/' ? '/clusters' : route.path, view), root);
  document.title = page ? `${page.title} · commtune` : 'commtune';
}

function open(): void {
  const route = currentRoute();
  if (route.parts.length === 0) {
    history.replaceState(null, '', `/clusters${location.search}`);
    open();
    return;
  }
  const first = page === undefined;
  page?.close();
  const maker = PAGES[route.parts[0]!];
  const Chosen = route.parts.length === 1 ? maker?.list : route.parts.length === 2 ? maker?.one : undefined;
  page = Chosen ? new Chosen(route, redraw) : undefined;
  draw();
  if (!first) {
    window.scrollTo(0, 0);
    document.getElementById('content')?.focus({ preventScroll: true });
  }
}

takeTokenFromAddress();
takeTokensFromLaterAddresses();
applyTheme();
live.addEventListener('state', redraw);
live.addEventListener('back', () => page?.retry());
client.addEventListener('unauthorized', () => shell.openDialog());
client.addEventListener('wants-token', () => shell.openDialog());
live.start();
startRouter(open);
open();
client.get('/v1/version').then(
  (answer) => {
    shell.version = answer.version;
    redraw();
  },
  () => undefined,
);

export { navigate };
