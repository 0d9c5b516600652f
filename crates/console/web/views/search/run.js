// Carries out a search: by rows where the server has tables, by the routes of an index elsewhere.

import { ApiFailure, cql, path, post } from '../../api.js';
import { cqlName } from '../../format.js';
import { serviceFilter } from './filter.js';
import { hasNear, vectorOf } from './form.js';
import { bodyOf, queriesOf } from './request.js';
import { jsonName, keyColumns, valueOf } from '../tables/definition.js';

// The characters around words of a highlight, which no text has by chance.
export const MARKS = { pre: '\u0001', post: '\u0002' };
const EXCERPT = 260;

// The embedding of a sentence.
async function embed(sentence, signal) {
  const { vectors } = await post('/api/v1/embed', { texts: [sentence] }, { signal });
  return vectors[0];
}

// Searches rows: {rows, scores, explain, highlights, queries, body, route, milliseconds}, and
// `unmarked`: why the words that were found are not marked, if they should be.
export async function searchRows(form, targets, { signal }) {
  const embedded = form.near === 'sentence' && hasNear(form) ? await embed(form.sentence, signal) : null;
  const { queries, body } = checked(() => {
    const made = queriesOf(form, targets, embedded);
    return { queries: made, body: bodyOf(form, targets, made) };
  });
  const { keyspace, table } = queries[0].target;
  const route = path('/api/v1/tables', keyspace, table, 'search');
  const began = performance.now();
  const answer = await post(route, body, { signal });
  const milliseconds = performance.now() - began;
  const marks = await highlightsOf(answer.rows, queries, signal);
  return { ...answer, ...marks, queries, body, route, milliseconds };
}

// What a function makes of the form. A value that can't be sent is a failure like one of the server.
function checked(make) {
  try {
    return make();
  } catch (error) {
    throw new ApiFailure('wrong', error.message, { hint: 'Correct it in the form, and search again.' });
  }
}

// Excerpts of the rows with the words that were found; null where there is none. A search whose
// excerpts fail is still a search: {highlights, unmarked}.
async function highlightsOf(rows, queries, signal) {
  const query = queries.find(({ by, field }) => by === 'words' && (field.text ?? field.query));
  const none = rows.map(() => null);
  if (!query || rows.length === 0) return { highlights: none };
  const { keyspace, index, column } = query.target;
  const body = {
    ...(query.field.query ? { query: query.field.query } : { words: query.field.text }),
    documents: rows.map((row) => String(valueOf(row, column) ?? '')),
    options: { max_num_chars: EXCERPT, pre_tag: MARKS.pre, post_tag: MARKS.post },
  };
  try {
    const { highlights } = await post(path('/api/v1/indexes', keyspace, index, 'highlight'), body, { signal });
    return { highlights };
  } catch (failure) {
    if (failure.name === 'AbortError') throw failure;
    return { highlights: none, unmarked: failure.message };
  }
}

// Searches one index of a service without tables: {keys, scores, body, route, milliseconds}.
export async function searchIndex(form, target, { signal }) {
  const { keyspace, index, kind, dimensions } = target;
  const body = { limit: form.limit };
  if (kind === 'words') body[form.operators ? 'query' : 'words'] = form.words;
  else if (form.near === 'sentence') body.vector = await embed(form.sentence, signal);
  else body.vector = checked(() => vectorOf(form.vector, dimensions));
  if (form.exact && kind === 'vector') body.exact = true;
  const filter = checked(() => serviceFilter(form.filter));
  if (filter) body.filter = filter;
  const route = path('/api/v1/indexes', keyspace, index, kind === 'words' ? 'bm25' : 'ann');
  const began = performance.now();
  const answer = await post(route, body, { signal });
  const milliseconds = performance.now() - began;
  const columns = Object.keys(answer.primary_keys);
  const scores = answer.similarity_scores ?? answer.scores;
  const keys = scores.map((_, at) => Object.fromEntries(columns.map((name) => [name, answer.primary_keys[name][at]])));
  return { keys, scores, body, route, milliseconds };
}

// The value by which a row is searched: its vector or its text.
export async function valueOfRow({ target, field }, { signal }) {
  const { keyspace, table, column, definition } = target;
  const key = keyColumns(definition);
  const where = key.map((name) => `${cqlName(name)} = ?`).join(' AND ');
  const statement = `SELECT ${cqlName(column)} FROM ${cqlName(keyspace)}.${cqlName(table)} WHERE ${where}`;
  const { rows } = await cql(statement, { parameters: key.map((name) => field.row[jsonName(name)]), signal });
  return rows[0] ? valueOf(rows[0], column) : null;
}
