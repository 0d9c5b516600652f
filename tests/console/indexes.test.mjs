// The view of the indexes: the list, one index with its recall and its repair, and a form for a new one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, inAllForms, serverFor, withPage } from './browser.mjs';
import { until } from './waiting.mjs';

const MOVIES = '#/indexes/samples/movies_by_plot';

async function withSample() {
  const server = await serverFor();
  await server.cql("CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await server.cql('CREATE TABLE IF NOT EXISTS shop.notes (id int PRIMARY KEY, about text, colour text, v vector<float, 3>)');
  await server.cql('CREATE INDEX IF NOT EXISTS by_colour ON shop.notes (colour)');
  return server;
}

test('the indexes are shown in all forms', async () => {
  const server = await withSample();
  await inAllForms({ server, path: '#/indexes' }, 'indexes', async ({ page }) => {
    await page.getByRole('link', { name: 'samples.movies_by_plot' }).waitFor();
    await page.getByRole('link', { name: 'shop.by_colour' }).waitFor();
  });
});

test('an index is shown in all forms, with its memory by part and its statement', async () => {
  const server = await withSample();
  await inAllForms({ server, path: MOVIES }, 'index', async ({ page }) => {
    await page.getByText('10,000').first().waitFor();
    await page.getByText('Graph').waitFor();
    await page.getByText('CREATE CUSTOM INDEX movies_by_plot').waitFor();
    await page.getByRole('cell', { name: 'Build of an index', exact: true }).waitFor();
  });
});

test('an index on values is shown, which has no state of its own', async () => {
  const server = await withSample();
  await withPage({ server, path: '#/indexes/shop/by_colour' }, async ({ page }) => {
    await page.getByText('in the storage').waitFor();
    await page.getByText('CREATE INDEX by_colour').waitFor();
  });
});

test('of 1,000 indexes those are drawn that are seen, and a filter finds one', async () => {
  const many = Array.from({ length: 1000 }, (_, at) => ({ keyspace: 'many', index: `i${at}`, options: { type: 'vector' }, status: 'SERVING', count: at, lag_seconds: 0, memory: { graph: at } }));
  await withPage({}, async ({ page, open }) => {
    await page.route('**/api/v1/indexes', (route) => route.fulfill({ json: many }));
    await open('#/indexes');
    await page.getByRole('link', { name: 'many.i0', exact: true }).waitFor();
    assert.ok((await page.getByRole('row').count()) < 100);
    await axe(page);
    await page.keyboard.press('/');
    await page.keyboard.type('i471');
    await page.getByRole('link', { name: 'many.i471' }).waitFor();
    assert.equal(await page.getByRole('row').count(), 2);
  });
});

test('of 5,000 tables one is picked by typing for a new index, and 50 are offered', async () => {
  const many = Array.from({ length: 5000 }, (_, at) => ({ keyspace: 'many', table: `t${at}`, indexes: [] }));
  const column = (name, type, kind) => ({ name, type, kind });
  const definition = { key: { partition: ['id'], clustering: [] }, columns: [column('id', 'int', 'partition_key'), column('about', 'text', 'regular')], indexes: [] };
  await withPage({}, async ({ page, open }) => {
    await page.route('**/api/v1/tables', (route) => route.fulfill({ json: many }));
    await page.route('**/api/v1/tables/many/t4711', (route) => route.fulfill({ json: definition }));
    await open('#/indexes/new');
    const table = page.getByLabel('Table', { exact: true });
    await table.waitFor();
    assert.equal(await page.locator('datalist option').count(), 50);
    await table.fill('many.t4711');
    await page.getByText('INDEX t4711_about ON many.t4711').waitFor();
    await axe(page);
  });
});

test('the schema of a keyspace is read once for an index, whose state is looked at again', async () => {
  const server = await withSample();
  await withPage({ server }, async ({ page, open }) => {
    const sent = [];
    page.on('request', (request) => sent.push(new URL(request.url()).pathname));
    await page.clock.install();
    await open(MOVIES);
    await page.getByText('Graph').waitFor();
    const count = (path) => sent.filter((one) => one === path).length;
    for (let looks = 0; looks < 3; looks += 1) {
      const again = page.waitForResponse('**/api/v1/indexes/samples/movies_by_plot');
      await page.clock.runFor(4000);
      await again;
    }
    assert.ok(count('/api/v1/indexes/samples/movies_by_plot') >= 4);
    assert.equal(count('/api/v1/schema'), 1);
  });
});

test('recall and self-recall are measured by a button', async () => {
  const server = await withSample();
  await withPage({ server, path: MOVIES }, async ({ page }) => {
    await page.getByLabel('Rows as queries').selectOption('20');
    await page.getByRole('button', { name: 'Measure' }).click();
    await page.getByText('Recall, measured').waitFor({ timeout: 60000 });
    await page.getByText('Self-recall').waitFor();
    await page.getByText(/95 % interval [\d.]+ % to/).waitFor();
    await axe(page);
  });
});

test('a repair is begun after a question, and its outcome is shown', async () => {
  const server = await withSample();
  await withPage({ server, path: '#/indexes/shop/by_colour' }, async ({ page }) => {
    await page.getByRole('button', { name: 'Start a repair' }).click();
    await page.getByRole('dialog').getByText('mends what differs').waitFor();
    await axe(page);
    await page.getByRole('button', { name: 'Start the repair' }).click();
    await page.getByText('The repair has begun.').waitFor();
    await page.getByText('Last repair').waitFor();
  });
  await until('the repair has ended', async () => {
    const { last } = await server.api('GET', '/api/v1/indexes/shop/by_colour/repair');
    return last?.state === 'done';
  });
});

test('a schedule of repairs is chosen and taken back', async () => {
  const server = await withSample();
  const schedule = async () => (await server.api('GET', '/api/v1/indexes/samples/movies_by_plot/repair')).schedule;
  await withPage({ server, path: MOVIES }, async ({ page }) => {
    await page.getByLabel('By schedule').selectOption({ label: 'each week' });
    await page.getByText('The schedule is saved.').waitFor();
    assert.equal((await schedule()).interval_s, 604800);
    await page.getByLabel('By schedule').selectOption({ label: 'never' });
    await until('no schedule', async () => (await schedule()) === null);
  });
});

test('an index is made by a form that shows its statement, and dropped after a question', async () => {
  const server = await withSample();
  await inAllForms({ server, path: '#/indexes/new?keyspace=shop&table=notes' }, 'index-new', async ({ page }) => {
    await page.getByText('USING').first().waitFor();
  });
  await withPage({ server, path: '#/indexes/new' }, async ({ page }) => {
    await page.getByLabel('Table', { exact: true }).selectOption('shop.notes');
    await page.getByRole('tab', { name: 'Words of a text' }).click();
    await page.getByLabel('Column').selectOption('about');
    await page.getByLabel('Words by').selectOption('english');
    await page.getByRole('checkbox', { name: 'colour' }).first().check();
    const statement = "CREATE CUSTOM INDEX notes_about ON shop.notes (about, colour)\n    USING 'fulltext_index'\n    WITH OPTIONS = {'analyzer': 'english'};";
    assert.equal(await page.getByRole('region', { name: 'The same as CQL' }).textContent(), statement);
    await page.getByRole('button', { name: 'Create the index' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Create the index' }).click();
    await page.getByRole('heading', { level: 1, name: 'shop.notes_about' }).waitFor();
    await page.getByText('serving', { exact: true }).waitFor({ timeout: 60000 });
    await page.getByRole('button', { name: 'Drop' }).click();
    await page.getByRole('button', { name: 'Drop the index' }).click();
    await page.getByText('shop.notes_about is dropped.').waitFor();
  });
  const indexes = await server.api('GET', '/api/v1/indexes');
  assert.equal(indexes.filter(({ index }) => index === 'notes_about').length, 0);
});

test('an index that is not there is said in words', async () => {
  const server = await withSample();
  await withPage({ server, path: '#/indexes/shop/nonesuch', allow: [/404/] }, async ({ page }) => {
    await page.getByText('There is no index shop.nonesuch.').waitFor();
  });
});
