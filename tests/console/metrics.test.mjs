// The view Metrics: charts from the ring in the server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inAllForms, serverFor, settled, withPage } from './browser.mjs';

const path = '#/metrics';
const STEP_S = 15;

const answer = (route, body) => route.fulfill({ contentType: 'application/json', body: JSON.stringify(body) });

// An hour of samples. `series`: {name: [{labels, value: (place) => number}]}. Answers only what is asked for.
function ring(series, { samples = 240 } = {}) {
  const end = Math.floor(Date.now() / 1000);
  const times = Array.from({ length: samples }, (_, place) => end - (samples - 1 - place) * STEP_S);
  return (route) => {
    const query = new URL(route.request().url()).searchParams;
    const name = query.get('name');
    if (name === null) return answer(route, { names: Object.keys(series).sort() });
    const since = end - Number(query.get('seconds') ?? Infinity);
    const points = (value) => times.map((time, place) => [time, value(place)]).filter(([time]) => time > since);
    const found = series[name].map(({ labels, value }) => ({ labels, points: points(value) }));
    return answer(route, { name, step_seconds: STEP_S, series: found });
  };
}

const MIB = 1024 * 1024;

// A server at work: each second some searches by vectors of 20 ms, and one index that falls behind.
function busy() {
  const searches = (place) => 300 * place + 40 * Math.round(60 * Math.sin(place / 20));
  return {
    annulus_search_requests_total: [
      { labels: { kind: 'vector' }, value: searches },
      { labels: { kind: 'text' }, value: (place) => 75 * place },
      { labels: { kind: 'hybrid' }, value: () => 0 },
    ],
    annulus_search_duration_seconds_count: [{ labels: { kind: 'vector' }, value: searches }],
    annulus_search_duration_seconds_sum: [{ labels: { kind: 'vector' }, value: (place) => searches(place) * 0.02 }],
    annulus_search_shed_total: [{ labels: { reason: 'admission' }, value: (place) => (place > 200 ? 30 : 0) }],
    annulus_index_lag_seconds: [
      { labels: { keyspace: 'shop', index: 'products_v' }, value: (place) => Math.max(0, place - 200) },
      { labels: { keyspace: 'shop', index: 'reviews_v' }, value: () => 0 },
    ],
    annulus_memory_bytes: [
      { labels: { owner: 'indexes' }, value: (place) => (100 + place / 4) * MIB },
      { labels: { owner: 'block_cache' }, value: () => 32 * MIB },
    ],
    annulus_memory_used_bytes: [{ labels: {}, value: (place) => (150 + place / 4) * MIB }],
    annulus_memory_limit_bytes: [{ labels: {}, value: () => 256 * MIB }],
    annulus_disk_free_bytes: [{ labels: { directory: 'data' }, value: () => 5 * 1024 * MIB }],
    annulus_disk_size_bytes: [{ labels: { directory: 'data' }, value: () => 100 * 1024 * MIB }],
  };
}

const history = '**/api/v1/metrics/history*';
const chart = (page, title) => page.getByRole('region', { name: title, exact: true });

test('the charts of a real server are whole in all forms', async () => {
  await inAllForms({ path }, 'metrics-real', async ({ page }) => {
    await chart(page, 'Rows in indexes').getByText('samples.movies_by_plot').first().waitFor();
    await chart(page, 'Memory, by owner').locator('canvas').waitFor();
  });
});

test('a busy server is shown in all forms', async () => {
  await inAllForms({}, 'metrics', async ({ page }) => {
    await page.route(history, ring(busy()));
    await page.goto(`/${path}`);
    await chart(page, 'Searches').locator('canvas').waitFor();
    await chart(page, 'Searches').getByText('text', { exact: true }).first().waitFor();
  });
});

test('rates come from counters, and latencies are means', async () => {
  await withPage({}, async ({ page }) => {
    await page.route(history, ring(busy()));
    await page.goto(`/${path}`);
    const key = (title, label) => chart(page, title).locator('.chart-key li', { hasText: label }).locator('.number');
    await chart(page, 'Searches').waitFor();
    assert.equal(await key('Searches', 'text').textContent(), '5/s');
    assert.equal(await key('Mean latency of searches', 'vector').textContent(), '20 ms');
    assert.equal(await key('How far indexes are behind', 'products_v').textContent(), '39 s');
    assert.equal(await key('Memory, by owner', 'indexes').textContent(), '160 MiB');
    assert.equal(await key('Memory, by owner', 'other').textContent(), '18.0 MiB');
    assert.equal(await chart(page, 'Searches').locator('.chart-key li', { hasText: 'hybrid' }).count(), 0, 'a line at zero');
    const figure = async (label) => page.locator('.stat', { has: page.getByText(label, { exact: true }) }).textContent();
    assert.match(await figure('Refused'), /30/);
    assert.match(await figure('Memory'), /210 MiB.*81\.9 % of 256 MiB/);
    assert.match(await figure('Free on the disk'), /5\.00 GiB.*5\.0 % of it/);
  });
});

test('a counter that began again makes no rate below zero', async () => {
  await withPage({}, async ({ page }) => {
    const restarted = (place) => (place < 200 ? 1000 + 15 * place : 15 * (place - 200));
    const series = { annulus_search_requests_total: [{ labels: { kind: 'vector' }, value: restarted }] };
    await page.route(history, ring(series));
    await page.goto(`/${path}`);
    await page.getByRole('button', { name: 'Searches as a table' }).click();
    const cells = await chart(page, 'Searches').locator('tbody td.number').allTextContents();
    assert.equal(cells.length, 24);
    assert.ok(cells.every((text) => text === '1/s'), String(cells));
  });
});

test('a chart has a twin that screen readers read, and a table for all', async () => {
  await withPage({}, async ({ page }) => {
    await page.route(history, ring(busy()));
    await page.goto(`/${path}`);
    const twin = page.getByRole('table', { name: /^Mean latency of searches: means of 8 pieces/ });
    await twin.waitFor({ state: 'attached' });
    assert.deepEqual(await twin.getByRole('cell').allTextContents(), Array(8).fill('20 ms'));
    await page.getByRole('button', { name: 'Mean latency of searches as a table' }).focus();
    await page.keyboard.press('Enter');
    await chart(page, 'Mean latency of searches').getByRole('region', { name: 'Mean latency of searches, means' }).waitFor();
    await page.getByRole('button', { name: 'Mean latency of searches as a chart' }).waitFor();
  });
});

test('the pointer shows values of one moment in all charts, and a drag chooses a stretch', async () => {
  await withPage({}, async ({ page }) => {
    await page.route(history, ring(busy()));
    await page.goto(`/${path}`);
    const canvas = chart(page, 'Searches').locator('.u-over');
    const box = await canvas.boundingBox();
    const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
    await page.mouse.move(...at(0.5));
    const memory = chart(page, 'Memory, by owner').locator('.chart-key li', { hasText: 'indexes' }).locator('.number');
    await page.waitForFunction(() => document.querySelectorAll('.chart .card-head .number').length > 3);
    assert.match(await memory.textContent(), /^(129|130|131) MiB$/);
    await page.mouse.down();
    await page.mouse.move(...at(0.75), { steps: 4 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'Show all' }).waitFor();
    const [, first, last] = /(\d+:\d+:\d+) to (\d+:\d+:\d+)/.exec(await page.locator('main').textContent());
    const seconds = (text) => text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
    const length = (seconds(last) - seconds(first) + 86400) % 86400;
    assert.ok(Math.abs(length - 900) < 60, `a quarter of an hour, not ${length} s`);
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByText('Drag over a chart').waitFor();
  });
});

test('a range is a part of the address, and only new samples are requested after the first', async () => {
  await withPage({}, async ({ page }) => {
    const asked = [];
    const answers = ring(busy());
    await page.clock.install();
    await page.route(history, (route) => {
      asked.push(new URL(route.request().url()).searchParams.get('seconds'));
      return answers(route);
    });
    await page.goto(`/${path}`);
    await chart(page, 'Searches').waitFor();
    await page.getByRole('tab', { name: '6 hours' }).click();
    await page.waitForURL(/seconds=21600/);
    await chart(page, 'Searches').waitFor();
    await settled(page);
    assert.ok(asked.includes('3600') && asked.includes('21600'));
    asked.length = 0;
    const again = page.waitForRequest((request) => request.url().includes('name=annulus_search_requests_total'));
    await page.clock.runFor(16000);
    await again;
    assert.ok(asked.filter(Boolean).every((one) => Number(one) < 120), String(asked));
  });
});

test('of many indexes the worst are drawn, and the number of others is said', async () => {
  await withPage({}, async ({ page }) => {
    const lags = Array.from({ length: 250 }, (_, place) => ({
      labels: { keyspace: 'shop', index: `index_${place}` },
      value: () => place,
    }));
    await page.route(history, ring({ annulus_index_lag_seconds: lags }));
    await page.goto(`/${path}`);
    const behind = chart(page, 'How far indexes are behind');
    await behind.getByText('243 more are not drawn').waitFor();
    const labels = await behind.locator('.chart-key-label').allTextContents();
    assert.deepEqual(labels, [249, 248, 247, 246, 245, 244, 243].map((place) => `shop.index_${place}`));
  });
});

test('no sample yet, and no recall, are said in words', async () => {
  await withPage({}, async ({ page }) => {
    await page.route(history, (route) => answer(route, { names: [] }));
    await page.goto(`/${path}`);
    await page.getByText('No sample yet').waitFor();
    await page.unroute(history);
    await page.route(history, ring(busy()));
    await page.reload();
    await page.getByText('No recall was checked').waitFor();
  });
});

test('the real ring has searches and statements', async () => {
  const server = await serverFor({ login: false });
  const { names } = await server.api('GET', '/api/v1/metrics/history');
  const titles = { annulus_search_requests_total: 'Searches', annulus_cql_requests_total: 'CQL statements' };
  await withPage({ path }, async ({ page }) => {
    await settled(page);
    for (const [name, title] of Object.entries(titles)) {
      assert.ok(names.includes(name), name);
      await chart(page, title).waitFor();
    }
  });
});
