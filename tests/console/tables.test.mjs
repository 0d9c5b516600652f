// The view of the tables: the list, and rows that are read, edited, inserted and deleted by rights.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, fits, inAllForms, picture, serverFor, settled, withPage } from './browser.mjs';

const HOSTILE = '<img src=x onerror="alert(1)"><b>tea</b>';
// A number that a double rounds to the one before it.
const LARGE = '9007199254740993';

// A table of goods whose values look like markup, once for a server.
async function withGoods(server) {
  await server.cql("CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await server.cql('CREATE TABLE IF NOT EXISTS shop.goods (id bigint PRIMARY KEY, "Name" text, price decimal, tags list<text>, v vector<float, 3>)');
  await server.cql('TRUNCATE shop.goods');
  await server.cql('INSERT INTO shop.goods (id, "Name", price, tags, v) VALUES (?, ?, ?, ?, ?)', [LARGE, HOSTILE, '7.50', ['hot', HOSTILE], [1, 0, 0]]);
  await server.cql('INSERT INTO shop.goods (id, "Name", price) VALUES (?, ?, ?)', ['9007199254740992', 'cocoa', '9']);
}

const goods = async () => {
  const server = await serverFor();
  await withGoods(server);
  return server;
};

const openRow = (page, text) => page.getByRole('row').filter({ hasText: text }).getByRole('button').first().click();

test('the tables are shown in all forms', async () => {
  const server = await goods();
  await inAllForms({ server, path: '#/tables' }, 'tables', async ({ page }) => {
    await page.getByRole('link', { name: 'shop.goods' }).waitFor();
    assert.equal(await page.getByText('_scylla_cdc_log').count(), 0);
  });
});

test('a table with its rows is shown in all forms', async () => {
  const server = await goods();
  await inAllForms({ server, path: '#/tables/samples/movies' }, 'table', async ({ page }) => {
    await page.getByText('25 rows, read in').waitFor();
    await page.getByText('… 384]').first().waitFor();
  });
});

test('the schema of a table is shown in all forms, and as CQL', async () => {
  const server = await goods();
  await inAllForms({ server, path: '#/tables/samples/movies/schema' }, 'table-schema', async ({ page }) => {
    await page.getByText('CREATE TABLE samples.movies').waitFor();
    await page.getByRole('row').filter({ hasText: 'plot_embedding' }).getByRole('link', { name: 'movies_by_plot' }).waitFor();
  });
});

test('the log of changes is listed once it is wanted', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables' }, async ({ page }) => {
    await page.getByLabel('Logs of changes, too').check();
    await page.getByRole('link', { name: 'samples.movies_scylla_cdc_log' }).waitFor();
  });
});

test('of 5,000 tables those are drawn that are seen, and a filter finds one', async () => {
  const many = Array.from({ length: 5000 }, (_, at) => ({ keyspace: 'many', table: `t${at}`, rows_estimate: at, disk_bytes: at, index_disk_bytes: 0, indexes: [] }));
  await withPage({}, async ({ page, open }) => {
    await page.route('**/api/v1/tables', (route) => route.fulfill({ json: many }));
    await open('#/tables');
    await page.getByRole('link', { name: 'many.t0', exact: true }).waitFor();
    assert.ok((await page.getByRole('row').count()) < 100);
    await axe(page);
    await page.keyboard.press('/');
    await page.keyboard.type('t4711');
    await page.getByRole('link', { name: 'many.t4711' }).waitFor();
    assert.equal(await page.getByRole('row').count(), 2);
  });
});

test('markup in names and values is shown as text', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables/shop/goods' }, async ({ page }) => {
    await page.getByRole('cell', { name: HOSTILE, exact: true }).waitFor();
    assert.equal(await page.locator('main img, main b').count(), 0);
    await openRow(page, 'onerror');
    const dialog = page.getByRole('dialog');
    await dialog.getByText(HOSTILE, { exact: true }).waitFor();
    await axe(page);
  });
});

test('a row is edited: only what was changed is written, and to the row with that key', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables/shop/goods' }, async ({ page }) => {
    await openRow(page, LARGE);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('price (decimal)').fill('8.25');
    await picture(page, 'row-form');
    await fits(page);
    await axe(page);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The row is saved.').waitFor();
    await page.getByRole('cell', { name: '8.25' }).waitFor();
  });
  const { rows } = await server.cql('SELECT price, "Name", v FROM shop.goods WHERE id = ?', [LARGE]);
  assert.deepEqual(rows, [{ price: 8.25, '"Name"': HOSTILE, v: [1, 0, 0] }]);
});

test('a value that the server refuses is explained, and nothing is written', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables/shop/goods', allow: [/400/] }, async ({ page }) => {
    await openRow(page, LARGE);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('tags (list<text>)').fill('["hot"');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This is no JSON').waitFor();
    await page.getByLabel('tags (list<text>)').fill('["hot"]');
    await page.getByLabel('price (decimal)').fill('dear');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByText('price').last().waitFor();
    await page.getByText('The server refused this request').waitFor();
  });
  const { rows } = await server.cql('SELECT tags FROM shop.goods WHERE id = ?', [LARGE]);
  assert.deepEqual(rows[0].tags, ['hot', HOSTILE]);
});

test('a row is inserted, found by its key, and deleted after a question', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables/shop/goods' }, async ({ page }) => {
    await page.getByRole('button', { name: 'Insert a row' }).click();
    await page.getByRole('button', { name: 'Insert', exact: true }).click();
    await page.getByText('The key needs a value.').waitFor();
    await page.getByLabel('id (bigint)').fill('5');
    await page.getByLabel('Name (text)').fill('mate');
    await page.getByRole('button', { name: 'Insert', exact: true }).click();
    await page.getByText('The row is inserted.').waitFor();
    await page.getByLabel('id', { exact: true }).fill('5');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('1 rows, read in').waitFor();
    await openRow(page, 'mate');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('goes from').waitFor();
    await page.getByRole('button', { name: 'Delete the row' }).click();
    await page.getByText('The row is deleted.').waitFor();
    await page.getByText('No rows here').waitFor();
  });
});

test('an inserted row does not replace one with its key', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables/shop/goods' }, async ({ page }) => {
    await page.getByRole('button', { name: 'Insert a row' }).click();
    await page.getByLabel('id (bigint)').fill(LARGE);
    await page.getByLabel('Name (text)').fill('other');
    await page.getByRole('button', { name: 'Insert', exact: true }).click();
    await page.getByText('A row with this key is there already').waitFor();
  });
});

test('pages go on and back', async () => {
  const server = await goods();
  await withPage({ server, path: '#/tables/samples/movies' }, async ({ page }) => {
    await page.getByText('25 rows, read in').waitFor();
    const first = await page.getByRole('row').nth(1).textContent();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('Page 2').waitFor();
    await settled(page);
    const firstIs = ([text, isIt]) => {
      const row = document.querySelector('tbody tr');
      return row !== null && (row.textContent === text) === isIt;
    };
    const waitForFirst = (isIt) => page.waitForFunction(firstIs, [first, isIt]);
    await waitForFirst(false);
    await page.getByRole('button', { name: 'Previous' }).click();
    await waitForFirst(true);
  });
});

test('a role that may only read is refused in words', async () => {
  const server = await serverFor({ login: true });
  await withGoods(server);
  const reader = { name: 'reader', password: 'Read-only-pass-7' };
  await server.cql(`CREATE ROLE IF NOT EXISTS reader WITH PASSWORD = '${reader.password}' AND LOGIN = true`);
  await server.cql('GRANT SELECT ON KEYSPACE shop TO reader');
  await withPage({ login: true, loggedIn: reader, path: '#/tables/shop/goods', allow: [/403/] }, async ({ page }) => {
    await openRow(page, LARGE);
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete the row' }).click();
    await page.getByText('You have no right to this').waitFor();
    await page.getByRole('dialog').getByText('MODIFY').waitFor();
  });
  const { rows } = await server.cql('SELECT id FROM shop.goods');
  assert.equal(rows.length, 2);
});

test('a table is dropped once its name is written', async () => {
  const server = await goods();
  await server.cql('CREATE TABLE shop.going (id int PRIMARY KEY)');
  await withPage({ server, path: '#/tables/shop/going' }, async ({ page }) => {
    await page.getByRole('button', { name: 'Drop' }).click();
    const drop = page.getByRole('button', { name: 'Drop the table' });
    assert.ok(await drop.isDisabled());
    await page.getByLabel('Type shop.going to go on').fill('shop.going');
    await drop.click();
    await page.getByText('shop.going is dropped.').waitFor();
    await page.getByRole('link', { name: 'shop.goods' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'shop.going' }).count(), 0);
  });
});
