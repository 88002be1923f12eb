// Who may act from a browser: who has the address that `tune serve` printed, or another token; on a made-up cluster.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PATIENCE, Tab } from './browser.mjs';
import { Lab } from './lab.mjs';

const lab = new Lab();
let service;

before(async () => {
  await lab.open({ colorScheme: 'light' });
  ({ service } = lab);
}, { timeout: PATIENCE });

after(() => lab.close());

/** A tab of somebody else: storage of one tab is not seen by the other. */
const stranger = () => Tab.open(lab.browser, service.url, { colorScheme: 'light' });

const jobs = async () => (await service.ask('/v1/jobs?limit=1000')).rows.length;

describe('the address that is printed', () => {
  it('opens the dashboard with all rights, and its token goes nowhere else', async () => {
    const tab = await stranger();
    const urls = [];
    tab.page.on('request', (request) => urls.push(request.url()));
    await tab.enter(service);
    assert.equal(await tab.page.evaluate(() => location.href), `${service.url}/clusters`, 'the token is out of the address');
    assert.equal(await tab.page.evaluate(() => sessionStorage.getItem('commtune.token')), service.token);
    assert.equal(await tab.page.evaluate(() => JSON.stringify(localStorage).includes('ct_start_') || document.cookie !== ''), false);
    assert.ok(urls.every((url) => !url.includes(service.token)), 'no request carries it in its address');
    await tab.go('/tune?cluster=lab');
    await tab.page.waitForSelector('[name="verify"]');
    await tab.page.click('[data-form="probe"] button');
    await tab.page.waitForURL('**/jobs/*');
    tab.faultless('with the token of the start');
    await tab.close();
  });

  it('is taken by a tab that is open already', async () => {
    const tab = await stranger();
    await tab.go('/plans');
    await tab.page.evaluate((token) => { location.hash = `token=${token}`; }, service.token);
    await tab.until((token) => sessionStorage.getItem('commtune.token') === token && location.hash === '', service.token);
    await tab.ready();
    tab.faultless('a pasted address');
    await tab.close();
  });
});

describe('without a token', () => {
  it('a tab shows everything, and is asked for one when it wants to act', async () => {
    const tab = await stranger();
    const before = await jobs();
    await tab.go('/tune?cluster=lab');
    assert.equal(await tab.page.$('[name="verify"]'), null, 'what it may not do is not offered');
    tab.expected = /401/;
    await tab.page.click('[data-form="probe"] button');
    await tab.page.waitForSelector('dialog[open]');
    assert.match(await tab.page.textContent('[data-form="probe"] [role="alert"]'), /operate/);
    assert.equal(await jobs(), before);
    await tab.page.click('dialog button[type="button"]');
    assert.equal(await tab.page.getAttribute('[data-service]', 'data-service'), 'here', 'what may be seen is still seen');
    tab.expected = undefined;
    tab.faultless('without a token');
    await tab.close();
  });

  it('a tab with the token of an earlier start still shows everything', async () => {
    const tab = await stranger();
    await tab.page.goto(`${service.url}/#token=ct_start_${'0'.repeat(64)}`);
    await tab.ready();
    assert.equal(await tab.page.$('dialog[open]'), null);
    assert.ok(await tab.page.$('[data-cluster="lab"]'));
    tab.faultless('with an old token');
    await tab.close();
  });
});

describe('a run that was handed in without a token', () => {
  it('is shown and marked, and judges no prediction', async () => {
    const tab = await stranger();
    const points = async () => (await tab.series('scatter')).reduce((sum, one) => sum + one.points, 0);
    const judged = () => tab.page.textContent('.choices dl.stats');
    await tab.go('/runs');
    const [before, said] = [await points(), await judged()];
    for (let time = 0; time < 2; ++time) {
      const run = await service.ask('/v1/runs', { plan: 1, iteration_seconds: [900, 901, 902] });
      assert.equal(run.attested, false);
    }
    await tab.go('/runs');
    assert.equal((await tab.page.$$('table tbody tr .badge.warn')).length, 2);
    assert.match(await tab.page.textContent('tr:has(a[href^="/runs/"])'), /unattested/, 'the newest run of the list');
    assert.deepEqual([await points(), await judged()], [before, said]);
    assert.match(await tab.page.textContent('[data-part="drift"]'), /No drift/);
    tab.faultless('runs without a token');
    await tab.close();
  });
});
