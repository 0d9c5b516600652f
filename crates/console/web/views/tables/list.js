import { get, useData } from '../../api.js';
import { bytes, count } from '../../format.js';
import { Async, Card, Checkbox, Empty, Filter, Page, Stat, Table, html, useState, wordsOf } from '../../ui.js';
import { queryHref, tableHref } from '../links.js';
import { isLog } from './definition.js';

const LEAD = 'Tables with their estimated rows, and the bytes of their files. Rows that are still in memory have no file yet.';

const CREATE = `CREATE KEYSPACE IF NOT EXISTS shop;
CREATE TABLE shop.products (id int PRIMARY KEY, name text, price int, v vector<float, 3>);`;

const nameOf = ({ keyspace, table }) => `${keyspace}.${table}`;

const COLUMNS = [
  { key: 'table', label: 'Table', sort: nameOf, render: nameOf, width: '40%' },
  { key: 'rows_estimate', label: 'Rows, about', align: 'right', sort: true, render: (row) => count(row.rows_estimate) },
  { key: 'disk_bytes', label: 'On disk', align: 'right', sort: true, render: (row) => bytes(row.disk_bytes) },
  { key: 'index_disk_bytes', label: 'Values of indexes', align: 'right', sort: true, render: (row) => bytes(row.index_disk_bytes) },
  { key: 'indexes', label: 'Indexes', sort: (row) => row.indexes.length, render: (row) => row.indexes.join(', ') || html`<span class="soft">none</span>` },
];

function Tables({ tables }) {
  const [filter, setFilter] = useState('');
  const [withLogs, setWithLogs] = useState(false);
  const matches = wordsOf(filter);
  const own = tables.filter((row) => withLogs || !isLog(row.table));
  const shown = own.filter((row) => matches(`${nameOf(row)} ${row.indexes.join(' ')}`));
  const sum = (key) => own.reduce((total, row) => total + (row[key] ?? 0), 0);
  return html`<${Card}>
      <dl class="stats">
        <${Stat} label="Tables" value=${count(own.length)} />
        <${Stat} label="Rows, about" value=${count(sum('rows_estimate'))} />
        <${Stat} label="On disk" value=${bytes(sum('disk_bytes') + sum('index_disk_bytes'))} />
      </dl>
    <//>
    <div class="row spread">
      <${Filter} value=${filter} onChange=${setFilter} placeholder="Filter tables" />
      <${Checkbox} label="Logs of changes, too" checked=${withLogs} onChange=${(event) => setWithLogs(event.target.checked)} />
    </div>
    <${Card} flush>
      <${Table}
        caption="Tables"
        columns=${COLUMNS}
        rows=${shown}
        rowKey=${nameOf}
        rowHref=${(row) => tableHref(row.keyspace, row.table)}
        order=${{ key: 'table', down: false }}
        empty=${html`<${Empty} title="No table matches">Another word may be in its name, or in that of an index.<//>`}
      />
    <//>`;
}

export function TableList() {
  const tables = useData((signal) => get('/api/v1/tables', { signal }), []);
  const actions = html`<a class="button quiet" href=${queryHref('CREATE TABLE ')}>New table</a>`;
  const empty = html`<${Card}>
    <${Empty} title="There is no table yet" action=${html`<a class="button primary" href=${queryHref(CREATE)}>Create one</a>`}>
      A table is made by CQL, by a driver, or by <code>annulus import</code>.
    <//>
  <//>`;
  return html`<${Page} title="Tables" lead=${LEAD} actions=${actions}>
    <${Async} of=${tables} label="Loading the tables" empty=${empty}>${(all) => html`<${Tables} tables=${all} />`}<//>
  <//>`;
}
