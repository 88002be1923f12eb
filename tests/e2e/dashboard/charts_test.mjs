// What the charts say when they are pointed at, dragged and copied from, on made-up numbers: nothing here depends on what
// a probe finds.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PATIENCE } from './browser.mjs';
import { Lab } from './lab.mjs';

const lab = new Lab();
let service;
let tab;
let plan; // with its ranking

before(async () => {
  await lab.open({ colorScheme: 'light', permissions: ['clipboard-read', 'clipboard-write'] });
  ({ service, tab } = lab);
  plan = await service.ask('/v1/plans', { model: 'resnet50', cluster: 'lab' });
}, { timeout: PATIENCE });

after(() => lab.close());

/** An iteration as the service tells it; times in milliseconds. */
function timeline({ layers, messages, pulls = [] }) {
  const span = ([start, end]) => ({ start_seconds: start / 1e3, end_seconds: end / 1e3 });
  const end = Math.max(...layers.map(({ forward }) => forward[1])) / 1e3;
  return {
    plan: 1, method: 'made-up', model: 'made-up', road: 'all-to-all (ring)', workers: 4, bound_seconds: end / 2,
    prediction: { iteration_seconds: end, compute_seconds: end / 2, exposed_seconds: 0, hidden_seconds: 0, communication_seconds: end / 2, binding: 'compute', basis: 'measured', extrapolated: false },
    layers: layers.map((layer, index) => ({ name: `layer ${index}`, backward: span(layer.backward), forward: span(layer.forward) })),
    messages: messages.map((message, index) => ({ index, bytes: 1024 * (index + 1), pieces: index + 3, label: `tensor ${index}`, released_seconds: message.reduce[0] / 1e3, reduce: span(message.reduce), distribute: span(message.distribute) })),
    pulls: pulls.map((pull, index) => ({ index, bytes: 4096 * (index + 1), pieces: index + 7, label: `tensor ${index}`, released_seconds: pull[0] / 1e3, distribute: span(pull) })),
  };
}

/** Messages of which many are under way at a time: more than there are rows in a lane, of many lengths. */
const crowd = (from, to, number) => Array.from({ length: number }, (_, index) => {
  const start = from + ((to - from) * index) / (2 * number);
  const middle = start + ((to - start) * (1 + (index % 7))) / 10;
  return { reduce: [start, middle], distribute: [middle, middle + (to - middle) / 2] };
});

const ITERATIONS = {
  'one message, long awaited, of which the second stage takes most': timeline({
    layers: [{ backward: [0, 2], forward: [30, 32] }],
    messages: [{ reduce: [2, 3], distribute: [3, 30] }],
  }),
  'one message behind the computation': timeline({
    layers: [{ backward: [5, 10], forward: [10, 15] }, { backward: [0, 5], forward: [15, 20] }],
    messages: [{ reduce: [5, 9], distribute: [9, 14.9] }],
  }),
  'many messages, long awaited': timeline({
    layers: [{ backward: [0, 4], forward: [100, 102] }],
    messages: [...crowd(4, 60, 40), { reduce: [60, 60.001], distribute: [60.001, 100] }],
  }),
  'many messages behind the computation': timeline({
    layers: [{ backward: [50, 100], forward: [100, 150] }, { backward: [0, 50], forward: [150, 200] }],
    messages: crowd(50, 149, 60),
  }),
  'messages that come back in one pull behind the computation': timeline({
    layers: [{ backward: [5, 10], forward: [15, 20] }, { backward: [0, 5], forward: [10, 15] }],
    messages: [{ reduce: [5, 8], distribute: [8, 8] }, { reduce: [8, 9], distribute: [9, 9] }],
    pulls: [[9.5, 14.9]],
  }),
};

describe('the timeline', () => {
  const shown = () => tab.page.evaluate(() => document.querySelector('[data-figure="timeline"] ct-chart').shown);

  /** Zooms to a span and gives the middle of its bar, which takes three quarters of a lane (timeline_chart.ts). */
  const placeOf = (index) => {
    const chart = document.querySelector('[data-figure="timeline"] ct-chart');
    const { lane, start, end, row, rows, kind } = chart.shown[index];
    const margin = (end - start) / 5;
    chart.scrollIntoView({ block: 'center' });
    chart.instance.dispatchAction({ type: 'dataZoom', dataZoomIndex: 0, startValue: start - margin, endValue: end + margin });
    const [axis] = chart.instance.getOption().yAxis;
    const [x, middle] = chart.instance.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [(start + end) / 2, axis.data.indexOf(lane)]);
    const lot = chart.instance.getModel().getComponent('grid').coordinateSystem.getRect().height / axis.data.length;
    const box = chart.getBoundingClientRect();
    return { x: box.x + x, y: box.y + middle + lot * (kind === 'exposed' ? 0.45 : 0.78 * ((row + 0.5) / rows - 0.5)) };
  };

  const overlap = (one, other) => one.start < other.end && other.start < one.end;

  /** The longest and the shortest of the spans that no other one is drawn upon. */
  function extremes(spans, kind) {
    const open = [...spans.keys()].filter((index) => {
      const span = spans[index];
      return span.kind === kind && !spans.slice(index + 1).some((later) => later.lane === span.lane && later.row === span.row && overlap(span, later));
    }).sort((a, b) => spans[a].end - spans[a].start - (spans[b].end - spans[b].start));
    assert.ok(open.length > 0, `no open span: ${kind}`);
    return [...new Set([open.at(-1), open[0]])];
  }

  for (const [what, answer] of Object.entries(ITERATIONS)) {
    it(`says what a span is when it is pointed at: ${what}`, async () => {
      const instead = (route) => route.fulfill({ json: answer });
      await tab.page.route('**/v1/plans/*/timeline*', instead);
      await tab.go(`/plans/${plan.id}`);
      const spans = await shown();
      assert.equal(spans.filter((span) => span.kind === 'reduce').length, answer.messages.length);
      for (const kind of ['reduce', 'distribute']) {
        for (const index of extremes(spans, kind)) {
          const [number] = spans[index].name.split(':');
          const message = number.startsWith('pull ') ? answer.pulls[Number(number.slice(5))] : answer.messages[Number(number)];
          const tip = await tab.pointAt('timeline', placeOf, index, `${number}: ${message.label}`);
          assert.equal(tip.values.pieces, String(message.pieces));
          assert.match(tip.values.size, /^\S+\s(KiB|MiB)$/);
          assert.deepEqual(Object.keys(tip.values).slice(0, 3), ['from', 'to', 'for']);
        }
      }
      const exposed = spans.findIndex((span) => span.kind === 'exposed' && span.lane === 'Compute');
      assert.equal(exposed >= 0, /awaited/.test(what), 'time in which nothing computes');
      if (exposed >= 0) await tab.pointAt('timeline', placeOf, exposed, /^Exposed/);
      const layer = spans.findIndex((span) => span.kind === 'backward');
      await tab.pointAt('timeline', placeOf, layer, `layer ${answer.layers.length - 1 - (spans[layer].start > 0 ? 1 : 0)}, backward`);
      await tab.page.unroute('**/v1/plans/*/timeline*', instead);
    });
  }

  it('is moved by dragging it', async () => {
    await tab.go(`/plans/${plan.id}`);
    const zoom = () => tab.page.evaluate(() => {
      const { start, end } = document.querySelector('[data-figure="timeline"] ct-chart').instance.getOption().dataZoom[0];
      return { start, width: end - start };
    });
    await tab.page.click('[data-figure="timeline"] [aria-label="Zoom in"]');
    const before = await zoom();
    assert.ok(before.start > 0 && before.width < 100);
    const chart = tab.page.locator('[data-figure="timeline"] ct-chart');
    await chart.scrollIntoViewIfNeeded();
    const { x, y, width } = await chart.boundingBox();
    const drag = async (by) => {
      await tab.page.mouse.move(x + width / 2, y + 40);
      await tab.page.mouse.down();
      await tab.page.mouse.move(x + width / 2 + by, y + 40, { steps: 8 });
      await tab.page.mouse.up();
    };
    const moved = (than, later) => tab.until(([start, on]) => {
      const [now] = document.querySelector('[data-figure="timeline"] ct-chart').instance.getOption().dataZoom;
      return on ? now.start > start : now.start < start;
    }, [than, later]);
    await drag(-120);
    await moved(before.start, true);
    const after = await zoom();
    assert.ok(Math.abs(after.width - before.width) < 1e-6, 'it moves, and does not zoom');
    await drag(240);
    await moved(after.start, false);
  });
});

describe('what is pointed at', () => {
  /** What the table beside a figure says in one row, by column. */
  const row = (figure, index) => tab.page.evaluate(([id, at]) => {
    const table = document.querySelector(`[data-figure="${id}"] details.numbers table`);
    const texts = (cells) => [...cells].map((cell) => cell.textContent.trim());
    const values = texts(table.querySelectorAll('tbody tr')[at].children);
    return Object.fromEntries(texts(table.querySelectorAll('thead th')).map((name, column) => [name, values[column]]));
  }, [figure, index]);

  /** The middle of a cell of a grid, by its number. */
  const cellOf = ([figure, index]) => {
    const chart = document.querySelector(`[data-figure="${figure}"] ct-chart`);
    chart.scrollIntoView({ block: 'center' });
    const { column, row: line } = chart.shown.cells[index];
    const [x, y] = chart.instance.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [column, line]);
    const box = chart.getBoundingClientRect();
    return { x: box.x + x, y: box.y + y };
  };

  /** A point of a figure's series of a kind, by its number. */
  const pointOf = ([figure, type, index]) => {
    const chart = document.querySelector(`[data-figure="${figure}"] ct-chart`);
    chart.scrollIntoView({ block: 'center' });
    const { data } = chart.instance.getOption().series.find((one) => one.type === type && one.data.length > 0);
    const [x, y] = chart.instance.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, data[index].value ?? data[index]);
    const box = chart.getBoundingClientRect();
    return { x: box.x + x, y: box.y + y };
  };

  it('is a link of the matrix', async () => {
    await tab.go('/clusters/lab');
    for (const index of [0, 1]) {
      const link = await row('links', index);
      const tip = await tab.pointAt('links', cellOf, ['links', index], `${link.From} to ${link.To}`);
      assert.ok(Object.values(link).includes(tip.values.latency), `${tip.values.latency} is in the table`);
    }
  });

  it('is a point of a fit', async () => {
    await tab.go('/fits?cluster=lab&curve=' + encodeURIComponent('link inter-host | alone'));
    // The last one: of all that were measured with its size it lies in front.
    const last = (await tab.series('fit')).find((one) => one.type === 'scatter').points - 1;
    const { '95 % interval': width, ...point } = await row('fit', last);
    const tip = await tab.pointAt('fit', pointOf, ['fit', 'scatter', last], point.Size);
    assert.deepEqual(tip.values, { measured: point.Measured, '95 % interval': width, fitted: point.Fitted, residual: point.Residual, repetitions: point.Repetitions });
  });

  it('is a method of the ranking', async () => {
    await tab.go(`/plans/${plan.id}`);
    const barOf = (index) => {
      const chart = document.querySelector('[data-figure="ranking"] ct-chart');
      chart.scrollIntoView({ block: 'center' });
      const [x, y] = chart.instance.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [chart.shown.ranking[index].seconds / 2, index]);
      const box = chart.getBoundingClientRect();
      return { x: box.x + x, y: box.y + y };
    };
    for (const index of [0, plan.ranking.length - 1]) {
      const method = await row('ranking', index);
      const tip = await tab.pointAt('ranking', barOf, index, method.Method);
      assert.equal(tip.values.predicted, method.Predicted);
      assert.equal(tip.values.exposed, method.Exposed);
    }
  });

  it('is a run among all', async () => {
    await tab.go('/runs');
    const [run] = (await service.ask('/v1/runs')).rows;
    const tip = await tab.pointAt('scatter', pointOf, ['scatter', 'scatter', 0], /./);
    const ratio = 100 * (run.predicted_seconds / run.median_seconds - 1);
    assert.ok(Math.abs(Number(tip.values.prediction.replace('−', '-').replace(/[^-\d.]/g, '')) - ratio) < 0.1, `${tip.values.prediction}, not ${ratio} %`);
  });

  it('is a cell of the map of winners', async () => {
    await tab.go('/what-if?model=resnet50&cluster=lab');
    const cells = await tab.page.evaluate(() => document.querySelector('[data-figure="phase"] ct-chart').shown.cells.length);
    for (const index of [0, cells - 1]) {
      const cell = await row('phase', index);
      const tip = await tab.pointAt('phase', cellOf, ['phase', index], cell['Fastest published method']);
      assert.equal(tip.values.workers, cell.Workers);
      assert.equal(tip.values['its iteration'], cell['Its iteration']);
    }
  });
});

describe('a command', () => {
  const button = '[aria-label="Copy run command"]';
  const said = () => tab.page.evaluate((one) => {
    globalThis.told = [];
    const element = document.querySelector(one);
    new MutationObserver(() => globalThis.told.push(element.textContent)).observe(element, { childList: true, characterData: true, subtree: true });
  }, button);

  it('is copied, and the button says so', async () => {
    await tab.go(`/plans/${plan.id}`);
    await said();
    await tab.page.click(button);
    await tab.until(() => globalThis.told.includes('Copied'));
    const text = await tab.page.textContent('[aria-label="run command"]');
    assert.match(text, /^tune run [0-9a-f]+ /);
    assert.equal(await tab.page.evaluate(() => navigator.clipboard.readText()), text);
    await tab.until(() => globalThis.told.at(-1) === 'Copy');
  });

  it('is copied where the page may not write to the clipboard by itself', async () => {
    await tab.go(`/plans/${plan.id}`);
    await tab.page.evaluate(() => {
      globalThis.copied = [];
      document.addEventListener('copy', () => globalThis.copied.push(String(document.getSelection()) || document.activeElement.value));
      navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'));
    });
    await said();
    await tab.page.click('[aria-label="Copy run command"]');
    await tab.until(() => globalThis.told.includes('Copied'));
    assert.equal((await tab.page.evaluate(() => globalThis.copied))[0], await tab.page.textContent('[aria-label="run command"]'));
  });
});

describe('A plan', () => {
  const seen = (selector) => tab.page.textContent(selector);

  it('says what the bound is at the edge of the doubt', async () => {
    await tab.go(`/plans/${plan.id}`);
    assert.match(await seen('[data-part="why"] .stats'), /above it; \S+\s\S+ at the edge of the fits' doubt/);
  });

  it('names the doubtful fits that it rests on', async () => {
    await tab.go(`/plans/${plan.id}`);
    assert.equal(await tab.page.$('[data-part="doubtful"]'), null, 'no fit of the made-up cluster is');
    const doubtful = [{ fit: 'all-reduce, alone', median_relative: 0.2, p90_relative: 0.5, r_squared: 0.95, methods: ['wfbp-a2a'] }];
    const stored = await service.ask(`/v1/plans/${plan.id}`);
    stored.ranking.answer.doubtful = doubtful;
    const instead = (route) => route.fulfill({ json: stored });
    await tab.page.route(`**/v1/plans/${plan.id}`, instead);
    await tab.go(`/plans/${plan.id}`);
    assert.match(await seen('[data-part="doubtful"]'), /all-reduce, alone: median residual 20(\.0)?\s%, p90 50(\.0)?\s%, R² 0\.950/);
    delete stored.ranking.answer.doubtful; // as older versions stored it
    stored.doubtful = doubtful;
    await tab.go(`/plans/${plan.id}`);
    assert.match(await seen('[data-part="doubtful"]'), /all-reduce/);
    await tab.page.unroute(`**/v1/plans/${plan.id}`, instead);
  });
});

describe('all of the above', () => {
  it('left no error behind', () => tab.faultless('the charts'));
});
