// Each view while it loads, when the server fails, and when it goes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, fits, serverFor, settled, widths, withPage } from './browser.mjs';
import { openShop } from './shop.mjs';

// The address of a view, and the request that it lives by. The editor of the view Query is there before its completions.
const VIEWS = [
  ['start', '**/api/v1/indexes'],
  ['query', '**/api/v1/schema', { isThereAtOnce: true }],
  ['search', '**/api/v1/schema'],
  ['map', '**/api/v1/indexes'],
  ['map/shop/products_v', '**/api/v1/tasks'],
  ['indexes', '**/api/v1/indexes'],
  ['indexes/shop/products_v', '**/api/v1/indexes/shop/products_v'],
  ['indexes/new?keyspace=shop&table=products', '**/api/v1/tables/shop/products'],
  ['tables', '**/api/v1/tables'],
  ['tables/shop/products', '**/api/v1/cql'],
  ['tables/shop/products/schema', '**/api/v1/cql'],
  ['tasks', '**/api/v1/tasks'],
  ['metrics', '**/api/v1/metrics/history*'],
  ['slow', '**/api/v1/cql'],
  ['connections', '**/api/v1/cql'],
  ['roles', '**/api/v1/cql'],
  ['roles/admin', '**/api/v1/cql'],
  ['settings', '**/api/v1/settings'],
  ['backups', '**/api/v1/backups'],
];

const server = await serverFor({ login: true, sample: false });
await openShop(server);

for (const [view, asked, { isThereAtOnce = false } = {}] of VIEWS) {
  test(`#/${view} says that it loads, that the server failed, and goes on`, async () => {
    await withPage({ login: true, server, width: widths.phone, allow: [/status of 500/] }, async ({ page, open }) => {
      let release;
      const held = new Promise((resolve) => {
        release = resolve;
      });
      let isBroken = true;
      await page.route(asked, async (route) => {
        await held;
        if (!isBroken) return route.continue();
        return route.fulfill({ status: 500, headers: { 'X-Request-Id': 'request-7' }, json: { error: 'the disk broke', hint: 'mend it' } });
      });
      await open(`#/${view}`);
      if (!isThereAtOnce) await page.locator('.loading').first().waitFor();
      await fits(page);
      release();
      const alert = page.getByRole('alert').filter({ hasText: 'the disk broke' }).first();
      await alert.getByText('The server could not do this').waitFor();
      await alert.getByText('Mend it.').waitFor();
      await alert.getByText('request-7').waitFor();
      await fits(page);
      await axe(page);
      isBroken = false;
      // A view that looks again by itself may have done so.
      await page.evaluate(() => document.querySelectorAll('.failure button').forEach((button) => button.click()));
      await page.getByRole('alert').filter({ hasText: 'the disk broke' }).first().waitFor({ state: 'detached' });
      await settled(page);
    });
  });
}

test('each view of a server without anything says what there could be', async () => {
  const words = {
    start: 'Make a table in CQL',
    query: 'A keyspace',
    search: 'There is no index to search',
    map: 'There is no index on vectors',
    indexes: 'There is no index yet',
    tables: 'There is no table yet',
    tasks: 'No task yet',
    slow: 'No statement was slow',
    backups: 'Nothing is backed up yet',
  };
  await withPage({ server: { sample: false, args: ['--slow-query-threshold', '1h'] } }, async ({ page, open }) => {
    for (const [view, text] of Object.entries(words)) {
      await open(`#/${view}`);
      await page.getByText(text).first().waitFor();
    }
  });
});

test('a role without any right reads of each view why it has nothing for it', async () => {
  const visitor = { name: 'bare', password: 'Correct-horse-8' };
  await server.cql(`CREATE ROLE IF NOT EXISTS bare WITH LOGIN = true AND PASSWORD = '${visitor.password}'`);
  await withPage({ login: true, server, loggedIn: visitor, allow: [/status of 403/] }, async ({ page, open }) => {
    for (const view of ['tables/shop/products', 'slow', 'connections', 'settings', 'roles/admin', 'search/shop/products_name?words=tea']) {
      await open(`#/${view}`);
      const alert = page.getByRole('alert').first();
      await alert.getByText('You have no right to this').waitFor();
      assert.match(await alert.textContent(), /permission|authoriz|superuser|need SELECT/i, view);
    }
  });
});
