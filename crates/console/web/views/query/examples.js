// Statements to begin with, made of the schema that is there.

import { cqlName } from '../../format.js';
import { shownColumns, targetsOf } from '../search/targets.js';
import { isLog } from '../tables/definition.js';

const isSystem = (keyspace) => keyspace === 'system' || keyspace.startsWith('system_');

export function examplesOf(schema) {
  const keyspaces = schema.keyspaces().filter((name) => !isSystem(name));
  const tables = keyspaces.flatMap((keyspace) =>
    schema
      .tables(keyspace)
      .filter((table) => !isLog(table))
      .map((table) => ({ keyspace, table })),
  );
  const examples = [];
  const [first] = tables;
  if (first) {
    const name = `${cqlName(first.keyspace)}.${cqlName(first.table)}`;
    examples.push({ title: 'Rows of a table', text: `SELECT ${columnsOf(schema, first)} FROM ${name} LIMIT 20;` });
    examples.push(...searchesOf(schema, keyspaces));
    examples.push({ title: 'How a table was made', text: `DESCRIBE TABLE ${name};` });
  } else {
    examples.push({
      title: 'A keyspace',
      text: "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};",
    });
  }
  examples.push({
    title: 'Slow statements',
    text: 'SELECT started_at, duration_us, statement FROM system_views.slow_queries LIMIT 20;',
  });
  return examples;
}

const columnsOf = (schema, { keyspace, table }) => shownColumns(schema.table(keyspace, table)).map(cqlName).join(', ');

function searchesOf(schema, keyspaces) {
  const answer = {
    keyspaces: Object.fromEntries(
      keyspaces.map((name) => [
        name,
        { tables: Object.fromEntries(schema.tables(name).map((table) => [table, schema.table(name, table)])) },
      ]),
    ),
  };
  const targets = targetsOf(answer);
  const words = targets.find(({ kind }) => kind === 'words');
  const vectors = targets.find(
    ({ kind, dimensions, localKey }) => kind === 'vector' && dimensions <= 2000 && localKey.length === 0,
  );
  const examples = [];
  if (words) {
    const text = `SELECT ${columnsOf(schema, words)}, BM25_SCORE(${cqlName(words.column)}, 'love') AS score\nFROM ${cqlName(words.keyspace)}.${cqlName(words.table)}\nORDER BY BM25(${cqlName(words.column)}, 'love') LIMIT 10;`;
    examples.push({ title: 'A search for words', text });
  }
  if (vectors) {
    const text = `SELECT ${columnsOf(schema, vectors)}\nFROM ${cqlName(vectors.keyspace)}.${cqlName(vectors.table)}\nORDER BY ${cqlName(vectors.column)} ANN OF :vector LIMIT 10;`;
    examples.push({ title: 'The nearest rows; paste a vector as its value', text });
  }
  return examples;
}
