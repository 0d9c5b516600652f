// The view of the slow queries.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, inAllForms, serverFor, settled, withPage } from './browser.mjs';

// What reads all rows is slow there.
const SLOW = { args: ['--slow-query-threshold', '1ms'] };
const HOSTILE = '<img src=x onerror=alert(1)>';

test('without slow statements the view says what would be slow', async () => {
  await withPage({ server: { args: ['--slow-query-threshold', '1h'] }, path: '#/slow' }, async ({ page }) => {
    await page.getByText('No statement was slow').waitFor();
    await page.getByText('None took longer than').waitFor();
    await axe(page);
  });
});

test('slow statements are shown in all forms', async () => {
  const server = await serverFor({ login: false, ...SLOW });
  await server.cql(`SELECT title AS "${HOSTILE}", plot, genre, release_date FROM samples.movies WHERE title = 'none' ALLOW FILTERING`);
  await inAllForms({ server: SLOW, path: '#/slow' }, 'slow', async ({ page }) => {
    await page.getByText(HOSTILE).first().waitFor();
    assert.equal(await page.locator('main img').count(), 0);
  });
});

test('a statement opens in full, and its kind is counted', async () => {
  const server = await serverFor({ login: false, ...SLOW });
  for (const title of ['a', 'b', 'c']) {
    await server.cql(`SELECT genre FROM samples.movies WHERE title = '${title}' ALLOW FILTERING`);
  }
  await withPage({ server: SLOW, path: '#/slow' }, async ({ page }) => {
    await settled(page);
    await page.keyboard.press('/');
    await page.keyboard.type('select genre');
    await page.getByRole('tab', { name: 'By statement' }).click();
    const row = page.getByRole('row', { name: /SELECT genre FROM samples\.movies/ });
    assert.equal(await row.getByRole('cell').nth(1).textContent(), '3');
    await row.getByRole('button').focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Slow statement' });
    await dialog.getByText('by HTTP').waitFor();
    await axe(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    // The focus is again where it was.
    assert.match(await page.evaluate(() => document.activeElement.textContent), /SELECT genre/);
  });
});
