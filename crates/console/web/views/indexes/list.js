import { get, useData, useSession } from '../../api.js';
import { bytes, count } from '../../format.js';
import { Async, Card, Empty, Filter, Page, Stat, Table, html, useState, wordsOf } from '../../ui.js';
import { indexHref } from '../links.js';
import { KINDS } from '../tables/definition.js';
import { useTables } from '../tables/sizes.js';
import { StateBadge, kindOf, lagText, memoryOf } from './state.js';

const REFRESH_MS = 10000;

// All indexes: those of searches with their state, and where there are tables, those on values with their table's name.
async function allIndexes(features, readTables, signal) {
  const served = await get('/api/v1/indexes', { signal });
  const names = served.map(nameOf);
  const tables = features.tables ? await readTables(signal, names.join(' ')) : [];
  const byName = new Map(served.map((one, at) => [names[at], { ...one, kind: kindOf(one) }]));
  for (const { keyspace, table, indexes } of tables) {
    for (const index of indexes) {
      const name = `${keyspace}.${index}`;
      byName.set(name, { ...(byName.get(name) ?? { keyspace, index, kind: 'secondary' }), table });
    }
  }
  return [...byName.values()];
}

const nameOf = ({ keyspace, index }) => `${keyspace}.${index}`;

const COLUMNS = [
  { key: 'index', label: 'Index', sort: nameOf, render: nameOf, width: '30%' },
  { key: 'kind', label: 'Finds by', sort: true, render: (row) => KINDS[row.kind].toLowerCase() },
  { key: 'table', label: 'Table', sort: true, render: (row) => row.table ?? html`<span class="soft">not known here</span>` },
  { key: 'status', label: 'State', sort: true, render: (row) => html`<${StateBadge} index=${row} />` },
  { key: 'count', label: 'Rows', align: 'right', sort: true, render: (row) => (row.count === undefined ? html`<span class="soft">not counted</span>` : count(row.count)) },
  { key: 'lag', label: 'Lag', align: 'right', sort: (row) => row.lag_seconds, render: (row) => (row.status ? lagText(row) : 'none') },
  { key: 'memory', label: 'Memory', align: 'right', sort: (row) => (row.status ? memoryOf(row).own : 0), render: (row) => (row.status ? bytes(memoryOf(row).own) : html`<span class="soft">none</span>`) },
];

function Indexes({ indexes }) {
  const [filter, setFilter] = useState('');
  const matches = wordsOf(filter);
  const shown = indexes.filter((row) => matches(`${nameOf(row)} ${row.table ?? ''} ${KINDS[row.kind]} ${row.status ?? ''}`));
  const served = indexes.filter((row) => row.status);
  const late = served.filter((row) => row.status !== 'SERVING').length;
  return html`<${Card}>
      <dl class="stats">
        <${Stat} label="Indexes" value=${count(indexes.length)} />
        <${Stat} label="Not yet serving" value=${count(late)} tone=${late > 0 ? 'warn' : undefined} />
        <${Stat} label="Memory" value=${bytes(served.reduce((sum, row) => sum + memoryOf(row).own, 0))} />
        <${Stat} label="Mapped files" value=${bytes(served.reduce((sum, row) => sum + memoryOf(row).mapped, 0))} />
      </dl>
    <//>
    <${Filter} value=${filter} onChange=${setFilter} placeholder="Filter indexes" />
    <${Card} flush>
      <${Table}
        caption="Indexes"
        columns=${COLUMNS}
        rows=${shown}
        rowKey=${nameOf}
        rowHref=${(row) => indexHref(row.keyspace, row.index)}
        order=${{ key: 'index', down: false }}
        empty=${html`<${Empty} title="No index matches">Another word may be in its name, its table or its state.<//>`}
      />
    <//>`;
}

export function IndexList() {
  const { features } = useSession();
  const readTables = useTables();
  const indexes = useData((signal) => allIndexes(features, readTables, signal), [features.tables], { every: REFRESH_MS });
  const create = features.tables && html`<a class="button primary" href="#/indexes/new">New index</a>`;
  const empty = html`<${Card}>
    <${Empty} title="There is no index yet" action=${create}>An index finds rows by nearest vectors, by words, or by a value.<//>
  <//>`;
  return html`<${Page} title="Indexes" lead="What finds rows, how far it is behind the writes, and the memory it takes." actions=${create}>
    <${Async} of=${indexes} label="Loading the indexes" empty=${empty}>${(all) => html`<${Indexes} indexes=${all} />`}<//>
  <//>`;
}
