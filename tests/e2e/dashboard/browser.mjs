// Chromium without a window, and what every page has to hold to: no errors, no foreign host, nothing that axe objects to.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const folder = process.env.COMMTUNE_E2E_FOLDER;
const require = createRequire(join(folder, 'package.json'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
export const SCREENSHOTS = process.env.COMMTUNE_E2E_SCREENSHOTS ?? join(folder, 'screenshots');
mkdirSync(SCREENSHOTS, { recursive: true });

/** Milliseconds for what ends at once, except on a slow machine under load: spent only where something hangs. */
export const PATIENCE = 1_800_000;
const WAIT = 300_000; // for one thing to appear

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
}

/** A page that remembers what went wrong on it. */
export class Tab {
  static async open(browser, base, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, ...options });
    const tab = new Tab();
    tab.context = context;
    tab.base = base;
    tab.page = await context.newPage();
    tab.faults = [];
    tab.hosts = new Set();
    tab.page.on('pageerror', (error) => tab.faults.push(`error: ${error.stack}`));
    tab.page.on('console', (message) => {
      if (message.type() === 'error' && !tab.expected?.test(message.text())) tab.faults.push(`console: ${message.text()}`);
    });
    tab.page.on('request', (request) => tab.hosts.add(new URL(request.url()).origin));
    tab.page.setDefaultTimeout(WAIT);
    return tab;
  }

  /** As its user comes in: at the address that the service printed, with the right to act. */
  async enter(service) {
    await this.page.goto(`${service.url}/#token=${service.token}`);
    await this.ready();
  }

  async go(path) {
    await this.page.goto(this.base + path);
    await this.ready();
  }

  /** Until a function in the page returns something. Asked from here: the page's policy forbids playwright's own way. */
  async until(condition, argument, patience = WAIT) {
    const deadline = Date.now() + patience;
    for (;;) {
      if (await this.page.evaluate(condition, argument).catch(() => false)) return;
      if (Date.now() > deadline) throw new Error(`waited in vain for ${condition}`);
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  }

  /** Nothing loads and every chart in sight is drawn. */
  async ready() {
    await this.page.waitForSelector('h1');
    await this.until(() => {
      const waits = document.querySelector('[data-state="loading"], [aria-busy="true"]');
      const charts = [...document.querySelectorAll('ct-chart')].filter((chart) => chart.clientWidth > 0);
      return !waits && charts.every((chart) => chart.dataset.drawn === 'yes');
    });
    // What was asked for is drawn a frame or two later, and moves there for a moment.
    await this.page.evaluate(async () => {
      for (let frames = 0; frames < 4; ++frames) await new Promise(requestAnimationFrame);
    });
    await this.page.waitForTimeout(350);
  }

  /** The series of a figure as ECharts has them. */
  series(figure) {
    return this.page.evaluate((id) => {
      const chart = document.querySelector(`[data-figure="${id}"] ct-chart`);
      return chart.instance.getOption().series.map((one) => ({ type: one.type, id: one.id, name: one.name, points: one.data.length }));
    }, figure);
  }

  /** What the tooltip of a figure says while it can be seen: its title and the values under it by name. */
  tip(figure) {
    return this.page.evaluate((id) => {
      const tip = document.querySelector(`[data-figure="${id}"] .tip`);
      if (!tip || getComputedStyle(tip).visibility === 'hidden') return undefined;
      const texts = (selector) => [...tip.querySelectorAll(selector)].map((one) => one.textContent);
      const values = texts('dd');
      return { title: texts('b')[0], values: Object.fromEntries(texts('dt').map((name, index) => [name, values[index]])) };
    }, figure);
  }

  /**
   * Points at a place of a figure until its tooltip has this title (or one that matches), and gives the tooltip.
   * A function in the page says where the place is: each time anew, for what is above may still grow.
   */
  async pointAt(figure, place, argument, title) {
    const deadline = Date.now() + WAIT;
    const fits = (said) => said && (title instanceof RegExp ? title.test(said) : said === title);
    for (;;) {
      const { x, y } = await this.page.evaluate(place, argument);
      await this.page.mouse.move(x, y);
      await this.page.waitForTimeout(60);
      const tip = await this.tip(figure);
      if (fits(tip?.title)) return tip;
      if (Date.now() > deadline) throw new Error(`${figure}: no tooltip "${title}" but ${JSON.stringify(tip)}`);
      // A pointer that rests tells a chart nothing, and what it is on stays in front of all else until it leaves.
      await this.page.mouse.move(1, 1);
      await this.page.waitForTimeout(60);
    }
  }

  /** Seconds that the page's own thread works while something is done. */
  async work(action) {
    const session = await this.context.newCDPSession(this.page);
    await session.send('Performance.enable');
    const worked = async () => (await session.send('Performance.getMetrics')).metrics.find((one) => one.name === 'TaskDuration').value;
    const before = await worked();
    await action();
    const after = await worked();
    await session.detach();
    return after - before;
  }

  async shoot(name) {
    await this.page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
  }

  /** Rules of WCAG 2.1 A and AA that axe calls serious or critical. */
  async accessible(what) {
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(async () => {
      const result = await globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] });
      return result.violations
        .filter((one) => one.impact === 'serious' || one.impact === 'critical')
        .map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.failureSummary.split('\n')[1] ?? ''}`).join(' | ')}`);
    });
    assert.deepEqual(found, [], `${what}: axe objects`);
  }

  /** Every control that can be seen is reached with the tab key alone. */
  async reachable(what) {
    const total = await this.page.evaluate(() => {
      const all = [...document.querySelectorAll('a[href], button, input, select, summary, ct-chart[tabindex]')].filter((one) => one.checkVisibility() && !one.disabled && !one.classList.contains('skip'));
      globalThis.unreached = new Set(all);
      document.addEventListener('focusin', (event) => globalThis.unreached.delete(event.target));
      document.activeElement?.blur();
      return all.length;
    });
    for (let left = total + 60; left > 0 && (await this.page.evaluate(() => globalThis.unreached.size)) > 0; --left) await this.page.keyboard.press('Tab');
    const missed = await this.page.evaluate(() => [...globalThis.unreached].map((one) => one.outerHTML.slice(0, 90)));
    assert.deepEqual(missed, [], `${what}: not reached by keyboard`);
  }

  /** No chart leaves most of its place empty. */
  async fills(what) {
    const small = await this.page.evaluate(() => [...document.querySelectorAll('ct-chart')].filter((chart) => chart.clientWidth > 0).map((chart) => {
      const grids = chart.instance.getModel().queryComponents({ mainType: 'grid' }).map((one) => one.coordinateSystem.getRect().height);
      return { figure: chart.closest('figure').dataset.figure, part: grids.reduce((sum, one) => sum + one, 0) / chart.clientHeight };
    }).filter((one) => one.part < 0.5));
    assert.deepEqual(small, [], `${what}: charts that are mostly empty`);
  }

  /** Every chart says what it shows and has its numbers in a table beside it. */
  async hasTables(what) {
    const without = await this.page.evaluate(() => [...document.querySelectorAll('ct-chart')].filter((chart) => {
      const rows = chart.closest('figure')?.querySelectorAll('details.numbers tbody tr').length ?? 0;
      return rows === 0 || (chart.getAttribute('aria-label') ?? '').length < 20;
    }).map((chart) => chart.closest('figure')?.dataset.figure ?? 'no figure'));
    assert.deepEqual(without, [], `${what}: charts without a table or words`);
  }

  /** Wider than the window is unreadable on a phone. */
  async fits(what) {
    const over = await this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `${what}: ${over} px wider than the window`);
  }

  faultless(what) {
    assert.deepEqual(this.faults, [], what);
    assert.deepEqual([...this.hosts].filter((origin) => origin !== this.base && !origin.startsWith('blob:') && origin !== 'null'), [], `${what}: another host was asked`);
  }

  close() {
    return this.context.close();
  }
}
