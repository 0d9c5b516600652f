// The view Tables: the list of tables, and one table with its rows, its schema and its indexes.
import { html } from '../ui.js';
import { TableList } from './tables/list.js';
import { OneTable } from './tables/one.js';

function View({ parts, query }) {
  const [keyspace, table, tab] = parts;
  if (table === undefined) return html`<${TableList} />`;
  return html`<${OneTable} key=${`${keyspace}.${table}`} keyspace=${keyspace} table=${table} tab=${tab ?? 'rows'} query=${query} />`;
}

export default {
  id: 'tables',
  title: 'Tables',
  icon: 'tables',
  group: 'Data',
  needs: (session) => session.features.tables,
  View,
};
