// The pictures of README and docs. They are made of a real server with the films, and thrown away unless the variable
// SCREENSHOTS names a folder.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { serverFor, settled, withPage } from './browser.mjs';
import { fullTextIndex } from './movies.mjs';

// A page with pictures has to open fast.
const BYTES_MAX = 150000;
// Thousands of points in colours don't compress.
const MAP_BYTES_MAX = 250000;
const SIZE = { width: 1160, height: 700 };
// A debug build lays a map out slowly.
const MAP_MS = 300000;

const folder = process.env.SCREENSHOTS ?? (await mkdtemp(join(tmpdir(), 'annulus-screenshots-')));
await mkdir(folder, { recursive: true });
after(async () => {
  if (!process.env.SCREENSHOTS) await rm(folder, { recursive: true, force: true });
});

async function shoot(page, name, bytesMax = BYTES_MAX) {
  await settled(page);
  const path = join(folder, `console-${name}.png`);
  await page.screenshot({ path });
  const { size } = await stat(path);
  assert.ok(size < bytesMax, `${path} has ${size} bytes`);
}

const server = await serverFor({ login: false });
await fullTextIndex(server);

// Of the films those like "Chappie", and about robots in love.
test('a search by words and a film', async () => {
  const fields = new URLSearchParams({ words: 'robots in love', row: JSON.stringify({ id: 9357 }), balance: '30' });
  await withPage({ ...SIZE, path: `#/search/samples/movies_by_words?${fields}` }, async ({ page }) => {
    await page.locator('.hit').first().waitFor();
    await shoot(page, 'search');
  });
});

test('a query with its trace', async () => {
  const text = "SELECT id, title, genre FROM samples.movies\nORDER BY BM25(plot, 'robots in love') LIMIT 10";
  await withPage({ ...SIZE, theme: 'dark', path: `#/query?${new URLSearchParams({ text })}` }, async ({ page }) => {
    await settled(page);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.outcome').first().waitFor();
    await page.getByRole('tab', { name: 'Trace' }).click();
    await page.locator('.trace-steps').waitFor();
    await shoot(page, 'query');
  });
});

test('the start of a server', async () => {
  await withPage({ ...SIZE, path: '#/start' }, async ({ page }) => {
    await page.getByText('Serving').first().waitFor();
    await shoot(page, 'start');
  });
});

// The stand-in of the preview has no map: its points are random.
test('the map of an index', { skip: process.env.PREVIEW !== undefined }, async () => {
  await withPage({ ...SIZE, theme: 'dark', path: '#/map/samples/movies_by_plot' }, async ({ page }) => {
    await settled(page);
    await page.getByLabel('Rows at most').selectOption('5000');
    await page.getByRole('button', { name: 'Make the map' }).click();
    await page.locator('canvas').waitFor({ timeout: MAP_MS });
    await shoot(page, 'map', MAP_BYTES_MAX);
  });
});
