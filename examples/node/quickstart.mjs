// Finds books by vectors and by words.

import { Client } from 'cassandra-driver';

const SCHEMA = [
  `
  CREATE KEYSPACE IF NOT EXISTS quickstart
    WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
  `,
  `
  CREATE TABLE IF NOT EXISTS quickstart.books
    (id int PRIMARY KEY, title text, year int, about text, embedding vector<float, 3>)
  `,
  // The columns after the first are those that searches filter by.
  `
  CREATE CUSTOM INDEX IF NOT EXISTS books_by_embedding ON quickstart.books (embedding, year)
    USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}
  `,
  `
  CREATE CUSTOM INDEX IF NOT EXISTS books_by_words ON quickstart.books (about, year)
    USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}
  `,
];
const INSERT = 'INSERT INTO quickstart.books (id, title, year, about, embedding) VALUES (?, ?, ?, ?, ?)';
const FILTERED = 'SELECT title, year FROM quickstart.books WHERE year >= ? ORDER BY embedding ANN OF ? LIMIT 2';
const HYBRID = 'SELECT title, year FROM quickstart.books ORDER BY RRF(ANN(embedding, ?), BM25(about, ?)) LIMIT 2';

// A model makes such vectors of texts. Here the numbers say how much sea, space and love is in a book.
const BOOKS = [
  [1, 'Moby-Dick', 1851, 'A captain hunts a white whale across the oceans.', Float32Array.of(0.9, 0.0, 0.1)],
  [2, 'Pride and Prejudice', 1813, 'Two proud people learn to love.', Float32Array.of(0.0, 0.0, 1.0)],
  [3, 'The Old Man and the Sea', 1952, 'An old man rows out alone for one great fish.', Float32Array.of(0.9, 0.0, 0.3)],
  [4, 'Solaris', 1961, 'Far from the Earth, an ocean thinks.', Float32Array.of(0.5, 0.8, 0.4)],
];
const SEA = Float32Array.of(1.0, 0.0, 0.0);

const client = new Client({
  contactPoints: [process.env.ANNULUS_CQL ?? '127.0.0.1:9042'],
  localDataCenter: 'datacenter1',
});

// A driver learns from a prepared statement that a marker is a vector.
const execute = (statement, values) => client.execute(statement, values, { prepare: true });

async function show(question, statement, values) {
  console.log(question);
  for (const book of await execute(statement, values)) {
    console.log(`  ${book.title} (${book.year})`);
  }
}

try {
  for (const statement of SCHEMA) {
    await client.execute(statement);
  }
  for (const book of BOOKS) {
    await execute(INSERT, book);
  }
  await show('Near the sea, since 1900:', FILTERED, [1900, SEA]);
  await show('Near the sea, or about an ocean:', HYBRID, [SEA, 'ocean']);
} finally {
  await client.shutdown();
}
