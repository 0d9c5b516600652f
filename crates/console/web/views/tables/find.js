// Finds the table of an index in the schema.
import { get } from '../../api.js';
import { indexOf } from './definition.js';

// {keyspace, table, definition, index}; null where there are no tables, or none has the index. The
// schema of a keyspace may be long: once is enough.
export async function tableOfIndex(features, keyspace, name, signal) {
  if (!features.tables) return null;
  const { keyspaces } = await get(`/api/v1/schema?${new URLSearchParams({ keyspace })}`, { signal });
  for (const [table, definition] of Object.entries(keyspaces[keyspace]?.tables ?? {})) {
    const found = definition.indexes.find((one) => one.name === name);
    if (found) return { keyspace, table, definition, index: indexOf(definition, found) };
  }
  return null;
}
