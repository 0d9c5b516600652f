// The request that a form becomes, the same search as CQL, and as code to copy.

import { cqlLiteral, cqlName } from '../../format.js';
import { COMPARES, rowFilter, unindexed, valueOfText, whereOf } from './filter.js';
import { hasNear, vectorOf } from './form.js';
import { filterable, shownColumns } from './targets.js';
import { jsonName, keyColumns, typeOf } from '../tables/definition.js';

// The number that RRF adds to each rank.
export const RANK_CONSTANT = 60;

// The queries of a search, in the order of the answer's `explain`: {by, target, field, weight}.
// `field` is what the request has for it. Vectors come first.
export function queriesOf(form, { vectors, words }, embedded) {
  const queries = [];
  if (hasNear(form) && (vectors ?? words)) {
    const target = vectors ?? words;
    queries.push({
      by: target.kind === 'vector' ? 'vector' : 'words',
      target,
      field: nearField(form, target, embedded),
    });
  }
  if (form.words.trim() && words) {
    queries.push({ by: 'words', target: words, field: { [form.operators ? 'query' : 'text']: form.words } });
  }
  const [first, second] = queries;
  if (second) {
    first.weight = form.balance / 100;
    second.weight = (100 - form.balance) / 100;
  }
  return queries;
}

function nearField(form, target, embedded) {
  if (form.near === 'row') return { row: rowKey(form.row, target.definition) };
  if (form.near === 'sentence') return { vector: embedded };
  return { vector: vectorOf(form.vector, target.dimensions) };
}

// The primary key that a user typed, by the types of its columns.
function rowKey(typed, definition) {
  const fields = keyColumns(definition).map((name) => {
    const text = typed[name] ?? typed[jsonName(name)];
    if (text === undefined || text === null || String(text).trim() === '')
      throw new Error(`the row: ${name} of its key is missing`);
    return [
      jsonName(name),
      valueOfText(typeof text === 'object' ? JSON.stringify(text) : String(text), typeOf(definition, name), name),
    ];
  });
  return Object.fromEntries(fields);
}

// The body of POST .../search.
export function bodyOf(form, targets, queries) {
  const { definition } = queries[0].target;
  const isFused = queries.length > 1;
  const isEven = form.balance === 50 && form.rank === 'rrf';
  const body = {
    queries: queries.map((query) => queryField(query, isFused && !isEven)),
    limit: form.limit,
    explain: true,
  };
  if (isFused && form.rank === 'score') body.rank = { by: 'score' };
  const filter = rowFilter(form.filter, definition);
  if (filter) body.filter = filter;
  if (filter && needsFiltering(form, targets, queries)) body.allow_filtering = true;
  if (form.exact && queries.some(({ by }) => by === 'vector')) body.exact = true;
  return body;
}

function queryField({ target, field, weight }, hasWeight) {
  return { ...field, column: jsonName(target.column), ...(hasWeight ? { weight } : {}) };
}

// Whether a column of the filter is in no index of the search, so that rows are read one by one.
function needsFiltering(form, targets, queries) {
  return queries.some(({ target }) => unindexed(form.filter, filterable(target)).length > 0);
}

// The same search as one statement: {text, notes}, or {reason} where CQL has no form for it.
// `rowValue` is the value by which a row is searched: its vector or its text.
export function cqlOf(form, targets, queries, rowValue) {
  const { keyspace, table, definition } = queries[0].target;
  const where = whereOf(form.filter, definition);
  if (where.reason) return where;
  const calls = queries.map((query) => callOf(query, rowValue));
  const byRow = queries.some(({ field }) => field.row);
  const lines = [
    `SELECT ${shownColumns(definition).map(cqlName).join(', ')}`,
    `FROM ${cqlName(keyspace)}.${cqlName(table)}`,
    where.text && `WHERE ${where.text}`,
    `ORDER BY ${orderOf(form, queries, calls)}`,
    // The row itself is found by CQL, so that there is one row more.
    `LIMIT ${Math.min(form.limit + (byRow ? 1 : 0), 1000)}`,
    where.text && needsFiltering(form, targets, queries) && 'ALLOW FILTERING',
    optionsOf(form, queries),
  ];
  const notes = byRow ? ['By CQL the row itself is found, too: the statement requests one row more.'] : [];
  return { text: `${lines.filter(Boolean).join('\n')};`, notes };
}

function callOf({ target, field }, rowValue) {
  const column = cqlName(target.column);
  if (target.kind === 'vector') return { column, value: `[${(field.vector ?? rowValue).join(', ')}]`, name: 'ANN' };
  const words = cqlLiteral(field.query ?? field.text ?? rowValue, 'text');
  return { column, value: field.query ? words : `bm25_words(${words})`, name: 'BM25' };
}

function orderOf(form, queries, calls) {
  const call = ({ name, column, value }, part = '') => `${name}${part}(${column}, ${value})`;
  if (calls.length === 1) {
    const [{ name, column, value }] = calls;
    return name === 'ANN' ? `${column} ANN OF ${value}` : call(calls[0]);
  }
  if (form.rank === 'score')
    return calls.map((one, at) => `${queries[at].weight} * ${call(one, '_SCORE')}`).join(' + ');
  return `RRF(${calls.map((one) => call(one)).join(', ')})`;
}

function optionsOf(form, queries) {
  const options = [];
  if (form.exact && queries.some(({ by }) => by === 'vector')) options.push("ann_options = {'exact': true}");
  if (queries.length > 1 && form.rank === 'rrf' && form.balance !== 50) {
    options.push(`hybrid_options = {'weights': [${queries.map(({ weight }) => weight).join(', ')}]}`);
  }
  return options.length ? `WITH ${options.join(' AND ')}` : '';
}

// How much each query adds to the score of a row, from `explain`: {by, column, rank, score, weight,
// part, share}. The share is of the whole score.
export function partsOfScore(explained, isFused, rank) {
  const parts = explained.map((one) => {
    const byRank = one.rank ? one.weight / (RANK_CONSTANT + one.rank) : 0;
    return { ...one, part: !isFused ? (one.score ?? 0) : rank === 'score' ? one.weight * (one.score ?? 0) : byRank };
  });
  const whole = parts.reduce((sum, { part }) => sum + part, 0);
  return parts.map((one) => ({ ...one, share: whole > 0 ? one.part / whole : 0 }));
}

// A filter in words, for a summary; "" without conditions.
export function wordsOfFilter(filter, isInner = false) {
  const parts = filter.parts
    .map((part) => (part.parts ? wordsOfFilter(part, true) : wordsOfCondition(part)))
    .filter(Boolean);
  const all = parts.join(filter.op === 'or' ? ' or ' : ' and ');
  if (filter.not && all) return `not (${all})`;
  return isInner && parts.length > 1 ? `(${all})` : all;
}

function wordsOfCondition({ column, compare, text, not }) {
  if (text.trim() === '') return '';
  const value = compare === 'in' ? `(${text})` : text;
  return `${not ? 'not ' : ''}${column} ${COMPARES[compare].label} ${value}`;
}
