// Names and values with markup, in each view that can show them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, fits, serverFor, settled, withPage } from './browser.mjs';
import { serves } from './server.mjs';

const EVIL = '<img src=x onerror="window.bad=1">"\'';
const QUOTED = `"${EVIL.replaceAll('"', '""')}"`;

const server = await serverFor({ sample: false });
for (const statement of [
  "CREATE KEYSPACE hostile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
  `CREATE TABLE hostile.named (id int PRIMARY KEY, ${QUOTED} text, v vector<float, 3>)`,
  `CREATE CUSTOM INDEX named_v ON hostile.named (v, ${QUOTED}) USING 'vector_index'`,
  `CREATE CUSTOM INDEX named_words ON hostile.named (${QUOTED}) USING 'fulltext_index'`,
]) {
  await server.cql(statement);
}
await server.cql(`INSERT INTO hostile.named (id, ${QUOTED}, v) VALUES (?, ?, ?)`, [1, EVIL, [1, 0, 0]]);
await serves(server, 'hostile', 'named_v', 1);
await serves(server, 'hostile', 'named_words', 1);

// Nothing of the text became an element, ran, or was requested, and it is there to be read.
async function isText(page, what) {
  await settled(page);
  assert.equal(await page.locator('main img, dialog img').count(), 0, what);
  assert.equal(await page.evaluate(() => window.bad), undefined, what);
  assert.ok((await page.locator('main, dialog[open]').allTextContents()).join('').includes(EVIL), what);
}

test('the name of a column is text wherever it is shown', async () => {
  await withPage({ server }, async ({ page, open }) => {
    for (const address of [
      '#/tables/hostile/named',
      '#/tables/hostile/named/schema',
      '#/tables/hostile/named/indexes',
      '#/indexes/hostile/named_v',
      '#/indexes/hostile/named_words',
      '#/indexes/new?keyspace=hostile&table=named',
      '#/search/hostile/named_words',
      '#/query?text=SELECT%20*%20FROM%20hostile.named%3B&keyspace=hostile',
    ]) {
      await open(address);
      if (address.startsWith('#/query')) await page.getByRole('button', { name: 'Run', exact: true }).click();
      // A name in a list of choices is in a view, but not to be seen.
      await page.getByText('onerror').and(page.locator(':not(option)')).first().waitFor();
      await isText(page, address);
      await fits(page);
    }
  });
});

test('a row with markup is text in each of its forms', async () => {
  await withPage({ server, path: '#/tables/hostile/named' }, async ({ page }) => {
    await page.getByRole('row').filter({ hasText: 'onerror' }).nth(1).getByRole('button').first().click();
    await isText(page, 'the row');
    await page.getByRole('button', { name: 'Edit' }).click();
    await isText(page, 'the form');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('goes from').waitFor();
  });
});

test('a search by a link with markup in its words and its filter shows them as text', async () => {
  const condition = { column: EVIL, compare: 'eq', text: EVIL, not: false };
  const fields = new URLSearchParams({ words: 'onerror', filter: JSON.stringify({ op: 'and', not: false, parts: [condition] }) });
  await withPage({ server, path: `#/search/hostile/named_words?${fields}` }, async ({ page }) => {
    await page.locator('.hit').waitFor();
    await isText(page, 'the answer');
    for (const tab of ['CQL', 'Code', 'Trace']) {
      await page.getByRole('tab', { name: tab }).click();
      await isText(page, tab);
    }
  });
});

test('a link whose filter no one could have made is searched without it', async () => {
  for (const filter of ['{"op":"and","parts":[{"column":"id","compare":"constructor","text":"1"}]}', '[', 'null', '{"op":"and","parts":[1]}']) {
    await withPage({ server, path: `#/search/hostile/named_words?${new URLSearchParams({ words: 'onerror', filter })}` }, async ({ page }) => {
      await page.locator('.hit').waitFor();
      assert.equal(await page.getByRole('alert').count(), 0, filter);
    });
  }
});

const json = (body) => (route) => route.fulfill({ json: body });

test('labels of metrics are text in charts, keys and twins', async () => {
  const now = Math.floor(Date.now() / 1000);
  const points = Array.from({ length: 20 }, (_, place) => [now - 15 * (20 - place), place]);
  await withPage({ server }, async ({ page, open }) => {
    await page.route('**/api/v1/metrics/history*', (route) => {
      const name = new URL(route.request().url()).searchParams.get('name');
      const series = [{ labels: { keyspace: EVIL, index: EVIL }, points }];
      return json(name ? { name, step_seconds: 15, series } : { names: ['annulus_index_lag_seconds', EVIL] })(route);
    });
    await open('#/metrics');
    await page.getByText(`${EVIL}.${EVIL}`).first().waitFor();
    await isText(page, 'the charts');
    await page.getByRole('button', { name: 'How far indexes are behind as a table' }).click();
    await isText(page, 'the table');
  });
});

test('values on a map are text in its legend, its label and its rows', async () => {
  const map = {
    method: EVIL,
    points: 3,
    rows: 3,
    seed: 0,
    made_at: new Date().toISOString(),
    seconds: 1,
    neighbours: 10,
    neighbours_kept: 0.4,
    x: [-1, 0, 1],
    y: [-1, 0, 1],
    primary_keys: { [EVIL]: [EVIL, EVIL, EVIL] },
    column_values: { genre: [EVIL, EVIL, 'other'] },
  };
  const task = { id: '1', kind: 'map', keyspace: 'hostile', index: 'named_v', state: 'done', sequence_number: 1, children_ids: [] };
  await withPage({ server }, async ({ page, open }) => {
    // As an index service has it, which knows no more than the map.
    await page.route('**/api/v1/session', async (route) => {
      const response = await route.fetch();
      const session = await response.json();
      Object.assign(session.features, { cql: false, tables: false });
      await route.fulfill({ response, json: session });
    });
    await page.route('**/api/v1/tasks', json([task]));
    await page.route('**/named_v/map', json(map));
    await open('#/map/hostile/named_v');
    await page.getByRole('button', { name: /onerror/ }).first().click();
    await page.getByRole('heading', { name: '2 selected rows' }).waitFor();
    await isText(page, 'the selection');
    const box = await page.locator('canvas').boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.locator('.map-hover').getByText('onerror').first().waitFor();
    await isText(page, 'the label');
    await axe(page);
  });
});

test('locations, settings and slow statements with markup are text', async () => {
  const place = { location: `file:///${EVIL}`, last_error: EVIL, drill_error: EVIL, drill_ok: false, duration_s: 0, sent_bytes: 0, sent_objects: 0, points: 0, failures: 1, drill_failures: 1, last_point: EVIL };
  const row = { id: '1', statement: EVIL, duration_us: 5, started_at: '2026-01-31 12:00:00', role: EVIL, client: EVIL, client_port: 1, request_id: EVIL, plan: EVIL };
  await withPage({ server }, async ({ page, open }) => {
    await page.route('**/api/v1/backups', json({ schedules: [], locations: [place], leaves_out: EVIL }));
    await page.route('**/api/v1/settings', json({ settings: [{ name: EVIL, value: EVIL, source: EVIL }] }));
    await page.route('**/api/v1/cql', json({ columns: [], rows: [row] }));
    await open('#/backups');
    await page.getByRole('button', { name: 'Commands to restore' }).click();
    await isText(page, 'the location');
    await page.goto('about:blank');
    await open('#/settings');
    await isText(page, 'the settings');
    await open('#/slow');
    await page.getByRole('row').nth(1).getByRole('button').click();
    await page.getByRole('dialog').getByText('onerror').first().waitFor();
    await isText(page, 'the statement');
  });
});
