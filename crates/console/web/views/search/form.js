// The form of a search: what a user has chosen, as a value that the address of the page holds, so
// that a search can be linked to and gone back to.

import { COMPARES, emptyFilter } from './filter.js';

// near: "nothing", "row", "vector" or "sentence". balance: the share of vectors in the order, in
// per cent. rank: "rrf" or "score".
const emptyForm = () => ({
  words: '',
  operators: false,
  near: 'nothing',
  row: {},
  vector: '',
  sentence: '',
  balance: 50,
  rank: 'rrf',
  limit: 10,
  exact: false,
  filter: emptyFilter(),
});

const TEXTS = ['words', 'vector', 'sentence'];

// The form that the query of an address holds. What can't be read is as if it were not there.
export function formOf(query) {
  const form = emptyForm();
  for (const name of TEXTS) form[name] = query.get(name) ?? '';
  form.operators = query.get('operators') === 'true';
  form.exact = query.get('exact') === 'true';
  form.row = readJson(query.get('row'), isObject) ?? {};
  form.balance = readNumber(query.get('balance'), 0, 100) ?? form.balance;
  form.limit = readNumber(query.get('limit'), 1, 1000) ?? form.limit;
  if (query.get('rank') === 'score') form.rank = 'score';
  form.filter = readJson(query.get('filter'), isFilter) ?? form.filter;
  const given = { row: Object.keys(form.row).length > 0, vector: form.vector !== '', sentence: form.sentence !== '' };
  form.near = Object.keys(given).find((name) => given[name]) ?? 'nothing';
  return form;
}

// The query of an address that holds a form: only what differs from an empty one.
export function queryOf(form) {
  const query = new URLSearchParams();
  const empty = emptyForm();
  if (form.words.trim()) query.set('words', form.words);
  if (form.near === 'row') query.set('row', JSON.stringify(form.row, asText));
  if (form.near === 'vector') query.set('vector', form.vector);
  if (form.near === 'sentence') query.set('sentence', form.sentence);
  for (const name of ['operators', 'exact', 'balance', 'rank', 'limit']) {
    if (form[name] !== empty[name]) query.set(name, String(form[name]));
  }
  if (form.filter.parts.length > 0) query.set('filter', JSON.stringify(form.filter));
  return query;
}

// A number of more digits than JavaScript reads back goes as text.
const asText = (_, value) => (typeof value === 'bigint' ? String(value) : value);

// Whether there is something to search for.
export function isAnswerable(form) {
  return form.words.trim() !== '' || hasNear(form);
}

export function hasNear(form) {
  if (form.near === 'row') return Object.values(form.row).some((value) => String(value ?? '').trim() !== '');
  if (form.near === 'vector') return form.vector.trim() !== '';
  return form.near === 'sentence' && form.sentence.trim() !== '';
}

// The numbers of a vector as it is typed or pasted. Throws an Error with the reason.
export function vectorOf(text, dimensions) {
  const parts = text
    .trim()
    .replace(/^\[|\]$/g, '')
    .split(/[\s,;]+/)
    .filter(Boolean);
  const numbers = parts.map(Number);
  const wrong = numbers.findIndex((number) => !Number.isFinite(number));
  if (wrong >= 0) throw new Error(`the vector: “${parts[wrong]}” is no number`);
  if (dimensions && numbers.length !== dimensions) {
    throw new Error(`the vector has ${numbers.length} numbers, and the index has ${dimensions} dimensions`);
  }
  return numbers;
}

function readNumber(text, least, most) {
  const number = Number(text);
  return text !== null && Number.isInteger(number) && number >= least && number <= most ? number : null;
}

function readJson(text, isRight) {
  try {
    const value = JSON.parse(text ?? '');
    return isRight(value) ? value : null;
  } catch {
    return null;
  }
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function isFilter(value) {
  if (!isObject(value) || !Array.isArray(value.parts) || !['and', 'or'].includes(value.op)) return false;
  return value.parts.every(
    (part) =>
      isFilter(part) ||
      (isObject(part) &&
        typeof part.column === 'string' &&
        typeof part.text === 'string' &&
        Object.hasOwn(COMPARES, part.compare) &&
        !part.parts),
  );
}
