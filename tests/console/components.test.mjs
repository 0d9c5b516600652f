// Components of the page by themselves, drawn in an empty page of the console.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, fits, settled, widths, withPage } from './browser.mjs';

// Opens the console, and puts what `draw` draws in its place. `draw` runs in the page: it gets all of ui.js, and `given`.
async function drawn(page, draw, given) {
  await page.goto('/#/settings');
  await settled(page);
  await page.evaluate(
    async ([source, argument]) => {
      const ui = await import('/console/ui.js');
      const place = document.createElement('main');
      document.body.replaceChildren(place);
      const { promise, resolve } = Promise.withResolvers();
      window.drawnWith = { ui, argument, place, resolve };
      const script = document.createElement('script');
      script.type = 'module';
      script.src = `/drawn.js?${encodeURIComponent(source)}`;
      document.head.append(script);
      await promise;
    },
    [String(draw), given],
  );
}

// The page's policy takes no script in a text: what a test draws comes as a file of its own.
async function withDrawn(options, draw, given, use) {
  await withPage(options, async ({ page, ...rest }) => {
    await page.route('**/drawn.js?*', (route) => {
      const source = decodeURIComponent(route.request().url().split('?')[1]);
      const body = `const { ui, argument, place, resolve } = window.drawnWith;
        const draw = ${source};
        ui.render(ui.html\`<h1>Drawn</h1><\${() => draw(ui, argument)} />\`, place);
        resolve();`;
      return route.fulfill({ contentType: 'text/javascript', body });
    });
    await drawn(page, draw, given);
    await use({ page, ...rest });
  });
}

const HOSTILE = ['<script>window.bad = 1</script>', '<img src=x onerror="window.bad = 1">', '"><b>b</b>', '${1}', 'javascript:1'];

function manyRows({ html, Table, Empty, useState }, { count }) {
  const [rows] = useState(() => Array.from({ length: count }, (_, id) => ({ id, name: `row ${id}`, size: (id * 7919) % count })));
  const [opened, setOpened] = useState(null);
  const columns = [
    { key: 'name', label: 'Name', sort: true },
    { key: 'size', label: 'Size', align: 'right', sort: true },
  ];
  return html`<p>${opened ? `opened ${opened}` : ''}</p>
    <${Table} caption="Many" columns=${columns} rows=${rows} rowKey="id" onRow=${(row) => setOpened(row.name)} empty=${html`<${Empty} title="None" />`} />`;
}

test('of 5,000 rows only those are drawn that are seen', async () => {
  await withDrawn({}, manyRows, { count: 5000 }, async ({ page }) => {
    assert.ok((await page.getByRole('row').count()) < 100);
    assert.equal(await page.getByRole('table').getAttribute('aria-rowcount'), '5001');
    const box = page.getByRole('region', { name: 'Many' });
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByText('row 4999', { exact: true }).waitFor();
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
    await page.getByText('row 2500', { exact: true }).waitFor();
    await axe(page);
  });
});

test('a table is sorted by its heads, and opened, by keyboard', async () => {
  await withDrawn({}, manyRows, { count: 300 }, async ({ page }) => {
    const first = () => page.getByRole('row').nth(1).getByRole('cell').nth(1).textContent();
    await page.getByRole('button', { name: 'Size' }).focus();
    await page.keyboard.press('Enter');
    assert.equal(await first(), '0');
    await page.keyboard.press('Enter');
    assert.equal(await first(), '299');
    assert.equal(await page.getByRole('columnheader', { name: 'Size' }).getAttribute('aria-sort'), 'descending');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText(/opened row \d+/).waitFor();
  });
});

test('on a phone rows are cards, fifty at a time', async () => {
  await withDrawn({ width: widths.phone }, manyRows, { count: 120 }, async ({ page }) => {
    assert.equal(await page.getByRole('row').count(), 51);
    await page.getByRole('button', { name: 'Show more (70 left)' }).click();
    assert.equal(await page.getByRole('row').count(), 101);
    await fits(page);
    await axe(page);
  });
});

test('an empty table says so', async () => {
  await withDrawn({}, manyRows, { count: 0 }, async ({ page }) => {
    await page.getByText('None', { exact: true }).waitFor();
  });
});

function allTexts({ html, Marked, Code, Json, Badge, Stat, Bar, Card, Empty, Failure, Field, Input, Select, Tabs, Table, toast, Toasts, useEffect, useState }, { texts }) {
  const [tab, setTab] = useState(texts[0]);
  useEffect(() => texts.forEach((text) => toast(text, 'bad')), []);
  return texts.map(
    (text) => html`<${Card} title=${text}>
      <${Marked} text=${`${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}\u0001${text}\u0002`} />
      <${Code} text=${text} language="python" label=${`Code ${text}`} /><${Json} value=${{ [text]: text }} label=${`JSON ${text}`} />
      <${Badge}>${text}<//><dl><${Stat} label=${text} value=${text} /></dl>
      <${Bar} parts=${[{ label: text, value: 1 }]} label=${text} />
      <${Empty} title=${text}>${text}<//>
      <${Failure} failure=${{ kind: 'wrong', message: text, hint: text }} />
      <${Field} label=${`Field ${text}`} hint=${text} error=${text}><${Input} value=${text} /><//>
      <${Field} label=${`Choice ${text}`}><${Select} options=${texts} value=${text} /><//>
      <${Tabs} tabs=${texts.map((one) => ({ id: one, label: one }))} value=${tab} onChange=${setTab} label=${`Tabs ${text}`} />
      <${Table} caption=${`Rows ${text}`} columns=${[{ key: text, label: text }]} rows=${[{ [text]: text }]} />
    <//>`,
  ).concat(html`<${Toasts} />`);
}

test('a text is shown as text by every component', async () => {
  await withDrawn({}, allTexts, { texts: HOSTILE }, async ({ page }) => {
    await page.locator('.toast').nth(HOSTILE.length - 1).waitFor();
    assert.equal(await page.evaluate(() => window.bad), undefined);
    assert.equal(await page.locator('main img, main b, main script').count(), 0);
    const marks = await page.locator('mark').allTextContents();
    assert.deepEqual(marks, HOSTILE);
    const marked = await page.locator('.marked').allTextContents();
    assert.deepEqual(marked, HOSTILE.map((text) => text + text));
  });
});

function withDialog({ html, Button, Confirm, useState }) {
  const [open, setOpen] = useState(false);
  return html`<${Button} onClick=${() => setOpen(true)}>Open<//>
    <${Confirm} title="Sure?" open=${open} onClose=${() => setOpen(false)} onConfirm=${() => Promise.reject(new Error('it is refused'))}>It is.<//>`;
}

test('a dialog holds the focus, says why it failed, and gives the focus back', async () => {
  await withDrawn({}, withDialog, {}, async ({ page }) => {
    await page.getByRole('button', { name: 'Open' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Sure?' });
    await dialog.waitFor();
    for (let presses = 0; presses < 8; presses += 1) {
      await page.keyboard.press('Tab');
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog')));
    }
    await dialog.getByRole('button', { name: 'Go on' }).click();
    await dialog.getByRole('alert').getByText('it is refused').waitFor();
    await axe(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Open');
  });
});
