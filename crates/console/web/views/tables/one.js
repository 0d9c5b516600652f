import { del, get, path, useData } from '../../api.js';
import { bytes, count, cqlName } from '../../format.js';
import { Async, Button, Card, Confirm, Failure, Page, Stat, Tabs, html, navigate, toast, useState } from '../../ui.js';
import { queryHref, tableHref } from '../links.js';
import { isVector, orderedColumns } from './definition.js';
import { Rows } from './rows.js';
import { IndexesOfTable, Schema } from './schema.js';

const TABS = [
  { id: 'rows', label: 'Rows' },
  { id: 'schema', label: 'Schema' },
  { id: 'indexes', label: 'Indexes' },
];

// A statement that reads some rows without their vectors, which are long.
function someRows(keyspace, table, definition) {
  const columns = orderedColumns(definition).filter(({ type }) => !isVector(type));
  return `SELECT ${columns.map(({ name }) => cqlName(name)).join(', ')} FROM ${cqlName(keyspace)}.${cqlName(table)} LIMIT 20;`;
}

function Drop({ keyspace, table }) {
  const [open, setOpen] = useState(false);
  const drop = async () => {
    await del(path('/api/v1/tables', keyspace, table));
    toast(`${keyspace}.${table} is dropped.`, 'good');
    navigate('#/tables');
  };
  return html`<${Button} kind="danger" onClick=${() => setOpen(true)}>Drop<//>
    <${Confirm}
      title="Drop this table?"
      open=${open}
      onClose=${() => setOpen(false)}
      onConfirm=${drop}
      confirmLabel="Drop the table"
      typed=${`${keyspace}.${table}`}
      danger
    >
      <p>The rows of <code>${keyspace}.${table}</code> and its indexes go with it. Only a backup brings them back.</p>
    <//>`;
}

function Sizes({ keyspace, table }) {
  const sizes = useData((signal) => get('/api/v1/tables', { signal }), [keyspace, table]);
  const mine = sizes.data?.find((one) => one.keyspace === keyspace && one.table === table);
  if (sizes.failure) return html`<${Failure} failure=${sizes.failure} retry=${sizes.reload} />`;
  if (!mine) return null;
  return html`<${Card}>
    <dl class="stats">
      <${Stat} label="Rows, about" value=${count(mine.rows_estimate)} />
      <${Stat} label="On disk" value=${bytes(mine.disk_bytes)} />
      <${Stat} label="Values of indexes" value=${bytes(mine.index_disk_bytes)} />
      <${Stat} label="Indexes" value=${count(mine.indexes.length)} />
    </dl>
  <//>`;
}

export function OneTable({ keyspace, table, tab, query }) {
  const definition = useData((signal) => get(path('/api/v1/tables', keyspace, table), { signal }), []);
  const shown = TABS.some(({ id }) => id === tab) ? tab : 'rows';
  const actions = definition.data && html`
    <a class="button quiet" href="#/tables">All tables</a>
    <a class="button quiet" href=${queryHref(someRows(keyspace, table, definition.data), keyspace)}>Query</a>
    <${Drop} keyspace=${keyspace} table=${table} />`;
  const panel = (data) => {
    if (shown === 'schema') return html`<${Schema} keyspace=${keyspace} table=${table} definition=${data} />`;
    if (shown === 'indexes') return html`<${IndexesOfTable} keyspace=${keyspace} table=${table} definition=${data} />`;
    return html`<${Rows} keyspace=${keyspace} table=${table} definition=${data} query=${query} />`;
  };
  return html`<${Page} title=${`${keyspace}.${table}`} actions=${actions}>
    <${Async} of=${definition} label="Loading the schema">
      ${(data) => html`<${Sizes} keyspace=${keyspace} table=${table} />
        <${Tabs}
          tabs=${TABS}
          value=${shown}
          label="Parts of the table"
          controls="table-part"
          onChange=${(id) => navigate(tableHref(keyspace, table, ...(id === 'rows' ? [] : [id])))}
        />
        <div id="table-part" role="tabpanel" aria-label=${TABS.find(({ id }) => id === shown).label} class="stack">${panel(data)}</div>`}
    <//>
  <//>`;
}
