// The view that a newcomer sees first.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { inAllForms, settled, widths, withPage } from './browser.mjs';
import { servesFilms } from './movies.mjs';

const run = promisify(execFile);

test('the state of the server is shown in all forms', async () => {
  await inAllForms({ path: '#/start' }, 'start', async ({ page }) => {
    await page.getByText('Serving', { exact: true }).waitFor();
    await page.getByText('Three things to try').waitFor();
    assert.equal(await page.locator('.try').count(), 3);
  });
});

test('a failed task is shown where it needs attention', async () => {
  await withPage({}, async ({ page, open }) => {
    const failed = { id: 'x', kind: 'repair', state: 'failed', keyspace: '<b>k</b>', index: 'i' };
    await page.route('**/api/v1/tasks', (route) => route.fulfill({ json: [failed] }));
    await open('#/start');
    await page.getByRole('link', { name: 'A task failed: repair of <b>k</b>.i.' }).waitFor();
    assert.equal(await page.locator('main b').count(), 0);
  });
});

test('with 1,000 indexes that are built, five are named', async () => {
  await withPage({}, async ({ page, open }) => {
    const indexes = Array.from({ length: 1000 }, (_, place) => ({
      keyspace: 'k',
      index: `i${place}`,
      status: 'BOOTSTRAPPING',
      build_progress: place / 10,
      count: 10,
      options: { type: 'vector' },
    }));
    await page.route('**/api/v1/indexes', (route) => route.fulfill({ json: indexes }));
    await open('#/start');
    await page.getByText('And 995 more.').waitFor();
    assert.equal(await page.getByText('k.i4 is built: 0 %.').count(), 1);
  });
});

test('each program has the address of this server', async () => {
  await withPage({ path: '#/start' }, async ({ page, server }) => {
    for (const language of ['Python', 'Java', 'Go', 'Node', 'Rust']) {
      await page.getByRole('tab', { name: language }).click();
      await page.getByRole('region', { name: 'Program' }).getByText(server.cqlAddress).first().waitFor();
    }
  });
});

test('the requests by curl do what they say', async () => {
  await withPage({ path: '#/start' }, async ({ page, server, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('tab', { name: 'Python' }).focus();
    // Arrow keys go between tabs.
    await page.keyboard.press('End');
    assert.equal(await page.getByRole('tab', { name: 'curl' }).getAttribute('aria-selected'), 'true');
    const shown = await page.getByRole('region', { name: 'Requests' }).textContent();
    assert.ok(shown.includes(`${server.url}/api/v1/cql`), shown);
    await page.getByRole('button', { name: 'Copy the code' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
    const { stdout } = await run('bash', ['-ec', shown.replaceAll('curl -s', 'curl -sf')]);
    assert.match(stdout, /"movies_by_plot"/);
    assert.match(stdout, /"title":.*"scores":/s);
  });
});

test('the films are loaded by a click, with their words and their map', async () => {
  await withPage({ server: { sample: false }, path: '#/start', width: widths.phone }, async ({ page, server }) => {
    await settled(page);
    await page.getByText('Make a table in CQL').waitFor();
    await page.getByRole('button', { name: 'Load the films' }).click();
    await page.getByText('The films are there, and their map is drawn').waitFor({ timeout: 240000 });
    await page.getByText('Find films like Frankenstein').waitFor();
    const films = await server.cql('SELECT title FROM samples.movies WHERE id = 2263');
    assert.equal(films.rows[0].title, 'Frankenstein');
    const tasks = await server.api('GET', '/api/v1/tasks');
    assert.ok(tasks.some((task) => task.kind === 'map' && task.index === 'movies_by_plot'));
    await servesFilms(server, 'movies_by_words');
    const words = await server.api('POST', '/api/v1/indexes/samples/movies_by_words/bm25', { query: 'monster', limit: 3 });
    assert.equal(words.primary_keys.id.length, 3);
  });
});
