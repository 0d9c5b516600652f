// The view Search: forms of searches, filters, reasons, and the same search as CQL and as code.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { inAllForms, serverFor, settled, withPage } from './browser.mjs';
import { fullTextIndex } from './movies.mjs';

const run = promisify(execFile);
// The log of a browser has a line for each answer that is no success.
const allow = [/status of (40\d|502)/];

const words = '#/search/samples/movies_by_words';
const film = JSON.stringify({ id: 4317 });
const server = await serverFor({ login: false });
await fullTextIndex(server);

const address = (fields) => `${words}?${new URLSearchParams(fields)}`;
const filterOf = (op, ...parts) => ({ op, not: false, parts });
const condition = (column, compare, text, not = false) => ({ column, compare, text, not });

const titles = (page) => page.locator('.hit h2').allTextContents();
const search = (body) => server.api('POST', '/api/v1/tables/samples/movies/search', body);
const titlesOf = ({ rows }) => rows.map((row) => row.title);

async function answered(page) {
  await page.locator('.hit, .search-answer .empty, .failure').first().waitFor();
  await settled(page);
}

test('the view is whole in all forms, before a search and after', async () => {
  await inAllForms({ path: words }, 'search-first', async ({ page }) => {
    await page.getByText('What are you looking for?').waitFor();
  });
  const path = address({ words: 'lonely robot', row: film, balance: 70 });
  await inAllForms({ path }, 'search-hybrid', async ({ page }) => {
    await answered(page);
    await page.locator('.hit-why summary').first().click();
    assert.equal((await titles(page)).length, 10);
  });
});

test('words are found by keys alone, and marked where they are', async () => {
  await withPage({ path: words }, async ({ page }) => {
    await page.getByLabel('Words in plot').focus();
    await page.keyboard.type('lonely robot');
    await page.keyboard.press('Enter');
    await answered(page);
    assert.deepEqual(await titles(page), titlesOf(await search({ text: 'lonely robot' })));
    const marks = await page.locator('.hit mark').allTextContents();
    assert.ok(marks.length >= 10 && marks.every((mark) => /robot|lone/i.test(mark)), marks.join(', '));
  });
});

test('rows whose words can not be marked are shown, and why they are not is said', async () => {
  await withPage({ path: address({ words: 'lonely robot' }), allow: [/status of 503/] }, async ({ page }) => {
    await answered(page);
    await page.route('**/movies_by_words/highlight', (route) => route.fulfill({ status: 503, body: 'too many searches' }));
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByText('The words that were found are not marked: too many searches').waitFor();
    assert.deepEqual(await titles(page), titlesOf(await search({ text: 'lonely robot' })));
    assert.equal(await page.locator('.hit mark').count(), 0);
  });
});

test('operators are a choice, and a malformed query says where', async () => {
  await withPage({ path: words, allow }, async ({ page }) => {
    await page.getByLabel('Words in plot').fill('robot AND');
    await page.keyboard.press('Enter');
    await answered(page);
    assert.ok((await titles(page)).length > 0);
    await page.getByLabel('With operators').check();
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByText(/at character \d+ of the query/).waitFor();
  });
});

test('rows like a row are found by its vector, and the way back leads to the words', async () => {
  await withPage({ path: address({ words: 'lonely robot' }) }, async ({ page }) => {
    await answered(page);
    const before = await titles(page);
    const key = await page.locator('.hit-key').first().textContent();
    const row = { id: Number(key.replace('id ', '')) };
    await page.getByRole('button', { name: 'Rows like this' }).first().click();
    await page.locator('.why-places').getByText('Vectors').first().waitFor();
    await answered(page);
    assert.deepEqual(await titles(page), titlesOf(await search({ row })));
    assert.ok(!(await titles(page)).includes(before[0]), 'the row itself is not found');
    await page.goBack();
    await page.locator('.hit mark').first().waitFor();
    assert.deepEqual(await titles(page), before);
  });
});

test('the balance weighs words and vectors, and the reasons add up to the score', async () => {
  const queries = (vectors) => [
    { row: { id: 4317 }, column: 'plot_embedding', weight: vectors },
    { text: 'lonely robot', column: 'plot', weight: 1 - vectors },
  ];
  await withPage({ path: address({ words: 'lonely robot', row: film }) }, async ({ page }) => {
    await answered(page);
    const slider = page.getByLabel('Share of vectors, in per cent');
    for (const [share, press] of [
      [0.5, null],
      [0, 'Home'],
      [1, 'End'],
      [0.9, 'ArrowLeft ArrowLeft'],
    ]) {
      for (const key of press?.split(' ') ?? []) await slider.press(key);
      const wanted = titlesOf(await search({ queries: queries(share) }));
      await page.waitForFunction(
        (first) => document.querySelector('.hit h2')?.textContent === first && !document.querySelector('.loading'),
        wanted[0],
      );
      assert.deepEqual(await titles(page), wanted, `with ${share} for vectors`);
    }
    await page.getByLabel('Ordered by').selectOption('score');
    const byScore = titlesOf(await search({ queries: queries(0.9), rank: { by: 'score' } }));
    await page.waitForFunction((first) => document.querySelector('.hit h2')?.textContent === first, byScore[0]);
    assert.deepEqual(await titles(page), byScore);
    for (const summary of await page.locator('.hit-why summary').all()) await summary.click();
    for (const reasons of await page.locator('.why-reasons tbody').all()) {
      const numbers = (await reasons.locator('td:last-child').allTextContents()).map(Number);
      const sum = numbers.pop();
      const parts = numbers.reduce((all, one) => all + one, 0);
      assert.ok(Math.abs(parts - sum) < 0.002 * Math.abs(sum), `${numbers} make ${sum}`);
    }
  });
});

const FORMS = [
  { words: 'lonely robot' },
  { words: "robot AND (rock OR love's)", operators: 'true', limit: 5 },
  { row: film },
  { row: film, exact: 'true', limit: 5 },
  { words: 'love', row: film },
  { words: 'love', row: film, balance: 80 },
  { words: 'love', row: film, balance: 20, rank: 'score' },
  { words: 'robot', filter: JSON.stringify(filterOf('and', condition('release_date', 'gte', '1980-01-01'))) },
  {
    words: 'love',
    filter: JSON.stringify(
      filterOf('and', condition('genre', 'in', 'Western, Comedy'), condition('release_date', 'lt', '1950-01-01')),
    ),
  },
  { row: film, filter: JSON.stringify(filterOf('and', condition('plot', 'match', 'John Wayne'))) },
  { row: film, filter: JSON.stringify(filterOf('and', condition('title', 'eq', "Devil's Island"))) },
];

test('the same as CQL runs in the query view, and gives the same rows', async () => {
  await withPage({}, async ({ page, open }) => {
    for (const fields of FORMS) {
      const shown = JSON.stringify(fields);
      await open(address(fields));
      await answered(page);
      const found = await titles(page);
      await page.getByRole('tab', { name: 'CQL' }).click();
      await page.getByRole('button', { name: 'Open in Query' }).click();
      await page.getByRole('textbox', { name: 'CQL statement' }).waitFor();
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.locator('.outcome, .query-problem').first().waitFor();
      await settled(page);
      const place =
        1 + (await page.locator('thead th').allTextContents()).findIndex((text) => text.startsWith('title'));
      const rows = await page.locator(`tbody tr td:nth-child(${place})`).allTextContents();
      const wanted = fields.row
        ? rows.filter((title) => title !== 'Wagon Wheels Westward').slice(0, found.length)
        : rows;
      assert.deepEqual(wanted, found, shown);
    }
  });
});

test('code to copy finds the same rows', async () => {
  await withPage(
    {
      allow,
      path: address({
        words: "rock'n'roll",
        row: film,
        balance: 30,
        filter: JSON.stringify(filterOf('or', condition('genre', 'ne', 'x'), condition('id', 'gt', '5'))),
      }),
    },
    async ({ page }) => {
      await answered(page);
      const keys = (await page.locator('.hit-key').allTextContents()).map((text) => Number(text.replace('id ', '')));
      assert.equal(keys.length, 10);
      await page.getByRole('tab', { name: 'Code' }).click();
      const code = async (language) => {
        await page.getByRole('button', { name: language, exact: true }).click();
        return page.locator('pre.code').textContent();
      };
      const curl = JSON.parse((await run('bash', ['-c', await code('curl')])).stdout);
      assert.deepEqual(
        curl.rows.map(({ id }) => id),
        keys,
      );
      const python = (await run('python3', ['-c', await code('Python')])).stdout;
      assert.deepEqual(
        python
          .trim()
          .split('\n')
          .map((line) => Number(/'id': (\d+)/.exec(line)[1])),
        keys,
      );
      await page.getByRole('tab', { name: 'CQL' }).click();
      await page.getByText('CQL has no OR').waitFor();
    },
  );
});

test('a filter is made by form: conditions, a group, not', async () => {
  await withPage({ path: address({ words: 'robot' }) }, async ({ page }) => {
    await answered(page);
    const filter = page.getByRole('group', { name: 'filter', exact: true });
    await filter.getByRole('button', { name: 'Add a condition' }).click();
    await filter.getByLabel('Column').selectOption('release_date');
    await filter.getByLabel('Comparison').selectOption('gte');
    await filter.getByLabel('Value').fill('1980-01-01');
    await filter.getByRole('button', { name: 'Add a group' }).click();
    const group = page.getByRole('group', { name: 'group', exact: true });
    await group.getByLabel('Column').selectOption('genre');
    await group.getByLabel('Comparison').selectOption('eq');
    await group.getByLabel('Value').fill('Science Fiction');
    await group.getByRole('button', { name: 'not', exact: true }).first().click();
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByText('and not (genre = Science Fiction)').waitFor();
    await answered(page);
    const filterBody = { and: [{ release_date: { gte: '1980-01-01' } }, { not: { genre: 'Science Fiction' } }] };
    assert.deepEqual(await titles(page), titlesOf(await search({ text: 'robot', filter: filterBody })));
    await page.getByRole('button', { name: 'Remove the group' }).click();
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page
      .locator('.outcome-summary')
      .getByText(/1980-01-01$/)
      .waitFor();
  });
});

test('a column without an index is filtered by row after row, and the form says so', async () => {
  const filter = JSON.stringify(filterOf('and', condition('title', 'eq', 'Robot & Frank')));
  await withPage({ path: address({ words: 'robot', filter }) }, async ({ page }) => {
    await answered(page);
    assert.deepEqual(
      await titles(page),
      titlesOf(await search({ text: 'robot', filter: { title: 'Robot & Frank' }, allow_filtering: true })),
    );
    await page.getByText('No index has title').waitFor();
  });
});

test('a sentence is embedded by the server, where it can be', async () => {
  const [{ plot_embedding: vector }] = (await server.cql('SELECT plot_embedding FROM samples.movies WHERE id = 4317'))
    .rows;
  await withPage({ allow }, async ({ page, open }) => {
    const features = async (embeddings) => {
      await page.unroute('**/api/v1/session');
      await page.route('**/api/v1/session', async (route) => {
        const response = await route.fetch();
        const session = await response.json();
        session.features.embeddings = embeddings;
        await route.fulfill({ response, json: session });
      });
      await page.goto('about:blank');
      await open(words);
    };
    await features(false);
    await page.getByText('--embeddings-url').waitFor();
    assert.equal(await page.getByText('A sentence', { exact: true }).count(), 0);
    await page.route('**/api/v1/embed', (route) => {
      const { texts } = route.request().postDataJSON();
      if (texts[0] === 'fail') return route.fulfill({ status: 502, json: { error: 'the embedding server is away' } });
      return route.fulfill({ json: { model: 'test', dimensions: 384, vectors: [vector] } });
    });
    await features(true);
    await page.getByText('A sentence', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Sentence' }).fill('wagons go west');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await answered(page);
    assert.deepEqual(await titles(page), titlesOf(await search({ vector })));
    await page.getByRole('textbox', { name: 'Sentence' }).fill('fail');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.locator('.failure').getByText('the embedding server is away').waitFor();
  });
});

test('the trace of a search shows what was done', async () => {
  await withPage({ path: address({ words: 'love', row: film }) }, async ({ page }) => {
    await answered(page);
    await page.getByRole('tab', { name: 'Trace' }).click();
    await page.locator('.trace-steps').waitFor();
    const stages = await page.locator('.trace-stage').allTextContents();
    assert.ok(stages.includes('Search of the index') && stages.includes('Rows read'), stages.join());
    assert.ok(!stages.includes('Other steps'));
  });
});

test('values that can not be sent are named, and so is a row that is not there', async () => {
  await withPage({ allow }, async ({ page, open }) => {
    for (const [fields, text] of [
      [{ vector: '[1, 2, x]' }, '“x” is no number'],
      [{ vector: '[1, 2, 3]' }, 'the vector has 3 numbers, and the index has 384 dimensions'],
      [{ row: '{"id": "many"}' }, 'id: “many” is no number'],
      [{ row: '{"id": 99999999}' }, 'there is no row with this key'],
      [{ words: 'love', filter: JSON.stringify(filterOf('and', condition('id', 'lt', 'x'))) }, 'id: “x” is no number'],
    ]) {
      await open(address(fields));
      await page.locator('.failure').getByText(text).waitFor();
    }
    await open('#/search/samples/nonesuch');
    await page.getByText('There is no index samples.nonesuch to search').waitFor();
    await open(address({ words: 'zzzzqqq' }));
    await page.getByText('Nothing was found').waitFor();
  });
});

test('a hostile row is text, and its key keeps its digits', async () => {
  const evil = '<b onmouseover=alert(1)>robot</b> &amp; "more"';
  await server.cql(
    "CREATE KEYSPACE IF NOT EXISTS hostile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
  );
  await server.cql(
    'CREATE TABLE IF NOT EXISTS hostile.found ("Id" bigint PRIMARY KEY, "<i>Title" text, body text, v vector<float, 3>)',
  );
  await server.cql("CREATE CUSTOM INDEX IF NOT EXISTS found_words ON hostile.found (body) USING 'fulltext_index'");
  await server.cql("CREATE CUSTOM INDEX IF NOT EXISTS found_v ON hostile.found (v) USING 'vector_index'");
  const insert = 'INSERT INTO hostile.found ("Id", "<i>Title", body, v) VALUES (?, ?, ?, ?)';
  await server.cql(insert, ['9007199254740993', evil, evil, [1, 0, 0]]);
  await server.cql(insert, ['9007199254740995', 'another', 'no word of it', [0.9, 0.1, 0]]);
  await withPage({ path: '#/search/hostile/found_words?words=robot' }, async ({ page }) => {
    await answered(page);
    assert.equal(await page.locator('.hit-text').first().textContent(), evil);
    assert.deepEqual(await page.locator('.hit-text mark').allTextContents(), ['robot']);
    assert.equal(await page.locator('.hit b[onmouseover]').count(), 0);
    assert.equal(await page.locator('.hit-key').first().textContent(), 'Id 9007199254740993');
    await page.getByRole('button', { name: 'Rows like this' }).first().click();
    await page.getByText('Id 9007199254740995').waitFor();
    await page.getByRole('tab', { name: 'CQL' }).click();
    await page.getByText('"<i>Title"').first().waitFor();
  });
});

test('an index service without tables searches its indexes, and says what it lacks', async () => {
  await withPage({}, async ({ page, open }) => {
    // The routes of an index are the same there; the session says that there are no tables.
    await page.route('**/api/v1/session', async (route) => {
      const response = await route.fetch();
      const session = await response.json();
      session.program = 'store';
      Object.assign(session.features, { cql: false, tables: false, sample: false });
      await route.fulfill({ response, json: session });
    });
    await open(
      `${words}?words=robot&filter=${encodeURIComponent(JSON.stringify(filterOf('or', condition('genre', 'eq', 'Science Fiction'), condition('genre', 'ne', 'Western', true))))}`,
    );
    await page.getByText('has no tables to read rows from').waitFor();
    await page.getByRole('table').waitFor();
    const keys = (await page.locator('tbody tr td:nth-child(2)').allTextContents()).map(Number);
    const filter = {
      or: [{ type: '==', lhs: 'genre', rhs: 'Science Fiction' }, { not: { type: '!=', lhs: 'genre', rhs: 'Western' } }],
      allow_filtering: true,
    };
    const answer = await server.api('POST', '/api/v1/indexes/samples/movies_by_words/bm25', {
      words: 'robot',
      limit: 10,
      filter,
    });
    assert.deepEqual(keys, answer.primary_keys.id);
    await page.getByText('words with vectors in one order need its tables').waitFor();
    assert.equal(await page.getByText('A row', { exact: true }).count(), 0);
    await open('#/search/samples/movies_by_plot');
    const [{ plot_embedding: vector }] = (await server.cql('SELECT plot_embedding FROM samples.movies WHERE id = 4317'))
      .rows;
    await page.getByLabel('384 numbers').fill(JSON.stringify(vector));
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByRole('cell', { name: '4317' }).waitFor();
  });
});

test('of a thousand indexes one is found by typing', async () => {
  // The tables of this schema are made up, so that the server has no rows of them.
  await withPage({ allow }, async ({ page, open }) => {
    await page.route('**/api/v1/schema', async (route) => {
      const response = await route.fetch();
      const schema = await response.json();
      const { movies } = schema.keyspaces.samples.tables;
      for (let number = 0; number < 5000; number += 1) {
        const indexes =
          number % 5 ? [] : movies.indexes.slice(0, 1).map((index) => ({ ...index, name: `copy_${number}_v` }));
        schema.keyspaces.samples.tables[`copy_${number}`] = { ...movies, indexes };
      }
      await route.fulfill({ response, json: schema });
    });
    await open(words);
    const picker = page.getByLabel('Index');
    await picker.fill('copy_49');
    // Those that have the text are offered, and not a thousand.
    assert.equal(await page.locator('datalist option').count(), 22);
    await picker.fill('samples.copy_4995_v');
    await page.waitForURL(/copy_4995_v/);
    await page.getByText('Near to, by plot_embedding').waitFor();
    await page.goto('about:blank');
    await open('#/query');
    await page.getByText('Rows of a table').waitFor();
  });
});

test('a role without rights reads why', async () => {
  const guarded = await serverFor({ login: true });
  const visitor = { name: 'visitor', password: 'Correct-horse-8' };
  await fullTextIndex(guarded);
  await guarded.cql(`CREATE ROLE IF NOT EXISTS visitor WITH LOGIN = true AND PASSWORD = '${visitor.password}'`);
  await withPage({ login: true, loggedIn: visitor, path: address({ words: 'love' }), allow }, async ({ page }) => {
    await page.getByText('You have no right to this').first().waitFor();
  });
});
