// The view Query: the editor, answers, errors, traces and the history.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inAllForms, serverFor, settled, withPage } from './browser.mjs';
import { fullTextIndex } from './movies.mjs';

const path = '#/query';
// The log of a browser has a line for each answer that is no success.
const allow = [/status of 40\d/];

const editor = (page) => page.getByRole('textbox', { name: 'CQL statement' });
const run = (page) => page.keyboard.press('Control+Enter');
const summary = (page) => page.locator('.outcome-summary');
const cells = (page, column) => page.locator(`tbody tr td:nth-child(${column})`);

async function write(page, text) {
  await editor(page).click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(text);
}

async function answer(page, text) {
  await write(page, text);
  await run(page);
  await page.locator('.outcome, .query-problem, .query-done').first().waitFor();
  await settled(page);
}

test('the view is whole in all forms, with rows and without', async () => {
  await inAllForms({ path }, 'query-first', async ({ page }) => {
    await page.getByText('Rows of a table').waitFor();
  });
  await inAllForms({ path }, 'query-rows', async ({ page }) => {
    await answer(page, 'SELECT id, title, genre, release_date, plot_embedding FROM samples.movies LIMIT 30');
    assert.match(await summary(page).textContent(), /^30 rows in/);
  });
});

test('a statement is completed from the schema and run without a mouse', async () => {
  await withPage({}, async ({ page, open }) => {
    await page.clock.install();
    await open(path);
    await settled(page);
    await editor(page).focus();
    await page.keyboard.type('SELECT title FROM samples.mov');
    await page.locator('.cm-completionLabel').getByText('movies', { exact: true }).waitFor();
    // The editor takes no key for a list that opened less than 75 ms ago, so that none is taken by mistake.
    await page.clock.runFor(100);
    await page.keyboard.press('Enter');
    assert.match(await editor(page).textContent(), /samples\.movies$/);
    await page.keyboard.type(' WHERE i');
    await page.locator('.cm-completionLabel').getByText('id', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type('d = 4317');
    await run(page);
    await page.getByRole('cell', { name: 'Wagon Wheels Westward' }).waitFor();
  });
});

test('Tab leaves the editor, and letters in it are no keys of the page', async () => {
  await withPage({ path }, async ({ page }) => {
    await editor(page).focus();
    await page.keyboard.type('gs?');
    assert.equal(await page.locator('h1').textContent(), 'Query');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    assert.equal(await editor(page).evaluate((element) => element.getRootNode().activeElement), null);
  });
});

test('an error is marked at its place, in the statement that has it', async () => {
  await withPage({ path, allow }, async ({ page }) => {
    const marked = page.locator('.cm-lintRange-error');
    for (const [text, place, words] of [
      ['SELECT id FROM samples.movies LIMIT 1;\nSELECT titel FROM samples.movies', 'titel', 'Did you mean title?'],
      ['SELECT title\n  FRM samples.movies', 'FRM', 'line 2:3'],
      ["SELECT id FROM samples.movies WHERE id = 'x y'", "'x y'", 'Invalid STRING constant'],
      ['SELECT * FROM samples.movie', 'movie', 'Did you mean movies?'],
    ]) {
      await answer(page, text);
      assert.equal(await marked.first().textContent(), place);
      await page.getByRole('alert').getByText(words).waitFor();
    }
    await answer(page, 'SELECT id FROM samples.movies LIMIT 1');
    assert.equal(await marked.count(), 0);
  });
});

test('the statement at the cursor runs, or all of them up to the first error', async () => {
  await withPage({ path, allow }, async ({ page }) => {
    const text =
      'SELECT id FROM samples.movies LIMIT 2;\nSELECT title AS t FROM samples.movies WHERE id = 4317;\nSELECT nope;';
    await write(page, text);
    await page.keyboard.press('ArrowUp');
    await run(page);
    await page.getByRole('cell', { name: 'Wagon Wheels Westward' }).waitFor();
    await page.getByRole('button', { name: 'Run all' }).click();
    await page.getByRole('alert').waitFor();
    const outcomes = page.getByRole('group', { name: 'Statements that were run' }).getByRole('button');
    assert.equal(await outcomes.count(), 3);
    await outcomes.first().click();
    assert.match(await summary(page).textContent(), /^2 rows/);
  });
});

test('rows come in pages, as a table and as JSON', async () => {
  await withPage({ path }, async ({ page }) => {
    await page.getByLabel('Rows a page').selectOption('25');
    await answer(page, 'SELECT id, title FROM samples.movies LIMIT 60');
    const ids = async () => cells(page, 1).allTextContents();
    const first = await ids();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('Page 2').waitFor();
    const second = await ids();
    assert.equal(new Set([...first, ...second]).size, 50);
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('Page 3').waitFor();
    assert.equal((await ids()).length, 10);
    assert.ok(await page.getByRole('button', { name: 'Next' }).isDisabled());
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByText('Page 2').waitFor();
    assert.deepEqual(await ids(), second);
    await page.getByRole('tab', { name: 'JSON' }).click();
    const json = JSON.parse(await page.getByRole('region', { name: 'Rows as JSON' }).textContent());
    assert.deepEqual(
      json.map(({ id }) => String(id)),
      second,
    );
  });
});

test('names and values of a hostile table are text, and whole numbers keep their digits', async () => {
  const server = await serverFor({ login: false });
  const evil = '<img src=x onerror=alert(1)>';
  await server.cql(
    "CREATE KEYSPACE IF NOT EXISTS hostile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
  );
  await server.cql(`CREATE TABLE IF NOT EXISTS hostile.rows (id bigint PRIMARY KEY, "${evil}" text, "Id" int)`);
  await server.cql(`INSERT INTO hostile.rows (id, "${evil}", "Id") VALUES (9007199254740993, '${evil}&amp;', 7)`);
  await withPage({ path }, async ({ page }) => {
    await answer(page, `SELECT id, "${evil}", "Id" FROM hostile.rows`);
    assert.deepEqual(await page.locator('tbody tr td').allTextContents(), ['9007199254740993', `${evil}&amp;`, '7']);
    assert.equal(await page.locator('main img').count(), 0);
    await page.getByRole('button', { name: '9007199254740993' }).click();
    const row = page.getByRole('dialog', { name: 'Row' });
    await row.getByText(`${evil}&amp;`).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('tab', { name: 'JSON' }).click();
    assert.match(await page.getByRole('region', { name: 'Rows as JSON' }).textContent(), /9007199254740993,/);
  });
});

test('values of markers go apart from the statement', async () => {
  await withPage({ path, allow }, async ({ page }) => {
    await write(page, 'SELECT title FROM samples.movies WHERE id = :id');
    await page.getByLabel(':id').fill('4317');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('cell', { name: 'Wagon Wheels Westward' }).waitFor();
    await write(page, 'SELECT title FROM samples.movies WHERE id = ? LIMIT ?');
    await page.getByLabel('? 1').fill('4317');
    await page.getByLabel('? 2').fill('many');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('alert').getByText('parameter 2').waitFor();
  });
});

test('read-only mode sends nothing that may change something, and DROP waits for a confirmation', async () => {
  await withPage({ path }, async ({ page }) => {
    const sent = [];
    page.on('request', (request) => request.url().endsWith('/cql') && sent.push(request.postData()));
    await page.getByLabel('Read-only').check();
    await settled(page);
    sent.length = 0;
    for (const text of [
      'INSERT INTO samples.movies (id) VALUES (1)',
      '/* SELECT */ TRUNCATE samples.movies',
      'GRANT ALL ON ALL KEYSPACES TO x',
    ]) {
      await write(page, text);
      await run(page);
      await page.getByRole('alert').getByText('Not sent').waitFor();
    }
    assert.deepEqual(sent, []);
    await answer(page, 'SELECT id FROM samples.movies LIMIT 1');
    await page.getByLabel('Read-only').uncheck();
    await write(page, 'DROP TABLE samples.movies');
    sent.length = 0;
    await run(page);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('nothing brings it back').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.deepEqual(sent, []);
  });
});

test('a statement under way can be given up', async () => {
  await withPage({ path, allow: [/ERR_FAILED/] }, async ({ page }) => {
    await settled(page);
    let release;
    const held = new Promise((resolve) => {
      release = resolve;
    });
    await page.route('**/api/v1/cql', async (route) => {
      await held;
      await route.abort().catch(() => {});
    });
    await write(page, 'SELECT id FROM samples.movies');
    const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/cql'));
    await run(page);
    await page.getByRole('button', { name: 'Cancel' }).first().click();
    await page.getByText('Cancelled').waitFor();
    assert.match((await failed).failure().errorText, /ABORTED/);
    release();
    await page.unroute('**/api/v1/cql');
    await answer(page, 'SELECT id FROM samples.movies LIMIT 1');
    assert.match(await summary(page).textContent(), /^1 row /);
  });
});

test('the history stays in the browser, without passwords', async () => {
  await withPage({ path, allow }, async ({ page }) => {
    await answer(page, 'SELECT id FROM samples.movies LIMIT 3');
    await answer(page, "CREATE ROLE someone WITH PASSWORD = 'secret-word'");
    await answer(page, 'SELECT nope FROM samples.movies');
    await page.reload();
    await settled(page);
    assert.match(await editor(page).textContent(), /SELECT nope/);
    await page.getByRole('button', { name: 'History' }).click();
    const dialog = page.getByRole('dialog', { name: 'History' });
    const entries = await dialog.locator('li code').allTextContents();
    assert.deepEqual(entries, ['SELECT nope FROM samples.movies', 'SELECT id FROM samples.movies LIMIT 3']);
    await dialog.getByText('LIMIT 3').click();
    await page.waitForFunction(() => !document.querySelector('dialog[open]'));
    assert.match(await editor(page).textContent(), /LIMIT 3/);
    const stored = await page.evaluate(() => JSON.stringify(localStorage) + JSON.stringify(sessionStorage));
    assert.ok(!stored.includes('secret-word'));
  });
});

test('a draft with a password is not remembered', async () => {
  await withPage({ path }, async ({ page }) => {
    await settled(page);
    await write(page, "CREATE ROLE someone WITH PASSWORD = 'secret-word'");
    await page.getByRole('button', { name: 'History' }).click();
    await page.getByRole('dialog', { name: 'History' }).waitFor();
    const stored = await page.evaluate(() => JSON.stringify(localStorage) + JSON.stringify(sessionStorage));
    assert.ok(!stored.includes('secret-word'), stored);
  });
});

test('a marker has a whole number with all its digits', async () => {
  await withPage({ path }, async ({ page }) => {
    await settled(page);
    await write(page, 'SELECT title FROM samples.movies WHERE id = :id');
    await page.getByLabel(':id').fill('9007199254740993');
    const sent = page.waitForRequest((request) => request.postData()?.includes(':id') ?? false);
    await page.route('**/api/v1/cql', (route) => route.fulfill({ json: { columns: [], rows: [] } }));
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    assert.deepEqual((await sent).postDataJSON().parameters, { id: '9007199254740993' });
  });
});

test('completions that come late do not cover the page', async () => {
  await withPage({}, async ({ page, open }) => {
    await page.clock.install();
    await open(path);
    await settled(page);
    await write(page, 'SELECT title FROM samples.movies WHERE id = :id');
    await page.getByLabel(':id').fill('4317');
    // The list comes a tenth of a second after the text.
    await page.clock.runFor(500);
    assert.equal(await page.locator('.cm-tooltip').count(), 0);
  });
});

test('USE sets the keyspace of what follows', async () => {
  await withPage({ path }, async ({ page }) => {
    await answer(page, 'USE samples');
    await page.getByText('now mean samples').waitFor();
    await answer(page, 'SELECT id FROM movies LIMIT 1');
    assert.match(await summary(page).textContent(), /^1 row /);
    assert.equal(await page.getByLabel('Keyspace').inputValue(), 'samples');
  });
});

test('a link fills the editor, and runs nothing', async () => {
  await withPage({}, async ({ page, open }) => {
    const sent = [];
    page.on('request', (request) => request.url().endsWith('/cql') && sent.push(request.postData()));
    await open(`${path}?text=${encodeURIComponent('TRUNCATE samples.movies')}&keyspace=samples`);
    await settled(page);
    assert.match(await editor(page).textContent(), /TRUNCATE samples.movies/);
    assert.ok(sent.every((body) => !body.includes('TRUNCATE')));
  });
});

test('the trace of a search is a picture of its parts, refills and all', async () => {
  await fullTextIndex(await serverFor({ login: false }));
  const search =
    "SELECT id, title FROM samples.movies WHERE title = 'no such title' ORDER BY BM25(plot, 'love') LIMIT 3 ALLOW FILTERING";
  await inAllForms({ path }, 'query-trace', async ({ page }) => {
    await answer(page, search);
    await page.getByRole('tab', { name: 'Trace' }).click();
    await page.locator('.trace-steps').waitFor();
    const stages = await page.locator('.trace-stage').allTextContents();
    for (const stage of [
      'Parse and prepare',
      'Candidates',
      'Wait for the index',
      'Search of the index',
      'Rows read',
      'Refill',
    ]) {
      assert.ok(stages.includes(stage), `${stage} in ${stages}`);
    }
    assert.ok(!stages.includes('Other steps'), 'each step of a search has a meaning');
    const fact = (name) =>
      page.locator('.trace-facts div', { has: page.getByText(name, { exact: true }) }).locator('dd');
    assert.ok(Number.parseInt(await fact('Refills').textContent(), 10) >= 3);
    assert.match(await fact('Plan').textContent(), /scan|walk/);
    const shares = await page
      .locator('.trace-strip span')
      .evaluateAll((parts) => parts.map((part) => Number.parseFloat(part.style.width)));
    const whole = shares.reduce((sum, share) => sum + share, 0);
    assert.ok(Math.abs(whole - 100) < 0.5, `the parts make ${whole} %`);
  });
});

test('steps of other statements have their parts, too', async () => {
  await withPage({ path }, async ({ page }) => {
    for (const [text, stage] of [
      ['SELECT title FROM samples.movies WHERE id = 4317', 'Rows read'],
      ["UPDATE samples.movies SET genre = 'Western' WHERE id = 4317 IF genre = 'no such genre'", 'Write'],
      ['SELECT id FROM samples.movies LIMIT 3', 'Rows read'],
    ]) {
      await answer(page, text);
      await page.getByRole('tab', { name: 'Trace' }).click();
      await page.locator('.trace-steps').waitFor();
      const stages = await page.locator('.trace-stage').allTextContents();
      assert.ok(stages.includes(stage) && !stages.includes('Other steps'), `${text}: ${stages}`);
    }
  });
});

test('a role without rights reads why', async () => {
  const server = await serverFor({ login: true });
  const visitor = { name: 'visitor', password: 'Correct-horse-8' };
  await server.cql(`CREATE ROLE IF NOT EXISTS visitor WITH LOGIN = true AND PASSWORD = '${visitor.password}'`);
  await withPage({ login: true, loggedIn: visitor, path, allow }, async ({ page }) => {
    await answer(page, 'SELECT id FROM samples.movies LIMIT 1');
    await page.getByRole('alert').getByText('You may not do this').waitFor();
    await page
      .getByRole('alert')
      .getByText(/visitor|SELECT/)
      .first()
      .waitFor();
  });
});
