// Server-sent events through fetch, so that they carry the token; goes on after a lost connection.

import { client, isAbort, Problem } from './client';

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Splits a stream of text into events, as the WHATWG's HTML standard describes them. */
export class EventParser {
  private rest = '';
  private id = '';
  private event = '';
  private data: string[] = [];

  *feed(text: string): Generator<ServerEvent> {
    const lines = (this.rest + text).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (this.data.length > 0) yield { id: this.id, event: this.event || 'message', data: this.data.join('\n') };
        this.event = '';
        this.data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'id') this.id = value;
      else if (field === 'event') this.event = value;
      else if (field === 'data') this.data.push(value);
    }
  }
}

/** Calls back for each event until the signal ends it. Waits 1, 2, 4, ... at most 10 s between attempts. */
export async function listen(url: string, signal: AbortSignal, onEvent: (event: ServerEvent) => void): Promise<void> {
  let last = '';
  let pause = 1000;
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (last) headers['Last-Event-ID'] = last;
      const response = await client.fetch(url, { headers }, { signal });
      const parser = new EventParser();
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        pause = 1000;
        for (const event of parser.feed(value)) {
          if (event.id) last = event.id;
          onEvent(event);
        }
      }
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      if (error instanceof Problem && error.kind !== 'unreachable') throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 10_000);
  }
}
