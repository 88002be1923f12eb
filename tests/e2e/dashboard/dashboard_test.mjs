// Every page of the dashboard, on numbers that were really measured; what depends on the numbers is tested on made-up
// ones beside (charts_test.mjs, what_if_test.mjs).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launch, PATIENCE, Tab } from './browser.mjs';
import { freePort, Product, Service } from './product.mjs';

const SMALL = ['--scale-bytes', '0.05', '--scale-time', '0.1'];
const LARGEST_VIEW = 1_500_000; // bytes, compressed
const SAMPLES = 100_000;
const README = process.env.COMMTUNE_E2E_README; // a folder; its pictures come from a longer probe
const LARGEST_PICTURE = 150_000; // bytes

let product;
let service;
let browser;
let tab;
let cluster = 'lab';
let planId;
let chosen; // its method

/** A probe that measures the same however slow the machine is: no budget ends it. */
const FEW = ['-f', '8', '-n', '2', '--max-iterations', '2', '--budget', '600s'];

/**
 * Two fits of this machine, a ranking and runs of it; the same on four hosts where they can be emulated, with links that
 * a slow machine can emulate too.
 */
async function fill() {
  for (let time = 0; time < 2; ++time) await product.tune('probe', '--local', '2', '--cluster', 'lab', '-e', '1M', '--fresh', ...FEW);
  await product.tune('resnet50', '--cluster', 'lab', ...SMALL);
  await product.tune('run', 'latest', '--method', 'chosen', '--method', 'ddp-25mib', '--method', 'bsp-ps', '--iterations', '8');
  const four = product.onFourHosts(...(README ? ['1Gbit', '200Mbit'] : ['200Mbit', '40Mbit']), (hosts) => [
    ['probe', '--hosts', hosts, '--cluster', 'four', ...(README ? ['--budget', '60s', '-e', '16M'] : ['-e', '256K', ...FEW])],
    ['resnet50', '--cluster', 'four', ...(README ? SMALL : ['--scale-bytes', '0.01', '--scale-time', '0.1'])],
    ['run', 'latest', '--hosts', hosts, '--method', 'all', '--iterations', README ? '8' : '4', '--warmup', '1'],
  ]);
  if (four) cluster = 'four';
}

const api = (path, of = service) => of.ask(path);

/** Bytes of a body as they travel to a browser. */
function compressedSize(url) {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'Accept-Encoding': 'gzip, deflate, br' } }, (answer) => {
      let size = 0;
      answer.on('data', (part) => (size += part.length)).on('end', () => resolve(size)).on('error', reject);
    }).on('error', reject);
  });
}

before(async () => {
  product = new Product();
  await fill();
  service = new Service(product, await freePort());
  await service.start();
  browser = await launch();
  tab = await Tab.open(browser, service.url, { colorScheme: 'light', acceptDownloads: true });
  await tab.enter(service);
  const plans = (await api('/v1/plans?limit=200')).rows.filter((plan) => plan.cluster_name === cluster);
  for (const plan of plans) {
    const { ranking, method } = await api(`/v1/plans/${plan.id}`);
    if (ranking?.answer) [planId, chosen] = [plan.id, method];
  }
  assert.ok(planId, 'no chosen plan');
}, { timeout: PATIENCE });

after(async () => {
  await browser?.close();
  await service?.stop();
  product?.end();
});

describe('the service of the pages', () => {
  it('says at its start where the dashboard is', () => assert.match(service.said, /dashboard.*http/));

  it('hands out small files under a strict policy', async () => {
    const front = await fetch(service.url + '/');
    const policy = front.headers.get('content-security-policy');
    assert.match(policy, /default-src 'none'|default-src 'self'/);
    assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval|https?:/);
    const page = await front.text();
    assert.doesNotMatch(page, /<script>|<style|onload=/);
    let total = 0;
    for (const [, path] of page.matchAll(/(?:src|href)="(\/[^"]+)"/g)) {
      const answer = await fetch(service.url + path, { headers: { 'Accept-Encoding': 'gzip' } });
      assert.equal(answer.status, 200, path);
      const size = await compressedSize(service.url + path);
      if (path.startsWith('/assets/')) {
        assert.match(answer.headers.get('cache-control'), /immutable/);
      }
      total += size;
      await answer.arrayBuffer();
    }
    console.log(`first view: ${total} B compressed`);
    assert.ok(total > 10_000 && total < LARGEST_VIEW, `${total} B`);
  });

  it('shows its first view at once', async () => {
    const fresh = await Tab.open(browser, service.url);
    await fresh.page.goto(service.url + '/clusters');
    await fresh.page.waitForSelector('[data-cluster]');
    const shown = await fresh.page.evaluate(() => performance.now());
    console.log(`first view: ${Math.round(shown)} ms`);
    if (process.env.COMMTUNE_E2E_TIMING) assert.ok(shown < 1000, `${shown} ms`); // on a machine that is idle
    await fresh.close();
  });
});

describe('clusters', () => {
  it('are cards that lead to one of them', async () => {
    await tab.go('/');
    assert.equal(new URL(tab.page.url()).pathname, '/clusters');
    await tab.page.click(`[data-cluster="${cluster}"]`);
    await tab.page.waitForURL(`**/clusters/${cluster}`);
    await tab.ready();
    assert.match(await tab.page.textContent('h1'), new RegExp(cluster));
  });

  it('show the matrix of links and the slow host', { skip: false }, async (context) => {
    if (cluster !== 'four') return context.skip('no emulated cluster here');
    assert.equal((await tab.series('links'))[0].points, 12);
    assert.match(await tab.page.textContent('main'), /host h3 .*slow/);
    await tab.page.click('[data-value="latency"]');
    await tab.ready();
    assert.match(tab.page.url(), /show=latency/);
    assert.match(await tab.page.getAttribute('[data-figure="links"] ct-chart', 'aria-label'), /latency/);
  });
});

describe('fits', () => {
  it('draw points, line and residuals, and every curve has an address', async () => {
    await tab.go('/fits?cluster=lab');
    const curves = await tab.page.$$eval('#curve option', (options) => options.map((option) => option.value));
    assert.ok(curves.length > 5);
    const series = await tab.series('fit');
    assert.ok(series.filter((one) => one.type === 'scatter').every((one) => one.points > 3));
    await tab.page.selectOption('#curve', curves[3]);
    await tab.ready();
    const shared = tab.page.url();
    const heading = await tab.page.textContent('[data-figure="fit"] h2');
    await tab.page.goto(shared);
    await tab.ready();
    assert.equal(await tab.page.textContent('[data-figure="fit"] h2'), heading);
    assert.equal(await tab.page.inputValue('#curve'), curves[3]);
  });

  it('compare two of them', async () => {
    await tab.go('/fits?cluster=lab');
    const others = await tab.page.$$eval('#against option', (options) => options.map((option) => option.value).filter(Boolean));
    assert.equal(others.length, 1);
    const ofTheOther = `fit ${others[0]}`;
    assert.ok((await tab.series('fit')).every((one) => one.name !== ofTheOther));
    await tab.page.selectOption('#against', others[0]);
    await tab.ready();
    // One probe may have a curve that the other one left out for its doubtful samples.
    const [now, then] = await Promise.all(['', `&fit=${others[0]}`].map((which) => api(`/v1/clusters/lab/fits?points=2${which}`)));
    const name = (curve) => `${curve.subject} ${curve.setting} ${curve.road_text} ${curve.workers}`;
    const both = now.curves.findIndex((curve) => then.curves.some((other) => name(other) === name(curve)));
    await tab.page.selectOption('#curve', { index: both });
    // Its points, its line and its residuals at least; how many pieces a line has is up to the samples.
    await tab.until((name) => document.querySelector('[data-figure="fit"] ct-chart').instance.getOption().series.filter((one) => one.name === name).length >= 2, ofTheOther);
  });

  it('come as a table, CSV and JSON', async () => {
    await tab.page.click('[data-figure="fit"] summary');
    assert.ok((await tab.page.$$('[data-figure="fit"] tbody tr')).length > 3);
    for (const kind of ['csv', 'json']) {
      const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.page.click(`[data-figure="fit"] [data-save="${kind}"]`)]);
      const text = readFileSync(await download.path(), 'utf8');
      const rows = kind === 'csv' ? text.trim().split('\r\n').slice(1) : JSON.parse(text);
      assert.ok(rows.length > 3);
      if (kind === 'csv') assert.match(text, /^fit,size_bytes,median_seconds/);
      else assert.ok(rows[0].median_seconds > 0);
    }
  });
});

describe('plans', () => {
  it('are found by words', async () => {
    await tab.go('/plans');
    const all = (await tab.page.$$('tbody tr')).length;
    await tab.page.fill('#find', 'bsp');
    await tab.until((before) => document.querySelectorAll('tbody tr').length < before, all);
    assert.match(tab.page.url(), /q=bsp/);
  });

  it('show ranking, timeline, messages and settings of any method', async () => {
    await tab.go(`/plans/${planId}`);
    const ranking = await tab.series('ranking');
    const methods = ranking.find((one) => one.id === 'compute').points;
    assert.ok(methods >= 10);
    assert.ok((await tab.page.$$('[data-figure="ranking"] ~ .scroll tbody tr a')).length > 0, 'measured values beside the predicted');
    const first = await tab.page.textContent('[data-figure="timeline"] h2');
    const other = chosen === 'ddp-25mib' ? 'wfbp-ps' : 'ddp-25mib';
    await tab.page.click(`[data-method="${other}"]`);
    await tab.until((before) => document.querySelector('[data-figure="timeline"] h2').textContent !== before, first);
    await tab.ready();
    assert.match(tab.page.url(), new RegExp(`method=${other}`));
    assert.match(await tab.page.textContent('[data-figure="messages"] figcaption'), /fused/);
    await tab.fills('another method');
    for (const target of ['ddp-single', 'fsdp2', 'deepspeed', 'megatron', 'horovod', 'byteps', 'nccl', 'env', 'ddp']) {
      await tab.page.click(`[data-value="${target}"]`);
      await tab.ready();
      assert.equal(await tab.page.getAttribute(`[data-value="${target}"]`, 'aria-pressed'), 'true');
    }
  });

  it('zoom their timeline with buttons and keys', async () => {
    const zoom = () => tab.page.evaluate(() => {
      const { start, end } = document.querySelector('[data-figure="timeline"] ct-chart').instance.getOption().dataZoom[0];
      return end - start;
    });
    assert.equal(await zoom(), 100);
    await tab.page.click('[aria-label="Zoom in"]');
    assert.ok((await zoom()) < 70);
    await tab.page.focus('[data-figure="timeline"] ct-chart');
    await tab.page.keyboard.press('+');
    assert.ok((await zoom()) < 50);
    await tab.page.keyboard.press('ArrowRight');
    await tab.page.keyboard.press('0');
    assert.equal(await zoom(), 100);
  });

  it('show what was measured below what was predicted, on the same scale, and as a trace', async () => {
    await tab.go(`/plans/${planId}`);
    const { lanes, end, measured } = await tab.page.evaluate(() => {
      const option = document.querySelector('[data-figure="timeline"] ct-chart').instance.getOption();
      return { lanes: option.yAxis[0].data, end: option.xAxis[0].max, measured: option.series[0].data.filter(([lane]) => lane > 2).length };
    });
    assert.deepEqual(lanes, ['Compute', 'Reduce', 'Distribute', 'Measured compute', 'Measured reduce', 'Measured distribute']);
    assert.ok(measured > 0);
    const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.page.click('[data-figure="timeline"] [data-save="trace"]')]);
    const { traceEvents } = JSON.parse(readFileSync(await download.path(), 'utf8'));
    const spans = traceEvents.filter((event) => event.ph === 'X');
    assert.deepEqual([...new Set(spans.map((event) => event.pid))].sort(), [0, 1]);
    assert.ok(spans.every((event) => event.ts >= 0 && event.dur > 0 && event.ts + event.dur <= end * 1e6 * 1.0001));
    assert.ok(traceEvents.some((event) => event.name === 'process_name' && event.args.name === 'measured'));
  });

  it('say that one does not exist', async () => {
    tab.expected = /404/;
    await tab.page.goto(`${service.url}/plans/987654`);
    await tab.page.waitForSelector('[data-state="problem"][data-kind="absent"]');
    tab.expected = undefined;
  });
});

describe('runs', () => {
  it('compare predicted with measured, and lead to one', async () => {
    await tab.go('/runs');
    assert.ok((await tab.series('scatter')).some((one) => one.type === 'scatter' && one.points > 2));
    assert.ok((await tab.page.$('[data-part="drift"]')) !== null);
    await tab.page.selectOption('#cluster', 'lab');
    await tab.ready();
    assert.match(tab.page.url(), /cluster=lab/);
    await tab.page.click('table tbody tr:first-child th a');
    await tab.page.waitForURL('**/runs/*');
    await tab.ready();
    assert.ok((await tab.series('iterations'))[0].points >= 4);
  });
});

describe('drift', () => {
  it('raises an alarm where the newest predictions are far off', async () => {
    const wrong = async (route) => {
      const answer = await (await route.fetch()).json();
      for (const run of answer.rows) run.predicted_seconds = 0.7 * run.median_seconds;
      await route.fulfill({ json: answer });
    };
    await tab.page.route('**/v1/runs?*', wrong);
    await tab.go('/runs');
    assert.match(await tab.page.textContent('[data-part="drift"]'), /−30.0.%.*too fast/s);
    await tab.accessible('runs with an alarm');
    await tab.shoot('drift-light');
    await tab.page.unroute('**/v1/runs?*', wrong);
  });
});

describe('tune', () => {
  it('plans a model', async () => {
    await tab.go('/tune?cluster=lab');
    await tab.page.fill('[name="workers"]', '2');
    await tab.page.click('[data-form="plan"] button[type="submit"]');
    await tab.page.waitForSelector('[data-part="answer"]');
    await tab.ready();
    assert.ok((await tab.series('ranking')).length > 0);
  });

  it('plans for what the program waits for', async () => {
    await tab.go('/tune?cluster=lab');
    await tab.page.selectOption('#barrier', 'per-layer');
    const asked = tab.page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/plans'));
    await tab.page.click('[data-form="plan"] button[type="submit"]');
    assert.equal((await asked).postDataJSON().barrier, 'per-layer');
    await tab.page.waitForSelector('[data-part="answer"]');
    await tab.ready();
    assert.ok((await tab.series('ranking')).length > 0);
  });

  it('searches closely where it is asked to', async () => {
    await tab.go('/tune?cluster=lab');
    await tab.page.check('[name="thorough"]');
    const asked = tab.page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/v1/plans'));
    await tab.page.click('[data-form="plan"] button[type="submit"]');
    assert.equal((await asked).postDataJSON().thorough, true);
    await tab.page.waitForSelector('[data-part="answer"]');
    await tab.ready();
  });

  it('takes a profile, and says what is wrong with one', async () => {
    tab.expected = /400|422/;
    await tab.page.setInputFiles('[name="profile"]', { name: 'broken.json', mimeType: 'application/json', buffer: Buffer.from('{"format":') });
    await tab.page.waitForSelector('#upload-says.wrong');
    await tab.page.setInputFiles('[name="profile"]', { name: 'wrong.json', mimeType: 'application/json', buffer: Buffer.from('{"format":"commtune/profile/1"}') });
    await tab.until(() => /model/.test(document.getElementById('upload-says').textContent));
    tab.expected = undefined;
    const layer = (name, bytes) => ({ name, forward_seconds: 0.001, backward_seconds: 0.002, tensors: [{ name: `${name}.weight`, bytes }] });
    const profile = { format: 'commtune/profile/1', model: 'of-the-test', batch: 8, data_type: 'float32', origin: { how: 'measured' }, layers: [layer('one', 4096), layer('two', 1 << 20)] };
    await tab.page.setInputFiles('[name="profile"]', { name: 'good.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(profile)) });
    await tab.until(() => /of-the-test is stored/.test(document.getElementById('upload-says').textContent));
    await tab.page.click('[data-form="plan"] button[type="submit"]');
    await tab.page.waitForSelector('[data-part="answer"]');
  });

  it('verifies a plan by running', { timeout: PATIENCE }, async () => {
    const profile = (await api('/v1/profiles?limit=200')).rows.find((one) => one.model === 'of-the-test');
    await tab.go(`/tune?cluster=lab&model=${profile.digest}`);
    await tab.page.fill('[name="verify"]', '5');
    await tab.page.click('[data-form="plan"] button[type="submit"]');
    await tab.page.waitForURL('**/jobs/*');
    await tab.page.waitForSelector('a.button[href^="/plans/"]');
    assert.match(await tab.page.textContent('[data-part="reason"]'), /^Measured \d+ plans? in /);
    await tab.page.click('a.button[href^="/plans/"]');
    await tab.ready();
    assert.match(await tab.page.textContent('[data-part="why"] dl'), /Measured\s*[\d.]+\s*[mµ]?s\s*± [\d.]+\s*[mµ]?s, in \d+\s*round/, 'the chosen plan was run');
    await tab.shoot('verified-light');
  });

  it('follows a probe live', { timeout: PATIENCE }, async () => {
    await tab.go('/tune?cluster=lab');
    await tab.page.fill('[data-form="probe"] [name="budget"]', '15'); // long enough for a slow browser to see some of it
    await tab.page.fill('[data-form="probe"] [name="largest"]', '256');
    await tab.page.click('[data-form="probe"] button');
    await tab.page.waitForURL('**/jobs/*');
    const seen = new Set();
    await tab.page.exposeFunction('saw', (text) => seen.add(text));
    await tab.page.waitForSelector('[data-part="stage"]');
    await tab.page.evaluate(() => new MutationObserver(() => {
      const part = (name) => document.querySelector(`[data-part="${name}"]`)?.textContent ?? '';
      globalThis.saw(`${part('progress')} ${part('stage')}`);
    }).observe(document.body, { subtree: true, childList: true, characterData: true }));
    await tab.until(() => document.querySelector('[data-part="progress"]')?.textContent.startsWith('100') && document.querySelector('.badge.good'), undefined);
    assert.ok(seen.size > 2, `progress was seen ${seen.size} times: ${[...seen].join('; ')}`);
    await tab.accessible('job');
    await tab.shoot('job-light');
  });

  it('runs a plan', { timeout: PATIENCE }, async () => {
    const plan = (await api('/v1/plans?limit=200')).rows.findLast((one) => one.cluster_name === 'lab' && one.fit); // the oldest: a small one
    await tab.go(`/plans/${plan.id}`);
    await tab.page.fill('[data-form="run"] [name="iterations"]', '3');
    await tab.page.click('[data-form="run"] button');
    await tab.page.waitForURL('**/jobs/*');
    await tab.page.waitForSelector('a.button[href^="/runs/"]');
    await tab.page.click('a.button[href^="/runs/"]');
    await tab.ready();
    assert.ok((await tab.series('iterations'))[0].points >= 3);
  });
});

describe('the frame', () => {
  it('is reached by keyboard alone', async () => {
    await tab.go('/clusters');
    await tab.page.evaluate(() => document.body.focus());
    await tab.page.keyboard.press('Tab');
    assert.equal(await tab.page.evaluate(() => document.activeElement.className), 'skip');
    for (let presses = 0; presses < 6; ++presses) await tab.page.keyboard.press('Tab');
    await tab.page.keyboard.press('Enter');
    await tab.ready();
    assert.notEqual(new URL(tab.page.url()).pathname, '/clusters');
    assert.ok(await tab.page.evaluate(() => document.querySelector('.nav a[aria-current="page"]') !== null));
  });

  it('changes its theme and keeps it', async () => {
    const theme = () => tab.page.evaluate(() => document.documentElement.dataset.theme);
    assert.equal(await theme(), 'light');
    await tab.page.click('[data-action="theme"]');
    await tab.page.click('[data-action="theme"]');
    assert.equal(await theme(), 'dark');
    await tab.page.reload();
    await tab.ready();
    assert.equal(await theme(), 'dark');
    await tab.page.click('[data-action="theme"]');
  });

  it('says that there is no such page', async () => {
    tab.expected = /404/;
    await tab.page.goto(`${service.url}/clusters/no/such`);
    tab.expected = undefined;
  });

  it('survives that the service goes, and comes back by itself', async () => {
    await tab.go('/runs');
    tab.expected = /ERR_|Failed to (fetch|load)/;
    await service.stop();
    await tab.page.waitForSelector('[data-service="gone"]');
    await tab.page.click('.nav a[href="/plans"]');
    await tab.page.waitForSelector('[data-state="problem"][data-kind="unreachable"]');
    await service.start();
    await tab.page.waitForSelector('[data-service="here"]');
    await tab.page.waitForSelector('table tbody tr');
    tab.expected = undefined;
  });

  it('left no error behind, and asked nobody else', () => tab.faultless('all of the above'));
});

describe('a service that asks for tokens', () => {
  it('refuses a wrong one and takes the right one', async () => {
    const secret = (await product.tune('token', 'make', 'reader', '--scope', 'read')).trim();
    const guarded = new Service(product, await freePort(), '--require-token');
    await guarded.start();
    const other = await Tab.open(browser, guarded.url);
    try {
      other.expected = /401|403/;
      await other.page.goto(`${guarded.url}/clusters`);
      await other.page.waitForSelector('dialog[open]');
      await other.page.fill('[name="token"]', 'ct_wrong');
      await other.page.click('dialog button[type="submit"]');
      await other.until(() => /does not accept/.test(document.getElementById('token-wrong').textContent));
      await other.page.fill('[name="token"]', secret);
      await other.page.click('dialog button[type="submit"]');
      await other.page.waitForSelector('[data-cluster]');
      assert.equal(await other.page.$('dialog[open]'), null);
      await other.go('/tune?cluster=lab');
      await other.page.click('[data-form="probe"] button');
      await other.until(() => /operate/.test(document.querySelector('[data-form="probe"] [role="alert"]').textContent));
      other.faultless('with a token');
    } finally {
      await other.close();
      await guarded.stop();
    }
  });
});

describe('a hundred thousand samples in a fit', () => {
  const CURVE = 'link inter-host | alone';

  /** Seconds of the slowest point that is drawn. */
  const slowest = (other) => other.page.evaluate(() => {
    const { series } = document.querySelector('[data-figure="fit"] ct-chart').instance.getOption();
    return Math.max(...series.filter((one) => one.type === 'scatter').flatMap((one) => one.data.map(([, value]) => value)));
  });

  /** Points at the curve along its length, asks for another one and back. */
  async function useFit(other) {
    const { x, y, width, height } = await other.page.locator('[data-figure="fit"] ct-chart').boundingBox();
    for (let at = 0; at < 40; ++at) await other.page.mouse.move(x + width * (0.15 + 0.02 * at), y + height * (0.2 + 0.01 * at));
    for (const curve of ['link inter-host | streamed', CURVE]) {
      await other.page.selectOption('#curve', curve);
      await other.ready();
    }
  }

  it('are thinned by the service, said so, and stay fluid', { skip: !process.env.COMMTUNE_MADE_STORE, timeout: PATIENCE }, async () => {
    const many = new Product();
    await many.makeStore(0, 0, SAMPLES);
    const large = new Service(many, await freePort());
    await large.start();
    const other = await Tab.open(browser, large.url);
    try {
      await other.go('/fits?cluster=lab&curve=' + encodeURIComponent(CURVE));
      assert.match(await other.page.textContent('[data-figure="fit"]'), /Of 100,000 measured points 398 are shown/);
      assert.equal((await other.series('fit')).find((one) => one.type === 'scatter').points, 398);
      assert.ok(await slowest(other) > 1, 'the few that were slow are among those shown');
      // The same is done with a fit of a few samples, so that the load of the machine is in both.
      await useFit(other); // what is made once
      const work = { few: 0, many: 0 };
      for (let time = 0; time < 3; ++time) {
        for (const [name, fit] of [['few', '1'], ['many', '']]) {
          await other.page.selectOption('#fit', fit);
          await other.ready();
          work[name] += await other.work(() => useFit(other));
        }
      }
      const few = (await api(`/v1/clusters/lab/fits?fit=1&points=2`, large)).curves.find((one) => `${one.subject} | ${one.setting}` === CURVE).points_total;
      const ratio = work.many / work.few;
      console.log(`100,000 samples in a fit: ${ratio.toFixed(2)} times the page's work with ${few}`);
      assert.ok(ratio < 8, `${ratio} times the work with few samples`);
      await other.shoot('many-samples-light');
      other.faultless('many samples');
    } finally {
      await other.close();
      await large.stop();
      many.end();
    }
  });
});

describe('a new store', () => {
  it('says on every page what to do first', async () => {
    const empty = new Product();
    const fresh = new Service(empty, await freePort());
    await fresh.start();
    const other = await Tab.open(browser, fresh.url);
    try {
      for (const path of ['/clusters', '/fits', '/plans', '/what-if', '/runs', '/tune']) {
        await other.go(path);
        assert.ok((await other.page.$('[data-state="empty"]')) !== null, path);
        await other.accessible(`empty ${path}`);
      }
      await other.go('/clusters');
      await other.shoot('empty-light');
      other.faultless('a new store');
    } finally {
      await other.close();
      await fresh.stop();
      empty.end();
    }
  });
});

describe('every page, in both themes and on a phone', () => {
  const pages = () => ({
    clusters: '/clusters', cluster: `/clusters/${cluster}`, fits: `/fits?cluster=${cluster}`, plans: '/plans', plan: `/plans/${planId}`,
    'what-if': `/what-if?cluster=${cluster}`, runs: '/runs', run: '/runs/1', tune: `/tune?cluster=${cluster}`,
  });

  for (const colorScheme of ['light', 'dark']) {
    it(`is accessible and shot: ${colorScheme}`, { timeout: PATIENCE }, async () => {
      const other = await Tab.open(browser, service.url, { colorScheme });
      for (const [name, path] of Object.entries(pages())) {
        await other.go(path);
        await other.fits(`${name}, ${colorScheme}`);
        await other.accessible(`${name}, ${colorScheme}`);
        await other.hasTables(name);
        await other.fills(name);
        await other.shoot(`${name}-${colorScheme}`);
        if (colorScheme === 'light') await other.reachable(name);
      }
      other.faultless(colorScheme);
      await other.close();
    });
  }

  it('fits a phone', { timeout: PATIENCE }, async () => {
    const other = await Tab.open(browser, service.url, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 1, isMobile: true, hasTouch: true });
    for (const [name, path] of Object.entries(pages())) {
      await other.go(path);
      await other.fits(`${name} on a phone`);
      await other.accessible(`${name} on a phone`);
      await other.shoot(`${name}-phone`);
    }
    other.faultless('phone');
    await other.close();
  });

  it('makes the small pictures of the README where it is asked to', async (context) => {
    if (!README) return context.skip('COMMTUNE_E2E_README names no folder');
    for (const [name, colorScheme, figure, block] of [['ranking', 'light', 'ranking', 'nearest'], ['timeline', 'dark', 'timeline', 'end']]) {
      const other = await Tab.open(browser, service.url, { colorScheme, viewport: { width: 1180, height: 860 }, deviceScaleFactor: 0.75 });
      await other.go(`/plans/${planId}`);
      await other.page.$eval(`[data-figure="${figure}"] ct-chart`, (one, where) => one.scrollIntoView({ block: where }), block);
      await other.page.waitForTimeout(300);
      const picture = await other.page.screenshot({ path: join(README, `${name}.png`) });
      assert.ok(picture.length < LARGEST_PICTURE, `${name}: ${picture.length} B`);
      await other.close();
    }
  });
});
