// What pages share: a place to draw, things that load, and an end.

import type { TemplateResult } from 'lit-html';
import { isAbort, Problem } from './api/client';
import type { Route } from './router';

export abstract class Page {
  /** Shown in the window's title. */
  abstract readonly title: string;
  private readonly ended = new AbortController();
  private readonly resources: Resource<unknown>[] = [];

  constructor(readonly route: Route, private readonly redraw: () => void) {}

  abstract view(): TemplateResult;

  /** Draws again before the next frame. */
  update(): void {
    if (!this.signal.aborted) this.redraw();
  }

  /** Ends with the page. */
  get signal(): AbortSignal {
    return this.ended.signal;
  }

  /** Something that the page shows once it has it. */
  resource<T>(fetcher: (signal: AbortSignal) => Promise<T>): Resource<T> {
    const made = new Resource<T>(this, fetcher);
    this.resources.push(made as Resource<unknown>);
    return made;
  }

  /** Loads again what failed, after the service came back or a token was given. */
  retry(): void {
    for (const resource of this.resources) if (resource.problem) void resource.load();
  }

  close(): void {
    this.ended.abort();
  }
}

/** A value on its way: the last one stays to be shown while the next one loads, and only the latest request counts. */
export class Resource<T> {
  value: T | undefined;
  problem: Problem | undefined;
  loading = false;
  private current: AbortController | undefined;

  constructor(private readonly page: Page, private fetcher: (signal: AbortSignal) => Promise<T>) {}

  async load(): Promise<void> {
    this.current?.abort();
    const mine = new AbortController();
    this.current = mine;
    const stop = (): void => mine.abort();
    this.page.signal.addEventListener('abort', stop, { once: true });
    this.loading = true;
    this.page.update();
    try {
      const value = await this.fetcher(mine.signal);
      if (this.current !== mine) return;
      this.value = value;
      this.problem = undefined;
    } catch (error) {
      if (this.current !== mine || isAbort(error)) return;
      this.problem = error instanceof Problem ? error : new Problem('defect', 'This page has a defect', String(error));
      if (!(error instanceof Problem)) console.error(error);
    } finally {
      this.page.signal.removeEventListener('abort', stop);
    }
    this.loading = false;
    this.page.update();
  }
}

/** Calls after a pause in calls. */
export function debounced(milliseconds: number, action: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(action, milliseconds);
  };
}

const kept = new WeakMap<object, Map<string, unknown>>();

/** The same object for the same key, so that a chart is not drawn again without a reason. */
export function memo<T>(owner: object, key: string, make: () => T): T {
  let mine = kept.get(owner);
  if (!mine) kept.set(owner, (mine = new Map()));
  if (!mine.has(key)) mine.set(key, make());
  return mine.get(key) as T;
}
