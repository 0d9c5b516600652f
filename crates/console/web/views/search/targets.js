// What can be searched: the indexes on vectors and on texts, with the table and the columns of each.

import { kindOf } from '../indexes/state.js';
import { indexOf, isVector, keyColumns, orderedColumns, typeOf } from '../tables/definition.js';
import { isText } from '../tables/values.js';

// A column of a table whose indexes serve searches:
// {keyspace, table, definition, index, column, kind: "vector"|"words", dimensions, filters, localKey}
export function targetsOf(schema) {
  const targets = [];
  for (const [keyspace, { tables }] of Object.entries(schema.keyspaces)) {
    for (const [table, definition] of Object.entries(tables)) {
      for (const made of definition.indexes) {
        const { name: index, kind, column, dimensions, filters, localKey } = indexOf(definition, made);
        const isSearched = kind === 'words' || (kind === 'vector' && dimensions !== null);
        if (isSearched) targets.push({ keyspace, table, definition, index, column, kind, dimensions, filters, localKey });
      }
    }
  }
  return targets.sort((one, other) => names.compare(nameOf(one), nameOf(other)));
}

const names = new Intl.Collator('en');

// The name by which an index is chosen.
export const nameOf = ({ keyspace, index }) => `${keyspace}.${index}`;

// What an index service without tables knows of its indexes, from GET /api/v1/indexes.
export function serviceTargets(indexes) {
  return indexes.map((one) => ({
    keyspace: one.keyspace,
    index: one.index,
    table: null,
    definition: null,
    column: null,
    kind: kindOf(one),
    dimensions: one.options.dimensions ?? null,
    filters: [],
    localKey: [],
  }));
}

// The other targets of a table that may join a search: the first one on each column of the kind.
export function partnersOf(target, targets, kind) {
  const same = targets.filter(
    (one) => one.kind === kind && one.keyspace === target.keyspace && one.table === target.table,
  );
  const byColumn = new Map();
  for (const one of same)
    if (!byColumn.has(one.column) || byColumn.get(one.column).localKey.length) byColumn.set(one.column, one);
  return [...byColumn.values()];
}

// The names of the columns in the order in which SELECT * gives them, without vectors.
export function shownColumns(definition) {
  const shown = orderedColumns(definition).filter(({ type }) => !isVector(type));
  return shown.map(({ name }) => name);
}

// The columns whose values the index of a target, or another index, has, so that they filter
// without ALLOW FILTERING.
export function filterable({ definition, filters }) {
  const others = definition.indexes.map((made) => indexOf(definition, made)).filter(({ kind }) => kind === 'secondary');
  const indexed = others.map(({ column }) => column).filter((column) => !isVector(typeOf(definition, column)));
  return new Set([...keyColumns(definition), ...filters, ...indexed]);
}

const TITLES = ['title', 'name', 'label', 'headline', 'subject'];

// The column that names a row for a reader: one called title or the like, else a short text.
export function titleColumn(definition, searched) {
  const columns = shownColumns(definition);
  const named = TITLES.find((name) => columns.includes(name));
  if (named) return named;
  const key = keyColumns(definition);
  const texts = columns.filter((name) => isText(typeOf(definition, name)));
  return texts.find((name) => name !== searched && !key.includes(name)) ?? null;
}
