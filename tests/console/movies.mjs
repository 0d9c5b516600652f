// Indexes on the sample's films that tests of the console search by.
import assert from 'node:assert/strict';

const TEXT_INDEX = `CREATE CUSTOM INDEX IF NOT EXISTS movies_by_words ON samples.movies (plot, genre, release_date)
  USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}`;
// A debug build on a busy machine takes its time.
const WAIT_MS = 60000;

// Makes an index on the words of the plots, and waits until it has all films.
export async function fullTextIndex(server) {
  await server.cql(TEXT_INDEX);
  await serves(server, 'movies_by_words');
}

// Waits until an index on the films serves all of them.
export async function serves(server, index) {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const { status, count } = await server.api('GET', `/api/v1/indexes/samples/${index}/status`);
    if (status === 'SERVING' && count === 10000) return;
    assert.ok(Date.now() < end, `${index} is ${status} with ${count} rows`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
