// What the table knows of the points: their rows, and the values of a column of all of them.
import { cql } from '../../api.js';
import { cqlLiteral, cqlName } from '../../format.js';
import { isVector, keyColumns, orderedColumns, typeOf, valueOf } from '../tables/definition.js';
import { textOf } from '../tables/values.js';
import { toJson } from '../../json.js';

const KEYS_A_READ = 500;
const READS_AT_ONCE = 4;
const SCAN = { page: 5000, rows: 200000 };
// As many keys a statement names that is handed over to the query view.
const KEYS_IN_CQL = 1000;
const STATEMENTS = 50;

const named = ({ keyspace, table }) => `${cqlName(keyspace)}.${cqlName(table)}`;

// A key of one column can be named in a list.
const singleKey = ({ definition }) => (keyColumns(definition).length === 1 ? keyColumns(definition)[0] : null);

const textColumns = ({ definition }) => orderedColumns(definition).filter(({ type }) => !isVector(type)).map(({ name }) => name);

// The value of a key column of a point.
export const keyValue = (map, name, point) => map.primary_keys[name]?.[point] ?? null;

export function keyTextOf(map, point) {
  return Object.entries(map.primary_keys).map(([name, values]) => `${name} ${textOf(values[point])}`).join(', ');
}

// The names of the columns by which points can be coloured: those of the map, and those of the table.
export function colourColumns(map, from) {
  const names = [...Object.keys(map.column_values), ...(from ? textColumns(from) : Object.keys(map.primary_keys))];
  return [...new Set(names)];
}

// The values of a column for all points: {values, type}. Those that the map doesn't have are read from the table.
export async function columnValues(map, from, name, signal) {
  const type = from?.definition.columns.find((column) => column.name === name)?.type;
  const there = map.column_values[name] ?? map.primary_keys[name];
  if (there) return { values: there, type };
  const rows = await (singleKey(from) ? readByKeys(map, from, name, signal) : scan(from, name, signal));
  const keys = keyColumns(from.definition);
  const byKey = new Map(rows.map((row) => [toJson(keys.map((key) => valueOf(row, key))), valueOf(row, name)]));
  const values = Array.from({ length: map.x.length }, (_, point) => byKey.get(toJson(keys.map((key) => keyValue(map, key, point)))) ?? null);
  return { values, type };
}

async function readByKeys(map, from, name, signal) {
  const key = singleKey(from);
  const all = map.primary_keys[key];
  const text = `SELECT ${cqlName(key)}, ${cqlName(name)} FROM ${named(from)} WHERE ${cqlName(key)} IN ?`;
  const pieces = [];
  for (let at = 0; at < all.length; at += KEYS_A_READ) pieces.push(all.slice(at, at + KEYS_A_READ));
  const rows = [];
  const read = async () => {
    for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
      rows.push(...(await cql(text, { parameters: [piece], pageSize: KEYS_A_READ, signal })).rows);
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, read));
  return rows;
}

async function scan(from, name, signal) {
  const columns = [...keyColumns(from.definition), name].map(cqlName).join(', ');
  const rows = [];
  let pageState;
  do {
    const page = await cql(`SELECT ${columns} FROM ${named(from)}`, { pageSize: SCAN.page, pageState, signal });
    rows.push(...page.rows);
    pageState = page.pageState;
  } while (pageState && rows.length < SCAN.rows);
  return rows;
}

// The rows of some points, without vectors, by point. One statement reads those of a key of one column.
export async function rowsOf(map, from, points, signal) {
  const columns = textColumns(from).map(cqlName).join(', ');
  const keys = keyColumns(from.definition);
  const byKey = new Map();
  const take = ({ rows }) => rows.forEach((row) => byKey.set(toJson(keys.map((key) => valueOf(row, key))), row));
  const key = singleKey(from);
  if (key) {
    const parameters = [points.map((point) => keyValue(map, key, point))];
    take(await cql(`SELECT ${columns} FROM ${named(from)} WHERE ${cqlName(key)} IN ?`, { parameters, pageSize: points.length, signal }));
  } else {
    const where = keys.map((name) => `${cqlName(name)} = ?`).join(' AND ');
    for (const point of points.slice(0, STATEMENTS)) {
      const parameters = keys.map((name) => keyValue(map, name, point));
      take(await cql(`SELECT ${columns} FROM ${named(from)} WHERE ${where}`, { parameters, signal }));
    }
  }
  return new Map(points.map((point) => [point, byKey.get(toJson(keys.map((name) => keyValue(map, name, point))))]));
}

// The statements that read the rows of some points: {text, points}, with how many of the points they read.
export function statementOf(map, from, points) {
  const columns = textColumns(from).map(cqlName).join(', ');
  const keys = keyColumns(from.definition);
  const literal = (name, point) => cqlLiteral(keyValue(map, name, point), typeOf(from.definition, name));
  if (keys.length === 1) {
    const some = points.slice(0, KEYS_IN_CQL);
    const list = some.map((point) => literal(keys[0], point)).join(', ');
    return { text: `SELECT ${columns}\nFROM ${named(from)}\nWHERE ${cqlName(keys[0])} IN (${list});`, points: some.length };
  }
  const some = points.slice(0, STATEMENTS);
  const one = (point) => `SELECT ${columns} FROM ${named(from)} WHERE ${keys.map((name) => `${cqlName(name)} = ${literal(name, point)}`).join(' AND ')};`;
  return { text: some.map(one).join('\n'), points: some.length };
}
