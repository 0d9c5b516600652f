// The view of the map: it is made as a task, coloured, and leads from points to rows and to CQL.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, inAllForms, serverFor, settled, withPage } from './browser.mjs';

const MOVIES = '#/map/samples/movies_by_plot';
const MADE_MS = 120000;

// Makes the map unless there is one.
async function made(page, rows = '1000') {
  await settled(page);
  const make = page.getByRole('button', { name: 'Make the map' });
  if (await make.count()) {
    await page.getByLabel('Rows at most').selectOption(rows);
    await make.click();
  }
  await page.locator('canvas').waitFor({ timeout: MADE_MS });
  await settled(page);
}

const canvas = (page) => page.getByRole('application', { name: /Map of samples.movies_by_plot/ });

// A map of points in a square, in place of that of the server: so many of them, evenly spread.
async function withSquare(page, side) {
  const places = Array.from({ length: side }, (_, at) => -1 + (2 * at) / (side - 1));
  const x = places.flatMap((one) => places.map(() => one));
  const y = places.flatMap(() => places);
  const map = {
    method: 'A square.',
    points: side * side,
    rows: side * side,
    seed: 0,
    made_at: new Date().toISOString(),
    age_s: 0,
    seconds: 1,
    neighbours: 10,
    neighbours_kept: 0.4,
    neighbours_kept_by_pca: 0.1,
    x,
    y,
    primary_keys: { id: x.map((_, at) => at) },
    column_values: { half: x.map((one) => (one < 0 ? 'left' : 'right')), height: y },
  };
  const task = { id: '1', kind: 'map', keyspace: 'samples', index: 'movies_by_plot', state: 'done', sequence_number: 1, children_ids: [] };
  await page.route('**/api/v1/tasks', (route) => route.fulfill({ json: [task] }));
  await page.route('**/movies_by_plot/map', (route) => route.fulfill({ json: map }));
}

test('a map is made by a button, and shown in all forms', async () => {
  const server = await serverFor();
  await withPage({ server, path: MOVIES }, ({ page }) => made(page));
  await inAllForms({ server, path: MOVIES }, 'map', async ({ page }) => {
    await made(page);
    await page.getByText('Of the 10 nearest stay near').waitFor();
    await page.getByText('With PCA, for comparison').waitFor();
    await page.getByText(/redrawn in [\d.]+ ms of script time/).waitFor();
  });
});

test('the work on a map can be stopped', async () => {
  const server = await serverFor();
  await withPage({ server, path: MOVIES }, async ({ page }) => {
    await made(page);
    await page.getByLabel('Rows at most').selectOption('10000');
    await page.getByRole('button', { name: 'Make it again' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The work was stopped').waitFor({ timeout: MADE_MS });
    // The map that was there still is.
    await canvas(page).waitFor();
  });
});

test('points are selected by keyboard, and their rows are a table and CQL', async () => {
  const server = await serverFor();
  await withPage({ server, path: MOVIES }, async ({ page }) => {
    await made(page);
    await canvas(page).focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowRight');
    for (let times = 0; times < 4; times += 1) await page.keyboard.press(']');
    await page.keyboard.press('Enter');
    const heading = page.getByRole('heading', { name: /^[\d,]+ selected rows?$/ });
    await heading.waitFor();
    await settled(page);
    await page.getByRole('columnheader', { name: 'title' }).waitFor();
    await axe(page);
    const href = await page.getByRole('link', { name: 'Open as CQL' }).getAttribute('href');
    const query = new URLSearchParams(href.slice(href.indexOf('?')));
    assert.equal(query.get('keyspace'), 'samples');
    const { rows } = await server.cql(query.get('text').replace(/;$/, ''));
    const shown = Number((await heading.textContent()).replace(/\D/g, ''));
    assert.equal(rows.length, shown);
    await canvas(page).focus();
    await page.keyboard.press('Escape');
    await page.getByText('Nothing is selected').waitFor();
  });
});

test('a lasso takes the points in it, and a colour of the legend its own', async () => {
  await withPage({}, async ({ page, open }) => {
    await withSquare(page, 40);
    await open(MOVIES);
    await settled(page);
    await page.getByLabel('Colour by').selectOption('half');
    const box = await canvas(page).boundingBox();
    const side = Math.min(box.width, box.height) - 32;
    const at = (x, y) => [box.x + box.width / 2 + (x * side) / 2, box.y + box.height / 2 - (y * side) / 2];
    await page.keyboard.down('Shift');
    await page.mouse.move(...at(-1.02, -1.02));
    await page.mouse.down();
    for (const corner of [[0, -1.02], [0, 0], [-1.02, 0]]) await page.mouse.move(...at(...corner), { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await page.getByRole('heading', { name: '400 selected rows' }).waitFor();
    await page.getByRole('button', { name: /right/ }).click();
    await page.getByRole('heading', { name: '800 selected rows' }).waitFor();
  });
});

test('the row under the pointer is named, with its values', async () => {
  const server = await serverFor();
  await withPage({ server }, async ({ page, open }) => {
    await withSquare(page, 3);
    await open(MOVIES);
    await settled(page);
    const box = await canvas(page).boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    // The key in the middle of the square is that of a film, which is read from its table.
    await page.getByText('id 4', { exact: true }).waitFor();
    const { rows } = await server.cql('SELECT title FROM samples.movies WHERE id = 4');
    await page.locator('.map-hover').getByText(rows[0].title, { exact: true }).waitFor();
  });
});

test('numbers have a ramp, and 20,000 points are on one canvas', async () => {
  await withPage({}, async ({ page, open }) => {
    await withSquare(page, 142);
    await open(MOVIES);
    await settled(page);
    await page.getByLabel('Colour by').selectOption('height');
    await page.locator('.legend-ramp').waitFor();
    await page.getByText('20,164 points on one canvas').waitFor();
    assert.equal(await page.locator('canvas').count(), 1);
    // The picture has many colours, not one.
    const colours = await page.locator('canvas').evaluate((element) => {
      const { data } = element.getContext('2d').getImageData(0, 0, element.width, element.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(colours > 20, `${colours} colours`);
  });
});

test('the wheel zooms around the pointer, and a drag moves the map', async () => {
  await withPage({}, async ({ page, open }) => {
    await withSquare(page, 21);
    await open(MOVIES);
    await settled(page);
    const shot = () => page.locator('canvas').evaluate((element) => element.toDataURL());
    const changed = (before) => page.waitForFunction((old) => document.querySelector('canvas').toDataURL() !== old, before);
    const box = await canvas(page).boundingBox();
    await page.mouse.move(box.x + box.width / 2 + 7, box.y + box.height / 2 + 9);
    const first = await shot();
    await page.mouse.wheel(0, -400);
    await changed(first);
    const zoomed = await shot();
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 + 60, box.y + box.height / 2 + 40, { steps: 3 });
    await page.mouse.up();
    await changed(zoomed);
    const moved = await shot();
    await page.getByRole('button', { name: 'Show all' }).click();
    await changed(moved);
  });
});
