// The filter of a search as a tree: {op: "and"|"or", not, parts} of groups and of conditions
// {column, compare, text, not}. It becomes the JSON of a search of rows, the restrictions of an
// index service, or the WHERE of CQL.

import { cqlLiteral, cqlName } from '../../format.js';
import { parseJson, toJson } from '../../json.js';
import { jsonName, typeOf } from '../tables/definition.js';
import { isNumber } from '../tables/values.js';

export const COMPARES = {
  eq: { label: '=', cql: '=', service: '==' },
  ne: { label: '≠', cql: null, service: '!=' },
  lt: { label: '<', cql: '<', service: '<' },
  lte: { label: '≤', cql: '<=', service: '<=' },
  gt: { label: '>', cql: '>', service: '>' },
  gte: { label: '≥', cql: '>=', service: '>=' },
  in: { label: 'in', cql: 'IN', service: 'IN' },
  contains: { label: 'contains', cql: 'CONTAINS', service: 'CONTAINS' },
  contains_key: { label: 'has key', cql: 'CONTAINS KEY', service: 'CONTAINS KEY' },
  match: { label: 'has words', cql: null, service: 'BM25' },
};

// The comparisons that go with a type. `hasWords` says that the column has a full-text index.
export function comparesFor(type, hasWords = false) {
  const bare = unfrozen(type ?? 'text');
  if (/^map</.test(bare)) return ['contains', 'contains_key'];
  if (/^(list|set)</.test(bare)) return ['contains'];
  if (bare === 'boolean') return ['eq', 'ne'];
  const all = ['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in'];
  return hasWords ? ['match', ...all] : all;
}

const unfrozen = (type) => /^frozen<(.*)>$/.exec(type)?.[1] ?? type;

export const emptyFilter = () => ({ op: 'and', not: false, parts: [] });

// The conditions of a filter, wherever they are in it.
function conditionsOf(filter) {
  return filter.parts.flatMap((part) => (part.parts ? conditionsOf(part) : [part]));
}

// Conditions that are not written to their end don't count.
const isWritten = (condition) => condition.column && condition.text.trim() !== '';

const written = (filter) => filter.parts.filter((part) => (part.parts ? written(part).length > 0 : isWritten(part)));

// The type of the value of a condition: of an element, for a collection.
function valueType(type, compare) {
  const bare = unfrozen(type ?? 'text');
  const inner = /^(?:list|set)<(.*)>$/.exec(bare)?.[1];
  if (inner) return inner;
  const map = /^map<([^,<]+(?:<.*>)?), (.*)>$/.exec(bare);
  if (!map) return bare;
  return compare === 'contains_key' ? map[1] : map[2];
}

// The value of a condition. Throws an Error with the reason if the text is no value of the type.
export function valueOfText(text, type, column) {
  const trimmed = text.trim();
  if (type === 'boolean') return trimmed.toLowerCase() === 'true';
  if (type.includes('<')) return fromJson(trimmed, column);
  if (!isNumber(type)) return text;
  const number = Number(trimmed);
  if (trimmed === '' || Number.isNaN(number)) throw new Error(`${column}: “${trimmed}” is no number`);
  // A whole number beyond 2^53 is sent as text, which the server reads exactly.
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? trimmed : number;
}

// A value of a type that has parts, which is written as JSON. Its whole numbers beyond 2^53 are
// texts, as above.
function fromJson(text, column) {
  try {
    return JSON.parse(toJson(parseJson(text)));
  } catch {
    throw new Error(`${column}: write the value as JSON`);
  }
}

function valuesOf({ column, compare, text }, definition) {
  const type = valueType(typeOf(definition, column), compare);
  if (compare !== 'in') return valueOfText(text, definition ? type : guessed(text), column);
  const parts = text.split(',').map((part) => part.trim());
  return parts.filter(Boolean).map((part) => valueOfText(part, definition ? type : guessed(part), column));
}

// An index service does not name the types of its columns: what looks like a number is one, unless
// it is in quotes.
const guessed = (text) =>
  /^\s*-?\d+(\.\d+)?(e[+-]?\d+)?\s*$/i.test(text) ? 'double' : /^(true|false)$/.test(text.trim()) ? 'boolean' : 'text';

// The filter of POST .../search, or null without conditions.
export function rowFilter(filter, definition) {
  const parts = written(filter).map((part) =>
    part.parts ? rowFilter(part, definition) : rowCondition(part, definition),
  );
  if (parts.length === 0) return null;
  const all = parts.length === 1 ? parts[0] : { [filter.op]: parts };
  return filter.not ? { not: all } : all;
}

function rowCondition(condition, definition) {
  const { column, compare } = condition;
  const value = valuesOf(condition, definition);
  const test = { [jsonName(column)]: compare === 'eq' ? value : { [compare]: value } };
  return condition.not ? { not: test } : test;
}

// The filter of the routes of an index, or null without conditions.
export function serviceFilter(filter) {
  const part = servicePart(filter);
  if (!part) return null;
  const isRestriction = 'type' in part;
  return { ...(isRestriction ? { restrictions: [part] } : part), allow_filtering: true };
}

function servicePart(filter) {
  const parts = written(filter).map((part) => (part.parts ? servicePart(part) : serviceCondition(part)));
  if (parts.length === 0) return null;
  const all = parts.length === 1 ? parts[0] : { [filter.op]: parts };
  return filter.not ? { not: all } : all;
}

function serviceCondition(condition) {
  const { column, compare, not } = condition;
  const test = { type: COMPARES[compare].service, lhs: column, rhs: unquotedValue(valuesOf(condition, null)) };
  return not ? { not: test } : test;
}

const unquotedValue = (value) => (typeof value === 'string' ? value.replace(/^(["'])(.*)\1$/s, '$2') : value);

// The relations of WHERE, joined by AND: {text}, or {reason} where CQL has no form for the filter.
export function whereOf(filter, definition) {
  const relations = [];
  const reason = relationsOf(filter, definition, relations);
  if (reason) return { reason };
  const clash = clashOf(relations);
  if (clash) return { reason: `CQL takes no two conditions of this kind on ${clash}` };
  return { text: relations.map((relation) => relation.text).join(' AND ') };
}

function relationsOf(filter, definition, relations) {
  const parts = written(filter);
  if (filter.not && parts.length > 0) return 'CQL has no NOT';
  if (filter.op === 'or' && parts.length > 1) return 'CQL has no OR';
  for (const part of parts) {
    const reason = part.parts ? relationsOf(part, definition, relations) : relationOf(part, definition, relations);
    if (reason) return reason;
  }
  return null;
}

function relationOf(condition, definition, relations) {
  const { column, compare, text, not } = condition;
  if (not) return 'CQL has no NOT';
  if (compare === 'ne') return 'CQL has no ≠';
  const name = cqlName(column);
  if (compare === 'match') {
    relations.push({ column, compare, text: `BM25(${name}, ${cqlLiteral(text, 'text')}) > 0` });
    return null;
  }
  const type = valueType(typeOf(definition, column), compare);
  const value = valuesOf(condition, definition);
  const literal =
    compare === 'in' ? `(${value.map((one) => cqlLiteral(one, type)).join(', ')})` : cqlLiteral(value, type);
  relations.push({ column, compare, text: `${name} ${COMPARES[compare].cql} ${literal}` });
  return null;
}

// The column that has conditions which WHERE does not take together; null if there is none.
function clashOf(relations) {
  const kinds = { eq: 'equal', in: 'equal', lt: 'upper', lte: 'upper', gt: 'lower', gte: 'lower' };
  const seen = new Map();
  for (const { column, compare } of relations) {
    const kind = kinds[compare] ?? 'other';
    const before = seen.get(column) ?? [];
    const isRange = (one) => one === 'upper' || one === 'lower';
    const goes =
      before.every((one) => one !== kind || kind === 'other') &&
      before.every((one) => one === kind || (isRange(one) && isRange(kind)));
    if (!goes) return column;
    seen.set(column, [...before, kind]);
  }
  return null;
}

// The columns of conditions that no index has, so that rows are read one by one.
export function unindexed(filter, available) {
  const columns = conditionsOf(filter)
    .filter(isWritten)
    .filter(({ compare }) => compare !== 'match');
  return [...new Set(columns.map(({ column }) => column).filter((column) => !available.has(column)))];
}
