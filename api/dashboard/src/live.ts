// Whether the service is there, and what it says as it happens. One stream for the whole window.

import { client, isAbort, Problem } from './api/client';
import { listen, type ServerEvent } from './api/events';

export type ServiceState = 'starting' | 'here' | 'gone' | 'locked';

class Live extends EventTarget {
  state: ServiceState = 'starting';
  private asking = false;
  private stream: AbortController | undefined;

  start(): void {
    client.addEventListener('unreachable', () => this.gone());
    client.addEventListener('reached', () => this.here());
    client.addEventListener('unauthorized', () => this.set('locked'));
    client.addEventListener('token', () => this.follow());
    this.follow();
  }

  /** Listens anew: with another token, say. */
  private follow(): void {
    this.stream?.abort();
    const mine = new AbortController();
    this.stream = mine;
    const tell = (event: ServerEvent): void => {
      this.dispatchEvent(new CustomEvent<ServerEvent>('event', { detail: event }));
    };
    listen('/v1/events', mine.signal, tell).catch((error: unknown) => {
      if (!(error instanceof Problem) && !isAbort(error)) console.error(error);
    });
  }

  private set(state: ServiceState): void {
    if (this.state === state) return;
    const before = this.state;
    this.state = state;
    this.dispatchEvent(new Event('state'));
    if (state === 'here' && before !== 'starting') this.dispatchEvent(new Event('back'));
  }

  private here(): void {
    if (this.state !== 'locked') this.set('here');
  }

  /** The right token was given. */
  unlocked(): void {
    this.set('here');
  }

  private gone(): void {
    this.set('gone');
    if (this.asking) return;
    this.asking = true;
    const again = async (): Promise<void> => {
      try {
        if ((await fetch('/livez', { cache: 'no-store' })).ok) {
          this.asking = false;
          this.set('here');
          return;
        }
      } catch {
        // Still gone.
      }
      setTimeout(() => void again(), 1500);
    };
    setTimeout(() => void again(), 800);
  }
}

export const live = new Live();

/** Calls back for events of a kind ("job", "run") until the signal ends it. */
export function onLive(kind: string, signal: AbortSignal, action: (data: unknown) => void): void {
  const heard = (event: Event): void => {
    const { event: name, data } = (event as CustomEvent<ServerEvent>).detail;
    if (name !== kind) return;
    try {
      action(JSON.parse(data));
    } catch (error) {
      console.error('an event that is not JSON', error);
    }
  };
  live.addEventListener('event', heard, { signal });
}
