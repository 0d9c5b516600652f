// The view of the settings.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inAllForms, settled, withPage } from './browser.mjs';

test('the settings are shown in all forms', async () => {
  await inAllForms({ path: '#/settings' }, 'settings', async ({ page }) => {
    await page.getByText('http-port', { exact: true }).waitFor();
  });
});

test('a filter leaves the settings that have all its words', async () => {
  await withPage({ path: '#/settings' }, async ({ page }) => {
    await settled(page);
    await page.keyboard.press('/');
    await page.keyboard.type('tombstone fail');
    await page.getByText('tombstone_failure_threshold', { exact: true }).waitFor();
    assert.equal(await page.getByText('http-port', { exact: true }).count(), 0);
    await page.keyboard.type(' nonesuch');
    await page.getByText('No setting matches').waitFor();
  });
});
