// Talks to the service that this page came from. Paths, queries and answers are those of api/openapi.yaml.

import type { paths } from './schema';

type Json<T> = T extends { content: { 'application/json': infer Body } } ? Body : never;
type Answers<T> = T extends { responses: infer Responses } ? Responses : never;
type Success<R> =
  | (200 extends keyof R ? Json<R[200]> : never)
  | (201 extends keyof R ? Json<R[201]> : never)
  | (202 extends keyof R ? Json<R[202]> : never);
type Operation<P extends keyof paths, M extends string> = M extends keyof paths[P] ? paths[P][M] : never;
type Query<T> = T extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;
type Body<T> = T extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never;

export type GetPath = { [P in keyof paths]: paths[P] extends { get: object } ? P : never }[keyof paths];
export type PostPath = { [P in keyof paths]: paths[P] extends { post: object } ? P : never }[keyof paths];
export type Got<P extends GetPath> = Success<Answers<Operation<P, 'get'>>>;
export type Posted<P extends PostPath> = Success<Answers<Operation<P, 'post'>>>;
export type QueryOf<P extends GetPath> = Query<Operation<P, 'get'>>;
export type BodyOf<P extends PostPath> = Body<Operation<P, 'post'>>;

export type ProblemKind = 'unreachable' | 'unauthorized' | 'forbidden' | 'absent' | 'refused' | 'defect';

/** Why a request has no answer: an RFC 9457 problem of the service, or no service at all. */
export class Problem extends Error {
  constructor(
    readonly kind: ProblemKind,
    readonly title: string,
    readonly detail: string,
    readonly pointer = '',
  ) {
    super(detail || title);
  }

  static async of(response: Response): Promise<Problem> {
    let title = `The service answered ${response.status}`;
    let detail = '';
    let pointer = '';
    try {
      const body = (await response.json()) as { title?: string; detail?: string; errors?: { pointer?: string }[]; pointer?: string };
      title = body.title ?? title;
      detail = body.detail ?? '';
      pointer = body.pointer ?? body.errors?.[0]?.pointer ?? '';
    } catch {
      // A proxy's page, perhaps: the status is all there is to say.
    }
    const kinds: Record<number, ProblemKind> = { 401: 'unauthorized', 403: 'forbidden', 404: 'absent', 502: 'unreachable', 503: 'unreachable', 504: 'unreachable' };
    const kind = kinds[response.status] ?? (response.status >= 500 ? 'defect' : 'refused');
    return new Problem(kind, title, detail, pointer);
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

const TOKEN_KEY = 'commtune.token';

export interface Options {
  signal?: AbortSignal | undefined;
}

class Client extends EventTarget {
  /** Kept for this tab only. */
  get token(): string {
    return sessionStorage.getItem(TOKEN_KEY) ?? '';
  }

  set token(text: string) {
    if (text) sessionStorage.setItem(TOKEN_KEY, text);
    else sessionStorage.removeItem(TOKEN_KEY);
    this.dispatchEvent(new Event('token'));
  }

  get<P extends GetPath>(path: P, pathParts: Record<string, string | number> = {}, query?: QueryOf<P>, options: Options = {}): Promise<Got<P>> {
    return this.json<Got<P>>(target(path, pathParts, query), { method: 'GET' }, options);
  }

  /** Unsafe, so it carries a key: a repeated request does the work once. */
  post<P extends PostPath>(path: P, body: BodyOf<P>, pathParts: Record<string, string | number> = {}, options: Options = {}): Promise<Posted<P>> {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() };
    return this.json<Posted<P>>(target(path, pathParts), { method: 'POST', body: JSON.stringify(body), headers }, options);
  }

  async delete(path: string, options: Options = {}): Promise<void> {
    await this.fetch(path, { method: 'DELETE', headers: { 'Idempotency-Key': crypto.randomUUID() } }, options);
  }

  /** The answer as it comes: for streams and texts. Throws Problem, or AbortError when the signal says so. */
  async fetch(url: string, init: RequestInit, options: Options = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.token) headers.set('Authorization', `Bearer ${this.token}`);
    let response: Response;
    try {
      response = await fetch(url, { ...init, headers, signal: options.signal ?? null, credentials: 'same-origin' });
    } catch (error) {
      if (isAbort(error)) throw error;
      this.dispatchEvent(new Event('unreachable'));
      throw new Problem('unreachable', 'The service does not answer', 'Is `tune serve` still running? This page tries again by itself.');
    }
    if (response.ok) {
      this.dispatchEvent(new Event('reached'));
      return response;
    }
    const problem = await Problem.of(response);
    this.dispatchEvent(new Event(problem.kind === 'unreachable' ? 'unreachable' : 'reached'));
    // Who may look but not act without a token still sees everything.
    if (problem.kind === 'unauthorized') this.dispatchEvent(new Event(init.method && init.method !== 'GET' ? 'wants-token' : 'unauthorized'));
    throw problem;
  }

  private async json<T>(url: string, init: RequestInit, options: Options): Promise<T> {
    const response = await this.fetch(url, init, options);
    return (await response.json()) as T;
  }
}

function target(path: string, parts: Record<string, string | number>, query?: object): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name] ?? '')));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === null || value === '') continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text ? `${filled}?${text}` : filled;
}

export const client = new Client();
