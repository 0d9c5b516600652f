// One way through the console: for `make test`. The rest is in `make test-console`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, fits, serverFor, settled, withPage } from './browser.mjs';
import { openShop } from './shop.mjs';

test('every view opens without an error, and starts with what it is', async () => {
  const server = await serverFor({ login: true, sample: false });
  await openShop(server);
  await withPage({ login: true, server, path: '#/start' }, async ({ page }) => {
    const links = page.locator('.nav-link');
    const titles = await links.allTextContents();
    assert.ok(titles.length >= 5, `views: ${titles}`);
    for (const title of titles) {
      await page.getByRole('link', { name: title, exact: true }).click();
      await page.locator('.nav-link[aria-current="page"]', { hasText: title }).waitFor();
      await settled(page);
      await page.locator('main h1').waitFor();
      assert.equal(await page.getByRole('alert').count(), 0, title);
      await fits(page);
    }
    await page.getByRole('link', { name: 'Start', exact: true }).click();
    await settled(page);
    await axe(page);
  });
});
