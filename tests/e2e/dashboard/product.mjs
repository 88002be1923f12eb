// The product as its users have it: the tune program with a home of its own, and `tune serve`.

import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const PATIENCE = 1_200_000; // milliseconds for what ends soon, except on a slow machine under load
const program = process.env.COMMTUNE_E2E_TUNE;
if (!program) throw new Error('COMMTUNE_E2E_TUNE: set it to the tune program');

export class Product {
  constructor() {
    this.home = mkdtempSync(join(tmpdir(), 'commtune-dashboard-'));
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('COMMTUNE_') && !name.startsWith('XDG_'));
    this.environment = { ...Object.fromEntries(kept), HOME: this.home, XDG_RUNTIME_DIR: this.home, COMMTUNE_DB: join(this.home, 'store.db'), COMMTUNE_PROGRESS: 'never' };
  }

  /** Standard output of a call that has to succeed. A probe waits for its turn: one at a time on a machine. */
  async tune(...words) {
    for (const deadline = Date.now() + PATIENCE; ;) {
      try {
        const { stdout } = await promisify(execFile)(program, words, { env: this.environment, cwd: this.home, maxBuffer: 1 << 26, timeout: PATIENCE });
        return stdout;
      } catch (error) {
        if (Date.now() > deadline || !/another probe is running/.test(error.message)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  /** Calls on the first host of an emulated cluster of four with these rates, the third of them slow; false where there can be none. */
  onFourHosts(rate, slow, calls) {
    const scripts = join(here, '..', '..', 'cluster');
    const name = `dashboard${process.pid}`;
    const run = (script, words) => spawnSync(join(scripts, script), words, { env: this.environment, encoding: 'utf8', timeout: PATIENCE });
    const options = ['--name', name, '--hosts', '4', '--rate', rate, '--delay', '200us', '--host', `3:${slow}`, '--print-hostfile'];
    if (process.env.COMMTUNE_E2E_SWITCH) options.push('--switch', process.env.COMMTUNE_E2E_SWITCH);
    const up = run('up', options);
    if (up.status === 77) {
      console.log(`note: no emulated cluster, so no link matrix: ${up.stderr.trim()}`);
      return false;
    }
    if (up.status !== 0) throw new Error(up.stderr);
    try {
      for (const words of calls(up.stdout.trim())) {
        const done = run('exec', ['--name', name, '--', program, ...words]);
        if (done.status !== 0) throw new Error(`tune ${words.join(' ')}: ${done.stderr}`);
      }
    } finally {
      run('down', ['--name', name]);
    }
    return true;
  }

  /** The made-up lab of the service's tests, with so many more plans, runs and samples in a fit. */
  async makeStore(plans, runs, samples) {
    await promisify(execFile)(process.env.COMMTUNE_MADE_STORE, [this.environment.COMMTUNE_DB, plans, runs, samples].map(String), { timeout: PATIENCE });
  }

  end() {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** A port that nobody has at the moment, so that a service can come back at the same address. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export class Service {
  constructor(product, port, ...flags) {
    this.product = product;
    this.words = ['serve', '--listen', `127.0.0.1:${port}`, ...flags];
    this.url = `http://127.0.0.1:${port}`;
  }

  async start() {
    this.said = '';
    this.process = spawn(program, this.words, { env: this.product.environment, cwd: this.product.home, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on('data', (text) => (this.said += text));
    for (const deadline = Date.now() + PATIENCE; Date.now() < deadline;) {
      if (this.process.exitCode !== null) throw new Error(`tune serve ended: ${this.said}`);
      try {
        this.token = /ct_start_[0-9a-f]{64}/.exec(this.said)?.[0]; // of this start: it allows all
        if (this.token && (await fetch(`${this.url}/readyz`)).ok) return;
      } catch {
        // Not yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`tune serve did not get ready: ${this.said}`);
  }

  /** What it answers to a question that has to succeed; one with a body is posted. */
  async ask(path, body) {
    const posted = body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(this.url + path, posted);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.json();
  }

  stop() {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return Promise.resolve();
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGTERM');
    const hard = setTimeout(() => this.process.kill('SIGKILL'), 120_000);
    return ended.finally(() => clearTimeout(hard));
  }
}

