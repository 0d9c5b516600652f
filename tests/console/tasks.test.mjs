// The view Tasks: what runs and what ended, one task with its parts, and stopping one.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inAllForms, serverFor, settled, withPage } from './browser.mjs';

const path = '#/tasks';
const ended = (page) => page.getByRole('region', { name: 'Ended tasks' });

// A task as the server answers it.
function task(fields) {
  return {
    id: '11111111-1111-4111-8111-111111111111',
    sequence_number: 1,
    kind: 'repair',
    scope: 'index',
    keyspace: 'shop',
    table: 'products',
    index: 'products_v',
    state: 'running',
    is_abortable: true,
    abort_requested: false,
    start_time: new Date(Date.now() - 90000).toISOString(),
    children_ids: [],
    children_left_out: 0,
    progress_units: 'token_ranges',
    progress_completed: 4,
    progress_total: 16,
    ...fields,
  };
}

const answer = (route, body, status = 200) =>
  route.fulfill({ status, contentType: 'application/json', body: typeof body === 'string' ? body : JSON.stringify(body) });

test('the tasks that ended are listed in all forms', async () => {
  await inAllForms({ path }, 'tasks', async ({ page }) => {
    await page.getByText('Build of an index').first().waitFor();
    await page.getByText('samples.movies_by_plot').first().waitFor();
  });
});

test('a task is opened by keyboard, and shows its parts in all forms', async () => {
  const server = await serverFor({ login: false });
  const tasks = await server.api('GET', '/api/v1/tasks');
  const build = tasks.find((one) => one.kind === 'build');
  await withPage({ path }, async ({ page }) => {
    await page.getByRole('link', { name: /Build of an index/ }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Build of an index' }).waitFor();
    assert.ok(page.url().endsWith(`#/tasks/${build.id}`));
    await page.locator('summary', { hasText: 'Scan of a table' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText(/^tokens -?\d+ to -?\d+$/).first().waitFor();
  });
  await inAllForms({ path: `#/tasks/${build.id}` }, 'task', async ({ page }) => {
    await page.locator('summary', { hasText: 'Scan of a table' }).click();
    await page.getByText(/^tokens -?\d+ to -?\d+$/).first().waitFor();
  });
});

test('a filter and a choice of results leave the tasks that match', async () => {
  await withPage({ path }, async ({ page }) => {
    await settled(page);
    await page.keyboard.press('/');
    await page.keyboard.type('build movies');
    await page.waitForFunction(() => document.querySelectorAll('[aria-label^="Ended tasks"] tbody tr').length === 1);
    assert.match(await ended(page).locator('tbody tr').textContent(), /Build of an index/);
    await page.getByLabel('Results').selectOption('failed');
    await page.getByText('No task matches').waitFor();
  });
});

test('running tasks show how far they are in all forms, and a build has the share of its index', async () => {
  const build = task({
    id: '22222222-2222-4222-8222-222222222222',
    kind: 'build',
    is_abortable: false,
    progress_units: 'steps',
    progress_completed: 1,
    progress_total: 2,
  });
  const map = task({ id: '33333333-3333-4333-8333-333333333333', kind: 'map', progress_units: 'rounds', progress_total: 200 });
  await inAllForms({}, 'tasks-running', async ({ page }) => {
    await page.route('**/api/v1/tasks', (route) => answer(route, [task(), build, map]));
    await page.route('**/api/v1/indexes/shop/products_v/status', (route) => answer(route, { build_progress: 37.5 }));
    await page.goto(`/${path}`);
    const running = page.getByRole('region', { name: 'Running tasks' });
    await running.getByText('4 of 16 token ranges').waitFor();
    await running.getByText('37.5 %').waitFor();
    await running.getByText('4 of 200 rounds').waitFor();
    assert.equal(await running.getByRole('button', { name: 'Stop' }).count(), 2, 'a build can not be stopped');
  });
});

test('a real backup is stopped after a question, and the list says so', async () => {
  const server = await serverFor({ login: false });
  const directory = await mkdtemp(join(tmpdir(), 'annulus-console-stop-'));
  try {
    // A MiB a second: it runs until it is stopped.
    const location = `file://${directory}/points`;
    await server.api('POST', '/api/v1/backups', { location, max_mib_per_second: 1 });
    await withPage({ path }, async ({ page }) => {
      const row = page.getByRole('region', { name: 'Running tasks' }).getByRole('row', { name: /Backup/ });
      await row.getByRole('button', { name: 'Stop' }).click();
      const dialog = page.getByRole('dialog', { name: 'Stop this backup?' });
      await dialog.getByText(location).waitFor();
      await dialog.getByText('No point is made').waitFor();
      await dialog.getByRole('button', { name: 'Stop it' }).click();
      await ended(page).getByRole('row', { name: /Backup.*Stopped/ }).waitFor();
    });
    const tasks = await server.api('GET', '/api/v1/tasks');
    assert.equal(tasks.find((one) => one.kind === 'backup').state, 'aborted');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('a stop that is refused is said in the dialog', async () => {
  await withPage({ allow: [/status of 403/] }, async ({ page }) => {
    await page.route('**/api/v1/tasks', (route) => answer(route, [task()]));
    await page.route('**/api/v1/tasks/1111*', (route) => answer(route, 'only a superuser may stop a task', 403));
    await page.goto(`/${path}`);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Stop it' }).click();
    await page.getByRole('dialog').getByText('only a superuser may stop a task').waitFor();
  });
});

test('names and errors of a hostile task are text', async () => {
  const evil = '<img src=x onerror=alert(1)>';
  const failed = task({ keyspace: evil, index: evil, table: evil, state: 'failed', error: evil, end_time: new Date().toISOString() });
  await withPage({}, async ({ page }) => {
    await page.route('**/api/v1/tasks', (route) => answer(route, [failed]));
    await page.route('**/api/v1/tasks/*/tree', (route) => answer(route, { ...failed, children: [] }));
    await page.goto(`/${path}`);
    await page.getByText(`${evil}.${evil}`).waitFor();
    await page.getByRole('link', { name: /Repair of an index/ }).click();
    await page.getByRole('alert').getByText(evil).waitFor();
    assert.equal(await page.locator('main img').count(), 0);
  });
});

test('no task, one that is gone and a server that is away are said in words', async () => {
  await withPage({ path: '#/tasks/44444444-4444-4444-8444-444444444444', allow: [/status of 404/, /ERR_/] }, async ({ page }) => {
    await page.getByText('Tasks that have ended stay listed for a while').waitFor();
    await page.route('**/api/v1/tasks', (route) => answer(route, []));
    await page.goto(`/${path}`);
    await page.getByText('No task yet').waitFor();
    await page.unroute('**/api/v1/tasks');
    await page.route('**/api/v1/tasks', (route) => route.abort());
    await page.reload();
    await page.getByText('The server does not answer').waitFor();
  });
});
