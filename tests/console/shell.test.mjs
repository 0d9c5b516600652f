// What all views share: the navigation, the keys, both themes, both widths, the rules of axe.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, fits, picture, settled, themes, widths, withPage } from './browser.mjs';

// The ids of the views that this server has, from its navigation.
const viewsOf = (page) =>
  page.locator('.nav-link').evaluateAll((links) => links.map((link) => link.getAttribute('href').replace('#/', '')));

for (const login of [false, true]) {
  for (const theme of themes) {
    for (const [form, width] of Object.entries(widths)) {
      test(`every view is whole: ${form}, ${theme}, ${login ? 'with' : 'without'} login`, async () => {
        await withPage({ login, theme, width, path: '#/start' }, async ({ page, open }) => {
          const views = await viewsOf(page);
          assert.ok(views.length >= 5, `views: ${views}`);
          for (const view of views) {
            await open(`#/${view}`);
            await settled(page);
            assert.match(await page.title(), / · Annulus$/);
            assert.deepEqual(await page.getByRole('alert').allTextContents(), [], view);
            await picture(page, `${view}-${form}-${theme}${login ? '-login' : ''}`);
            await fits(page);
            await axe(page).catch((error) => {
              throw new Error(`${view}: ${error.message}`);
            });
          }
        });
      });
    }
  }
}

test('at 200 % of the size no view is cut off', async () => {
  // A window of 1440 pixels has 720 of this size.
  await withPage({ width: 720, height: 450, path: '#/start' }, async ({ page, open }) => {
    for (const view of await viewsOf(page)) {
      await open(`#/${view}`);
      await settled(page);
      await fits(page);
    }
  });
});

test('two keys go to each view', async () => {
  await withPage({ path: '#/start' }, async ({ page }) => {
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Keys' });
    await dialog.waitFor();
    const pairs = await dialog.locator('div:has(> dt)').evaluateAll((rows) =>
      rows
        .map((row) => [[...row.querySelectorAll('kbd')].map((key) => key.textContent), row.querySelector('dd').textContent])
        .filter(([keys]) => keys.length === 2),
    );
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    assert.equal(pairs.length, (await viewsOf(page)).length, 'each view has its keys');
    for (const [keys, title] of pairs) {
      for (const key of keys) await page.keyboard.press(key);
      await page.locator('.nav-link[aria-current="page"]', { hasText: title }).waitFor();
    }
  });
});

test('a letter in a field is a letter', async () => {
  await withPage({ path: '#/settings' }, async ({ page }) => {
    await settled(page);
    await page.keyboard.press('/');
    await page.keyboard.type('gh?');
    assert.equal(await page.getByRole('searchbox').inputValue(), 'gh?');
    assert.match(page.url(), /#\/settings$/);
    await page.keyboard.press('Escape');
    assert.equal(await page.getByRole('searchbox').inputValue(), '');
  });
});

test('the first Tab leads past the navigation', async () => {
  await withPage({ path: '#/start' }, async ({ page }) => {
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the view');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  });
});

test('a view is reached by Tab and Enter, and takes the focus', async () => {
  await withPage({ path: '#/start' }, async ({ page }) => {
    for (let presses = 0; presses < 40; presses += 1) {
      await page.keyboard.press('Tab');
      if ((await page.evaluate(() => document.activeElement.getAttribute('href'))) === '#/settings') break;
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    assert.equal(await page.title(), 'Settings · Annulus');
  });
});

// What has the focus, in a shadow root too: how it shows it, and what it is. Null once the focus has left the page.
function focused() {
  let element = document.activeElement;
  if (element === null || element === document.body) return null;
  while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  const shows = (one) => {
    const { outlineStyle, boxShadow } = getComputedStyle(one);
    return outlineStyle !== 'none' || boxShadow !== 'none';
  };
  // The box around an editor shows what is within.
  const host = element.getRootNode().host;
  return { isShown: shows(element) || (host !== undefined && shows(host)), what: element.outerHTML.slice(0, 120) };
}

// More than a view has.
const PRESSES_MAX = 400;

for (const login of [false, true]) {
  test(`by Tab alone the focus goes through each view ${login ? 'with' : 'without'} login, is seen, and leaves it`, async () => {
    await withPage({ login, path: '#/start' }, async ({ page, open }) => {
      for (const view of await viewsOf(page)) {
        await page.goto('about:blank');
        await open(`#/${view}`);
        await settled(page);
        let steps = 0;
        for (; steps < PRESSES_MAX; steps += 1) {
          await page.keyboard.press('Tab');
          const now = await page.evaluate(focused);
          if (now === null) break;
          assert.ok(now.isShown, `${view}: ${now.what}`);
        }
        assert.ok(steps > 10 && steps < PRESSES_MAX, `${view}: ${steps} steps`);
      }
    });
  });
}

test('on a phone the navigation opens and closes by keyboard', async () => {
  await withPage({ width: widths.phone, path: '#/start' }, async ({ page }) => {
    const menu = page.getByRole('button', { name: 'Views', exact: true });
    await menu.focus();
    await page.keyboard.press('Enter');
    assert.equal(await menu.getAttribute('aria-expanded'), 'true');
    await page.waitForFunction(() => document.activeElement.closest('#navigation') !== null);
    await axe(page);
    await page.keyboard.press('Escape');
    assert.equal(await menu.getAttribute('aria-expanded'), 'false');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Views');
    assert.equal(await page.locator('#navigation').isVisible(), false);
    await menu.click();
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    await page.locator('#navigation').waitFor({ state: 'hidden' });
  });
});

test('the theme is that of the system until another is chosen, which stays', async () => {
  await withPage({ theme: 'dark', path: '#/start' }, async ({ page }) => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    assert.equal(await theme(), 'dark');
    await page.getByRole('button', { name: 'Theme: as the system' }).click();
    assert.equal(await theme(), 'light');
    await page.reload();
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    assert.equal(await theme(), 'light');
    await page.getByRole('button', { name: 'Theme: light' }).click();
    await page.getByRole('button', { name: 'Theme: dark' }).click();
    await page.emulateMedia({ colorScheme: 'light' });
    assert.equal(await theme(), 'light');
  });
});

test('an address without a view says so, and leads back', async () => {
  await withPage({ path: '#/nonesuch' }, async ({ page }) => {
    await page.getByText('This server has no view "nonesuch"').waitFor();
    await page.getByRole('link', { name: 'Go to the start' }).click();
    await page.getByRole('heading', { level: 1, name: 'Start' }).waitFor();
  });
});
