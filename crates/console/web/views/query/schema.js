// The schema as completion and search need it. Keyspaces of the system are read when they are named.

import { cql, get } from '../../api.js';

// What /api/v1/schema answers, with lookups.
export class SchemaCatalog {
  #keyspaces;

  constructor(answer = { keyspaces: {} }) {
    this.#keyspaces = answer.keyspaces;
  }

  keyspaces() {
    return Object.keys(this.#keyspaces).sort();
  }

  tables(keyspace) {
    return Object.keys(this.#keyspaces[keyspace]?.tables ?? {}).sort();
  }

  // A table, or null.
  table(keyspace, name) {
    const tables = this.#keyspaces[keyspace]?.tables ?? {};
    return Object.hasOwn(tables, name) ? tables[name] : null;
  }
}

// The keyspaces of the system whose tables the schema has, and that are worth completing.
const SYSTEM = ['system', 'system_schema', 'system_traces'];

const VIRTUAL = 'SELECT keyspace_name, table_name, column_name, type, kind FROM system_virtual_schema.columns';

// Instead of a part of the system that a role may not see, or that this server does not have.
const insteadOf = (nothing) => (failure) => {
  if (['refused', 'missing', 'wrong'].includes(failure.kind)) return nothing;
  throw failure;
};

// Reads the schema. What a role may not see of the system is left out, without an error.
export async function loadSchema({ signal } = {}) {
  const [own, virtual, ...system] = await Promise.all([
    get('/api/v1/schema', { signal }),
    cql(VIRTUAL, { pageSize: 5000, signal }).catch(insteadOf({ rows: [] })),
    ...SYSTEM.map((name) => get(`/api/v1/schema?keyspace=${name}`, { signal }).catch(insteadOf({ keyspaces: {} }))),
  ]);
  const keyspaces = Object.assign({}, own.keyspaces, ...system.map((answer) => answer.keyspaces));
  for (const { keyspace_name: keyspace, table_name: table, column_name: name, type, kind } of virtual.rows) {
    const { tables } = (keyspaces[keyspace] ??= { tables: {} });
    (tables[table] ??= { columns: [], indexes: [], key: { partition: [], clustering: [] } }).columns.push({
      name,
      type,
      kind,
    });
  }
  return new SchemaCatalog({ keyspaces });
}
