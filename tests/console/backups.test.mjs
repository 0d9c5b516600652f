// The view Backups: locations, schedules, drills, and the commands that restore.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { inAllForms, serverFor, settled, withPage } from './browser.mjs';

const path = '#/backups';
// A debug build on a busy machine takes its time.
const WORK_MS = 120000;

let directory;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annulus-console-backups-'));
});
after(() => rm(directory, { recursive: true, force: true }));

const answer = (route, body, status = 200) =>
  route.fulfill({ status, contentType: 'application/json', body: typeof body === 'string' ? body : JSON.stringify(body) });

const hoursAgo = (hours) => new Date(Date.now() - hours * 3600000).toISOString();

// Two locations: one as it should be, one whose credentials have expired and whose drill found a difference.
const STATUS = {
  running: {
    id: '11111111-1111-4111-8111-111111111111',
    kind: 'drill',
    scope: 'node',
    entity: 's3:backups/shop',
    state: 'running',
    is_abortable: true,
    start_time: hoursAgo(0.01),
    children_ids: [],
    progress_units: 'bytes',
    progress_completed: 700000000,
    progress_total: 2000000000,
  },
  schedules: [
    {
      id: '22222222-2222-4222-8222-222222222222',
      location: 's3:backups/shop',
      interval_s: 86400,
      retention: 7,
      drill_cron: '0 5 * * 0',
      next_time: hoursAgo(-9),
      next_drill_time: hoursAgo(-60),
    },
  ],
  locations: [
    {
      location: 's3:backups/shop',
      last_attempt_time: hoursAgo(15),
      last_success_time: hoursAgo(15),
      last_point: '20261130T030000Z-d664ed9a',
      duration_s: 41.5,
      sent_bytes: 123456789,
      sent_objects: 31,
      points: 7,
      failures: 0,
      last_drill_time: hoursAgo(100),
      last_drill_success_time: hoursAgo(100),
      drill_ok: true,
      drill_failures: 0,
    },
    {
      location: 'gcs:old/shop',
      last_attempt_time: hoursAgo(2),
      last_success_time: hoursAgo(200),
      last_point: '20261121T030000Z-11aa22bb',
      last_error: 'gcs:old/shop refuses the credentials: set GOOGLE_APPLICATION_CREDENTIALS',
      duration_s: 20,
      sent_bytes: 1,
      sent_objects: 1,
      points: 3,
      failures: 4,
      last_drill_time: hoursAgo(150),
      drill_ok: false,
      drill_error: 'shop.products: 12 rows in the point, 11 restored',
      drill_failures: 1,
    },
  ],
};

const location = (page, name) => page.getByRole('region', { name, exact: true });

test('a server without backups teaches how to make one, in all forms', async () => {
  await inAllForms({ path }, 'backups-none', async ({ page }) => {
    await page.getByText('Nothing is backed up yet').waitFor();
    await page.getByRole('region', { name: 'Bound of locations' }).getByText('--backup-locations').waitFor();
  });
});

test('locations with their schedules and drills are shown in all forms', async () => {
  await inAllForms({}, 'backups', async ({ page }) => {
    await page.route('**/api/v1/backups', (route) => answer(route, STATUS));
    await page.goto(`/${path}`);
    const good = location(page, 's3:backups/shop');
    await good.getByText('Restore proven').waitFor();
    await good.getByText(/Backup each day.*Drill at 0 5 \* \* 0 \(UTC\).*The newest 7 points stay/).waitFor();
    const bad = location(page, 'gcs:old/shop');
    for (const words of ['Last backup failed', 'Drill failed', 'set GOOGLE_APPLICATION_CREDENTIALS', '12 rows in the point, 11 restored']) {
      await bad.getByText(words).waitFor();
    }
    await page.getByText('Drill runs').waitFor();
    assert.ok(await good.getByRole('button', { name: 'Back up now' }).isDisabled(), 'one of these works at a time');
  });
});

test('a backup is made, drilled and scheduled from the page', async () => {
  const server = await serverFor({ login: false });
  const place = `file://${directory}/points`;
  await withPage({ path }, async ({ page }) => {
    await page.getByRole('button', { name: 'Make a backup' }).click();
    const form = page.getByRole('dialog', { name: 'Back up' });
    await form.getByLabel('Location', { exact: true }).fill(place);
    await form.getByRole('button', { name: 'What would be sent' }).click();
    await form.getByText(/The point would have \d+ files/).waitFor({ timeout: WORK_MS });
    await form.getByLabel('Again', { exact: true }).selectOption('86400');
    await form.getByLabel('Newest points to hold').fill('7');
    await form.getByLabel('Drills').selectOption('604800');
    await form.getByRole('button', { name: 'Back up now' }).click();
    const card = location(page, place);
    await card.getByText('Backed up', { exact: true }).waitFor({ timeout: WORK_MS });
    await card.getByText(/Backup each day.*Drill each 7 days.*The newest 7 points stay/).waitFor();
    await card.getByRole('button', { name: 'Drill now' }).click();
    await card.getByText('Restore proven').waitFor({ timeout: WORK_MS });
    await card.getByRole('button', { name: 'Remove the schedule' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove it' }).click();
    await card.getByText('No schedule.').waitFor();
  });
  const status = await server.api('GET', '/api/v1/backups');
  assert.deepEqual(status.schedules, []);
  assert.equal(status.locations[0].points, 1);
  assert.equal(status.locations[0].drill_ok, true);
});

test('commands to restore name the location and the point, as a shell takes them', async () => {
  await withPage({}, async ({ page }) => {
    const status = structuredClone(STATUS);
    status.locations[0].location = "file:///back ups/it's";
    await page.route('**/api/v1/backups', (route) => answer(route, status));
    await page.goto(`/${path}`);
    await location(page, "file:///back ups/it's").getByRole('button', { name: 'Commands to restore' }).click();
    const dialog = page.getByRole('dialog', { name: 'Restore from this location' });
    const command = await dialog.getByRole('region', { name: 'All into this server' }).textContent();
    assert.match(command, /^annulus restore --location 'file:\/\/\/back ups\/it'\\''s' \\\n {4}--point 20261130T030000Z-d664ed9a \\\n {4}--http http:\/\/127/);
    await dialog.getByRole('tab', { name: 'List and verify' }).click();
    await dialog.getByText(/annulus backup verify/).waitFor();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog[open]'));
  });
});

test('a refused location is said in the form, and what was written stays', async () => {
  await withPage({ path, allow: [/status of 400/] }, async ({ page }) => {
    await settled(page);
    await page.getByRole('button', { name: /Make a backup|Another location/ }).click();
    const form = page.getByRole('dialog', { name: 'Back up' });
    await form.getByLabel('Location', { exact: true }).fill('ftp:nowhere');
    await form.getByRole('button', { name: 'Back up now' }).click();
    await form.getByRole('alert').waitFor();
    assert.equal(await form.getByLabel('Location', { exact: true }).inputValue(), 'ftp:nowhere');
  });
});

test('a role without the right sees results, and no buttons that would be refused', async () => {
  const server = await serverFor({ login: true });
  const visitor = { name: 'watcher', password: 'Correct-horse-9' };
  await server.cql(`CREATE ROLE IF NOT EXISTS watcher WITH LOGIN = true AND PASSWORD = '${visitor.password}'`);
  await withPage({ login: true, loggedIn: visitor }, async ({ page }) => {
    await page.route('**/api/v1/backups', (route) => answer(route, { ...STATUS, running: undefined }));
    await page.goto(`/${path}`);
    await location(page, 's3:backups/shop').getByText('Backed up', { exact: true }).waitFor();
    for (const name of ['Back up now', 'Drill now', 'Remove the schedule', 'Another location']) {
      assert.equal(await page.getByRole('button', { name }).count(), 0, name);
    }
  });
});

test('a backup to a location outside of --backup-locations is refused in words', async () => {
  const server = { login: false, sample: false, args: ['--backup-locations', `file://${directory}/allowed`] };
  await withPage({ server, path, allow: [/status of 403/] }, async ({ page }) => {
    await page.getByText(`file://${directory}/allowed`).first().waitFor();
    await page.getByRole('button', { name: 'Make a backup' }).click();
    const form = page.getByRole('dialog', { name: 'Back up' });
    await form.getByLabel('Location', { exact: true }).fill(`file://${directory}/elsewhere`);
    await form.getByRole('button', { name: 'Back up now' }).click();
    await form.getByRole('alert').getByText(/--backup-locations|not allowed|may name/).waitFor();
  });
});
