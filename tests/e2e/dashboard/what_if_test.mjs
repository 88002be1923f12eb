// What happens to a plan when its assumptions change, on a made-up cluster: nothing here depends on what a probe finds.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PATIENCE } from './browser.mjs';
import { Lab } from './lab.mjs';

const lab = new Lab();
let service;
let tab;
const cluster = 'lab';
const api = (path) => service.ask(path);

before(async () => {
  await lab.open({ colorScheme: 'light' });
  ({ service, tab } = lab);
}, { timeout: PATIENCE });

after(() => lab.close());

describe('what if', () => {
  const iteration = () => tab.page.textContent('[data-part="iteration"]');
  const figures = () => tab.page.evaluate(() => document.querySelector('[data-part="iteration"]').closest('dl').textContent);
  const stored = async () => (await api('/v1/plans?limit=200')).rows.length;
  const press = async (slider, key, times) => {
    await tab.page.focus(`#${slider}`);
    for (let presses = 0; presses < times; ++presses) await tab.page.keyboard.press(key);
  };

  it('plans again as a slider moves, stores nothing, and its address says so', async () => {
    await tab.go(`/what-if?model=resnet50&cluster=${cluster}`);
    const [before, plans] = [await iteration(), await stored()];
    const bodies = [];
    const heard = (request) => request.method() === 'POST' && request.url().endsWith('/v1/plans') && bodies.push(request.postDataJSON());
    tab.page.on('request', heard);
    const scales = { bandwidth: 'bandwidth_scale', latency: 'latency_scale', device: 'device_speed_scale', batch: 'batch' };
    for (const [slider, override] of Object.entries(scales)) {
      const [address, numbers] = [tab.page.url(), await figures()];
      await press(slider, slider === 'bandwidth' ? 'ArrowLeft' : 'ArrowRight', 12);
      const wanted = Number(new URL(tab.page.url()).searchParams.get(slider));
      for (let left = 4000; bodies.at(-1)?.overrides?.[override] !== wanted && left > 0; --left) await tab.page.waitForTimeout(50);
      await tab.ready();
      assert.notEqual(tab.page.url(), address);
      assert.match(tab.page.url(), new RegExp(`${slider}=`));
      assert.equal(bodies.at(-1).overrides[override], wanted, `${slider} is sent as ${override}`);
      if (slider !== 'latency') assert.notEqual(await figures(), numbers, slider); // a start-up may be hidden
    }
    tab.page.off('request', heard);
    assert.ok(bodies.every((body) => body.keep === 'none'));
    assert.equal(await stored(), plans, 'a slider stores no plan');
    const shown = await iteration();
    await tab.page.reload(); // the address is all of the question
    await tab.ready();
    assert.equal(await iteration(), shown);
    await tab.page.click('[data-action="reset"]');
    await tab.until((old) => document.querySelector('[data-part="iteration"]').textContent === old, before);
    assert.doesNotMatch(tab.page.url(), /bandwidth=|batch=/);
  });

  it('shows the answer to the last question, whichever comes last', async () => {
    await tab.go(`/what-if?model=resnet50&cluster=${cluster}`);
    const before = await iteration();
    let cancelled = 0;
    let held;
    const failed = (request) => request.url().endsWith('/v1/plans') && ++cancelled;
    tab.page.on('requestfailed', failed);
    await tab.page.route('**/v1/plans', async (route) => {
      if (held !== undefined) return route.continue();
      held = route; // the first one is never answered in time
    });
    await press('bandwidth', 'PageDown', 1);
    for (let left = 4000; held === undefined && left > 0; --left) await tab.page.waitForTimeout(50);
    await press('bandwidth', 'PageDown', 1);
    await tab.until((old) => document.querySelector('[data-part="iteration"]').textContent !== old, before);
    await tab.ready();
    for (let left = 4000; cancelled === 0 && left > 0; --left) await tab.page.waitForTimeout(50);
    assert.equal(cancelled, 1, 'the question that no longer counts is cancelled');
    const shown = await iteration();
    await held.continue().catch(() => undefined);
    await tab.page.unroute('**/v1/plans');
    await tab.page.waitForTimeout(300);
    assert.equal(await iteration(), shown);
    tab.page.off('requestfailed', failed);
  });

  it('says why it cannot plan, and goes on after that', async () => {
    await tab.go(`/what-if?model=resnet50&cluster=${cluster}`);
    tab.expected = /500/;
    const refuse = (route) => route.fulfill({ status: 500, contentType: 'application/problem+json', body: JSON.stringify({ title: 'The planner is out of order', status: 500 }) });
    await tab.page.route('**/v1/plans', refuse);
    await press('bandwidth', 'ArrowLeft', 5);
    await tab.page.waitForSelector('[data-state="problem"]');
    assert.match(await tab.page.textContent('[data-state="problem"]'), /out of order/);
    await tab.page.unroute('**/v1/plans', refuse);
    await tab.page.click('[data-state="problem"] button');
    await tab.page.waitForSelector('[data-part="iteration"]');
    assert.equal(await tab.page.$('[data-state="problem"]'), null);
    tab.expected = undefined;
  });

  it('stores a plan when it is asked to, and opens it', async () => {
    await tab.go(`/what-if?model=resnet50&cluster=${cluster}&bandwidth=0.5`);
    const plans = await stored();
    await tab.page.click('[data-action="keep"]');
    await tab.page.waitForURL('**/plans/*');
    await tab.ready();
    assert.ok((await stored()) > plans);
    assert.match(await tab.page.textContent('header.page-head'), /what if/);
    await tab.go(`/what-if?model=resnet50&cluster=${cluster}`);
  });

  it('shows speed-up, the map of winners and the servers', async () => {
    await tab.ready();
    assert.ok((await tab.series('speedup')).filter((one) => one.type === 'line').length > 10);
    assert.ok((await tab.series('phase'))[0].points > 20);
    assert.ok((await tab.series('servers'))[0].points > 0);
    const lines = async () => (await tab.series('speedup')).filter((one) => one.type === 'line').length;
    const all = await lines();
    await tab.page.focus('[data-figure="speedup"] .legend button');
    await tab.page.keyboard.press('Enter');
    await tab.until((left) => document.querySelector('[data-figure="speedup"] ct-chart').instance.getOption().series.filter((one) => one.type === 'line').length === left, all - 1);
    await tab.page.keyboard.press('Enter');
    await tab.until((left) => document.querySelector('[data-figure="speedup"] ct-chart').instance.getOption().series.filter((one) => one.type === 'line').length === left, all);
    await tab.page.selectOption('#most', '16');
    await tab.until(() => document.querySelector('[data-figure="speedup"] ct-chart').instance.getOption().xAxis[0].max === 16);
  });

  it('says that an answer is incomplete, and not of one that is whole', async () => {
    const pages = [`/what-if?model=resnet50&cluster=${cluster}`, `/tune?model=resnet50&cluster=${cluster}`];
    const shorten = async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), complete: false } });
    };
    for (const page of pages) {
      for (const limited of [true, false]) {
        if (limited) await tab.page.route('**/v1/plans', shorten);
        await tab.go(page);
        if (page.startsWith('/tune')) await tab.page.click('form[data-form="plan"] button[type="submit"]');
        await tab.page.waitForSelector(page.startsWith('/tune') ? '[data-part="answer"]' : '[data-part="iteration"]');
        await tab.ready();
        const note = await tab.page.$('[data-part="incomplete"]');
        assert.equal(note !== null, limited, page);
        if (limited) assert.match(await note.textContent(), /incomplete.*there may be a better plan/s);
        if (limited) await tab.page.unroute('**/v1/plans', shorten);
      }
    }
  });

  it('marks the runs in the list whose hosts were not as when the fit was made', async () => {
    const change = async (route) => {
      const response = await route.fetch();
      const page = await response.json();
      page.rows[0].differences = ['kernel of n1: 6.1 when it was fitted, 6.5 now'];
      await route.fulfill({ response, json: page });
    };
    const marks = () => tab.page.$$eval('[data-part="other-conditions"]', (found) => found.map((one) => one.title));
    await tab.go('/runs');
    assert.deepEqual(await marks(), []);
    await tab.page.route('**/v1/runs?*', change);
    await tab.go('/runs');
    assert.deepEqual(await marks(), ['kernel of n1: 6.1 when it was fitted, 6.5 now']);
    await tab.page.unroute('**/v1/runs?*', change);
  });

  it('left no error behind', () => tab.faultless('what if'));
});
