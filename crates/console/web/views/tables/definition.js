// What the schema says of a table: its key, its columns in the order of SELECT *, and the targets of its indexes.

// The columns of the primary key, in order.
export const keyColumns = ({ key }) => [...key.partition, ...key.clustering];

export const typeOf = (definition, column) => definition?.columns.find(({ name }) => name === column)?.type ?? 'text';

export const isVector = (type) => /^vector</.test(type);

// Logs of changes belong to the tables of which they are.
export const isLog = (table) => table.endsWith('_scylla_cdc_log');

// The columns in the order in which SELECT * gives them: the key, then static and regular ones by name.
export function orderedColumns(definition) {
  const key = keyColumns(definition);
  const kinds = { static: 0, regular: 1 };
  const others = definition.columns.filter(({ name }) => !key.includes(name));
  others.sort((one, other) => kinds[one.kind] - kinds[other.kind] || (one.name < other.name ? -1 : 1));
  return [...key.map((name) => definition.columns.find((column) => column.name === name)), ...others];
}

// The name that a column has in a row as JSON: one with capitals is in quotes.
export const jsonName = (name) => (/\p{Lu}/u.test(name) ? `"${name}"` : name);

export const valueOf = (row, name) => row[jsonName(name)] ?? null;

// The primary key of a row, by the names that rows have as JSON.
export function keyOfRow(definition, row) {
  return Object.fromEntries(keyColumns(definition).map((name) => [jsonName(name), valueOf(row, name)]));
}

const WORDS = /fulltext_index$/i;
const VECTORS = /(vector_index|StorageAttachedIndex|sai)$/i;

// An index of a table as the views show it:
// {name, kind: 'vector'|'words'|'secondary', column, dimensions, localKey, filters, options}.
// `dimensions` is null for a column without vectors.
export function indexOf(definition, index) {
  const { class_name: className = '', target = '', index_version: version, ...options } = index.options ?? {};
  const parsed = readTarget(target);
  const type = typeOf(definition, parsed.column);
  const dimensions = Number(/^vector<float, (\d+)>$/.exec(type)?.[1]) || null;
  const kind = WORDS.test(className) ? 'words' : isVector(type) && VECTORS.test(className) ? 'vector' : 'secondary';
  return { name: index.name, kind, dimensions, ...parsed, options, className, version };
}

// The option `target`: a name, or JSON with further columns.
function readTarget(target) {
  try {
    const { tc, ck, pk = [], fc = [] } = JSON.parse(target);
    const column = tc ?? ck?.[0];
    if (column) return { column, localKey: pk, filters: fc };
  } catch {
    // It is a name.
  }
  return { column: /^(?:keys|values|entries|full)\((.*)\)$/i.exec(target)?.[1] ?? target, localKey: [], filters: [] };
}

export const KINDS = { vector: 'Vectors', words: 'Words', secondary: 'Values' };
