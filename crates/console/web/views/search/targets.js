// What can be searched: the indexes on vectors and on texts, with the table and the columns of each.

// A column of a table whose indexes serve searches:
// {keyspace, table, definition, index, column, kind: "vector"|"words", dimensions, filters, localKey}
export function targetsOf(schema) {
  const targets = [];
  for (const [keyspace, { tables }] of Object.entries(schema.keyspaces)) {
    for (const [table, definition] of Object.entries(tables)) {
      for (const index of definition.indexes) {
        const kind = kindOf(index.options?.class_name);
        if (kind) targets.push(targetOf(keyspace, table, definition, index, kind));
      }
    }
  }
  return targets.sort((one, other) => nameOf(one).localeCompare(nameOf(other)));
}

// The name by which an index is chosen.
export const nameOf = ({ keyspace, index }) => `${keyspace}.${index}`;

function kindOf(className) {
  if (!className) return null;
  if (/fulltext_index$/i.test(className)) return 'words';
  return /(vector_index|StorageAttachedIndex|sai)$/i.test(className) ? 'vector' : null;
}

function targetOf(keyspace, table, definition, index, kind) {
  const { column, localKey, filters } = readTarget(index.options.target);
  const type = definition.columns.find(({ name }) => name === column)?.type ?? '';
  const dimensions = Number(/^vector<float, (\d+)>$/.exec(type)?.[1]) || null;
  return { keyspace, table, definition, index: index.name, column, kind, dimensions, filters, localKey };
}

// The option `target`: the name of the column, or JSON with further columns.
function readTarget(target) {
  try {
    const { tc: column, pk: localKey = [], fc: filters = [] } = JSON.parse(target);
    if (column) return { column, localKey, filters };
  } catch {
    // It is a name.
  }
  return { column: target, localKey: [], filters: [] };
}

// Those among the targets that search a column of vectors. An index without a class of its own may
// be on any column.
export const isSearchable = ({ kind, dimensions }) => kind === 'words' || dimensions !== null;

// What an index service without tables knows of its indexes, from GET /api/v1/indexes.
export function serviceTargets(indexes) {
  return indexes.map(({ keyspace, index, options }) => ({
    keyspace,
    index,
    table: null,
    definition: null,
    column: null,
    kind: options.type === 'fulltext' ? 'words' : 'vector',
    dimensions: options.dimensions ?? null,
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

// The columns of the primary key, in order.
export const keyOf = ({ key }) => [...key.partition, ...key.clustering];

// The columns in the order in which SELECT * gives them: the key, then static and regular ones by
// name, without vectors.
export function shownColumns(definition) {
  const key = keyOf(definition);
  const others = definition.columns.filter(({ name, type }) => !key.includes(name) && !/^vector</.test(type));
  const order = { static: 0, regular: 1 };
  others.sort((one, other) => order[one.kind] - order[other.kind] || (one.name < other.name ? -1 : 1));
  return [...key, ...others.map(({ name }) => name)];
}

export const typeOf = (definition, column) => definition?.columns.find(({ name }) => name === column)?.type ?? null;

// The name that a column has in a row as JSON: one with capitals is in quotes.
export const jsonName = (name) => (/\p{Lu}/u.test(name) ? `"${name}"` : name);

export const valueOf = (row, name) => row[jsonName(name)] ?? null;

// The primary key of a row, as the field `row` of a search has it.
export function keyOfRow(definition, row) {
  return Object.fromEntries(keyOf(definition).map((name) => [jsonName(name), valueOf(row, name)]));
}

// The columns whose values the index of a target, or another index, has, so that they filter
// without ALLOW FILTERING.
export function filterable({ definition, filters }) {
  const others = definition.indexes.filter(({ options }) => kindOf(options?.class_name) !== 'words');
  const indexed = others
    .map(({ options }) => readSecondary(options?.target))
    .filter((column) => !/^vector</.test(typeOf(definition, column) ?? ''));
  return new Set([...keyOf(definition), ...filters, ...indexed]);
}

function readSecondary(target = '') {
  try {
    return JSON.parse(target).ck?.[0] ?? target;
  } catch {
    return /^(?:keys|values|entries|full)\((.*)\)$/i.exec(target)?.[1] ?? target;
  }
}

const TITLES = ['title', 'name', 'label', 'headline', 'subject'];

// The column that names a row for a reader: one called title or the like, else a short text.
export function titleColumn(definition, searched) {
  const columns = shownColumns(definition);
  const named = TITLES.find((name) => columns.includes(name));
  if (named) return named;
  const key = keyOf(definition);
  const texts = columns.filter((name) => /^(text|varchar|ascii)$/.test(typeOf(definition, name)));
  return texts.find((name) => name !== searched && !key.includes(name)) ?? null;
}
