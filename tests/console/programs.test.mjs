// The page of the other programs: an index service, a gateway with one, and a gateway without. Each has fewer views than
// `annulus serve`, which is the database of the first two here.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { axe, fits, inAllForms, picture, serverFor, settled, themes, token, widths, withPage } from './browser.mjs';
import { guard, statusOf } from './requests.mjs';
import { serves, startGateway, startStore } from './server.mjs';
import { PRODUCTS, openShop } from './shop.mjs';

const run = promisify(execFile);
const database = await serverFor({ sample: false });
await openShop(database);

const OF_SERVICES = ['start', 'search', 'map', 'indexes', 'tasks', 'metrics', 'settings', 'backups'];
const PROGRAMS = [
  { name: 'annulus store', start: startStore, options: { database: database.cqlAddress }, views: OF_SERVICES, setting: 'scylladb-uri' },
  { name: 'gateway with a store', start: startGateway, options: { database: database.cqlAddress }, views: OF_SERVICES, setting: 'store.index-dir' },
  { name: 'gateway without a store', start: startGateway, options: {}, views: ['start', 'metrics', 'settings'], setting: 'metrics-listen' },
];
const [STORE] = PROGRAMS;
const hasIndexes = ({ views }) => views.includes('indexes');

// The running program, whose indexes, if it has some, have their rows.
async function running(program, login = false) {
  const server = await serverFor({ ...program.options, login }, program.start);
  if (hasIndexes(program)) {
    for (const index of ['products_v', 'products_name']) await serves(server, 'shop', index, PRODUCTS);
  }
  return server;
}

const viewsOf = (page) =>
  page.locator('.nav-link').evaluateAll((links) => links.map((link) => link.getAttribute('href').replace('#/', '')));

for (const program of PROGRAMS) {
  for (const login of [false, true]) {
    test(`every view of ${program.name} is whole in all forms, ${login ? 'with' : 'without'} a token`, async () => {
      const server = await running(program, login);
      for (const theme of themes) {
        for (const [form, width] of Object.entries(widths)) {
          await withPage({ server, loggedIn: login && { token }, theme, width, path: '#/start' }, async ({ page, open }) => {
            assert.deepEqual(await viewsOf(page), program.views);
            for (const view of program.views) {
              await open(`#/${view}`);
              await settled(page);
              assert.deepEqual(await page.getByRole('alert').allTextContents(), [], view);
              await picture(page, `${program.name.replaceAll(' ', '-')}-${view}-${form}-${theme}${login ? '-token' : ''}`);
              await fits(page);
              await axe(page).catch((error) => {
                throw new Error(`${view}: ${error.message}`);
              });
            }
          });
        }
      }
    });
  }

  test(`${program.name} explains a view that it does not have`, async () => {
    const server = await running(program);
    await withPage({ server }, async ({ page, open }) => {
      for (const view of ['query', 'tables/shop/products', 'roles', 'slow', 'connections']) {
        await open(`#/${view}`);
        await page.getByText(`This server has no view "${view.split('/')[0]}"`).waitFor();
        await page.getByText('It may belong to a program that has tables').waitFor();
      }
    });
  });

  test(`the start of ${program.name} leads only to what is there`, async () => {
    const server = await running(program);
    await withPage({ server, path: '#/start' }, async ({ page, open }) => {
      await settled(page);
      const links = await page.locator('.try').evaluateAll((all) => all.map((one) => one.getAttribute('href')));
      assert.ok(links.length > 0);
      assert.equal(links.includes('/docs'), hasIndexes(program));
      await page.getByRole('tab', { name: 'curl' }).click();
      const requests = await page.getByRole('region', { name: 'Requests' }).textContent();
      const [, address] = /^curl -s (\S+)$/m.exec(requests);
      assert.ok(address.startsWith(server.url), requests);
      assert.equal(await statusOf(address), 200);
      for (const link of links) {
        if (!link.startsWith('#')) assert.equal(await statusOf(server.url + link), 200, link);
        else await open(link);
        assert.equal(await page.getByText('This server has no view').count(), 0, link);
      }
    });
  });

  test(`the settings of ${program.name} are shown`, async () => {
    const server = await running(program);
    await withPage({ server, path: '#/settings' }, async ({ page }) => {
      await page.getByText(program.setting, { exact: true }).waitFor();
    });
  });

  test(`a wrong token of ${program.name} is refused in words, the right one is taken, by keyboard alone`, async () => {
    const server = await running(program, true);
    await inAllForms({ server, loggedIn: false, path: '#/settings' }, `login-${program.name.replaceAll(' ', '-')}`, async ({ page }) => {
      await page.getByLabel('Token').waitFor();
    });
    await withPage({ server, loggedIn: false, path: '#/settings', allow: [/status of 40[01]/] }, async ({ page, context }) => {
      // The focus is in the one field.
      await page.keyboard.type('no-token-of-this-server');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText('This is not a token of this server.').waitFor();
      assert.equal(await page.getByLabel('Token').inputValue(), '');
      await page.getByLabel('Token').focus();
      await page.keyboard.type(token);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
      await page.getByText('with a token').waitFor();
      const cookies = await context.cookies();
      assert.ok(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict', JSON.stringify(cookies));
      const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
      assert.ok(!`${stored}${JSON.stringify(cookies)}`.includes(token));
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByRole('heading', { level: 1, name: 'Log in to Annulus' }).waitFor();
    });
  });

  test(`${program.name} refuses a foreign Origin, another name, and a cookie without the header`, async () => {
    const path = hasIndexes(program) ? '/api/v1/indexes' : '/api/v1/settings';
    const open = await running(program);
    for (const one of ['/', '/console/app.js', '/api/v1/session', path, '/metrics']) {
      assert.equal(await statusOf(open.url + one, guard), 200, one);
      assert.equal(await statusOf(open.url + one, { ...guard, Origin: 'http://evil.example' }), 403, one);
      assert.equal(await statusOf(open.url + one, { ...guard, Host: `evil.example:${new URL(open.url).port}` }), 403, one);
    }
    const guarded = await running(program, true);
    await withPage({ server: guarded, loggedIn: { token }, path: '#/settings' }, async ({ context }) => {
      const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
      assert.equal(await statusOf(guarded.url + path, { ...guard, Cookie: cookies }), 200);
      assert.equal(await statusOf(guarded.url + path, { Cookie: cookies }), 401);
      assert.equal(await statusOf(guarded.url + path, guard), 401);
    });
  });
}

for (const program of PROGRAMS.filter(hasIndexes)) {
  test(`the indexes of ${program.name} are searched by words and by a vector`, async () => {
    const server = await running(program);
    const keys = (page) => page.locator('tbody tr td:nth-child(2)').allTextContents();
    await withPage({ server, path: '#/search/shop/products_name' }, async ({ page, open }) => {
      await page.getByText('has no tables to read rows from').waitFor();
      await page.getByLabel('Words').first().fill('tea');
      await page.keyboard.press('Enter');
      await page.getByRole('table').waitFor();
      assert.deepEqual((await keys(page)).sort(), ['1', '3']);
      await page.getByRole('tab', { name: 'Code' }).click();
      const { stdout } = await run('bash', ['-c', await page.locator('pre.code').textContent()]);
      assert.deepEqual(JSON.parse(stdout).primary_keys.id.sort(), [1, 3]);
      await open('#/search/shop/products_v');
      await page.getByLabel('3 numbers').fill('[0, 1, 0.1]');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page.getByRole('table').waitFor();
      assert.equal((await keys(page))[0], '2');
    });
  });

  test(`an index of ${program.name} is shown in all forms, and repaired`, async () => {
    const server = await running(program);
    await inAllForms({ server, path: '#/indexes/shop/products_v' }, `index-${program.name.replaceAll(' ', '-')}`, async ({ page }) => {
      await page.getByText('serving', { exact: true }).waitFor();
      await page.getByText('Memory by part').first().waitFor();
      assert.equal(await page.getByRole('button', { name: 'Drop' }).count(), 0, 'an index is dropped where its table is');
    });
    await withPage({ server, path: '#/indexes/shop/products_v' }, async ({ page, open }) => {
      await page.getByRole('button', { name: 'Start a repair' }).click();
      await page.getByRole('button', { name: 'Start the repair' }).click();
      const task = page.getByRole('region', { name: 'Tasks of the index' }).getByRole('row', { name: /Repair of an index.*Done/ });
      await task.waitFor();
      await open('#/tasks');
      await page.getByRole('region', { name: 'Ended tasks' }).getByRole('row', { name: /Repair of an index.*shop\.products_v/ }).waitFor();
    });
  });

  test(`an index that ${program.name} does not have is said in words`, async () => {
    const server = await running(program);
    await withPage({ server, path: '#/indexes/shop/nonesuch', allow: [/status of 404/] }, async ({ page, open }) => {
      await page.getByText('There is no index shop.nonesuch.').waitFor();
      await open('#/search/shop/nonesuch');
      await page.getByText('There is no index shop.nonesuch to search').waitFor();
    });
  });
}

test('a login whose token is withdrawn leads to the login page, which says why', async () => {
  const store = await startStore({ ...STORE.options, login: true });
  try {
    await withPage({ server: store, loggedIn: { token }, path: '#/tasks', allow: [/status of 401/] }, async ({ page }) => {
      await settled(page);
      await writeFile(join(store.directory, 'tokens'), 'console another-token-of-this-console\n');
      store.signal('SIGHUP');
      await page.getByText('Your login has ended. Log in again.').waitFor();
      await page.getByLabel('Token').fill('another-token-of-this-console');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
      // The next login page is that of a logout.
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByText('takes a token').waitFor();
    });
  } finally {
    await store.stop();
  }
});

test('an index service that stops is named as such', async () => {
  const store = await startStore(STORE.options);
  try {
    await withPage({ server: store, path: '#/tasks', allow: [/ERR_CONNECTION|ERR_EMPTY/] }, async ({ page }) => {
      await settled(page);
      await store.stop();
      await page.getByRole('alert').getByText('The server does not answer').waitFor();
    });
  } finally {
    await store.stop();
  }
});
