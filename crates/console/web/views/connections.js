import { cql, useData } from '../api.js';
import { count } from '../format.js';
import { Async, Badge, Card, Dialog, Empty, Filter, Page, Stat, Table, html, useState, wordsOf } from '../ui.js';

const EVERY_MS = 5000;
// More than a page holds would be a page that nobody reads.
const ROWS_MAX = 5000;

// Requests by HTTP have no port of CQL.
const isHttp = (client) => client.port === 0;

function driverOf(client) {
  if (isHttp(client)) return 'HTTP';
  return [client.driver_name, client.driver_version].filter(Boolean).join(' ');
}

const addressOf = (client) => (isHttp(client) ? client.address : `${client.address}:${client.port}`);

const STAGES = { ready: 'good', authenticating: 'warn', established: 'quiet' };

const COLUMNS = [
  { key: 'address', label: 'Client', sort: addressOf, render: (row) => html`<span class="mono">${addressOf(row)}</span>` },
  { key: 'username', label: 'Role', sort: true },
  { key: 'driver', label: 'Driver', sort: driverOf, render: (row) => driverOf(row) || html`<span class="soft">unknown</span>` },
  { key: 'keyspace_name', label: 'Keyspace', sort: true },
  { key: 'ssl_enabled', label: 'TLS', sort: true, render: (row) => (row.ssl_enabled ? row.ssl_protocol : html`<span class="soft">no</span>`) },
  {
    key: 'connection_stage',
    label: 'Stage',
    sort: true,
    render: (row) => html`<${Badge} tone=${STAGES[row.connection_stage]}>${row.connection_stage}<//>`,
  },
  { key: 'request_count', label: 'Requests', align: 'right', sort: true, render: (row) => count(row.request_count) },
];

const textOf = (client) => `${addressOf(client)} ${client.username} ${driverOf(client)} ${client.keyspace_name}`;

// A client in full, with what its driver said of itself.
function Details({ client, onClose }) {
  const facts = client && [
    ['Role', client.username],
    ['Driver', driverOf(client) || 'unknown'],
    ['Protocol', client.protocol_version ? `CQL, version ${client.protocol_version}` : 'HTTP'],
    ['Keyspace', client.keyspace_name ?? 'none in use'],
    ['TLS', client.ssl_enabled ? `${client.ssl_protocol}, ${client.ssl_cipher_suite}` : 'no'],
    ['Requests', count(client.request_count)],
    ...Object.entries(client.client_options ?? {}),
  ];
  return html`<${Dialog} title=${client ? addressOf(client) : ''} open=${client !== null} onClose=${onClose}>
    ${facts && html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`}
  <//>`;
}

function Clients({ clients, hasMore }) {
  const [filter, setFilter] = useState('');
  const [open, setOpen] = useState(null);
  const matches = wordsOf(filter);
  const byCql = clients.filter((client) => !isHttp(client));
  const drivers = new Set(byCql.map((client) => client.driver_name).filter(Boolean));
  const roles = new Set(clients.map((client) => client.username));
  return html`<${Card}>
      <dl class="stats">
        <${Stat} label="By CQL" value=${count(byCql.length)} />
        <${Stat} label="By HTTP" value=${count(clients.length - byCql.length)} />
        <${Stat} label="With TLS" value=${count(clients.filter((client) => client.ssl_enabled).length)} />
        <${Stat} label="Roles" value=${count(roles.size)} />
        <${Stat} label="Kinds of driver" value=${count(drivers.size)} />
      </dl>
    <//>
    ${hasMore && html`<p class="note">There are more. The first ${count(ROWS_MAX)} are counted and listed.</p>`}
    <${Filter} value=${filter} onChange=${setFilter} placeholder="Filter connections" />
    <${Card} flush>
      <${Table}
        caption="Connections"
        columns=${COLUMNS}
        rows=${clients.filter((client) => matches(textOf(client)))}
        rowKey=${(client) => `${addressOf(client)} ${client.username}`}
        onRow=${setOpen}
        empty=${html`<${Empty} title="No connection matches">Another word may be in an address, a role or the name of a driver.<//>`}
      />
    <//>
    <${Details} client=${open} onClose=${() => setOpen(null)} />`;
}

function View() {
  const clients = useData(
    (signal) => cql('SELECT * FROM system_views.clients', { pageSize: ROWS_MAX, signal }),
    [],
    { every: EVERY_MS },
  );
  return html`<${Page} title="Connections" lead="The clients that are connected now. The page looks again every five seconds.">
    <${Async} of=${clients} label="Loading the connections" empty=${({ rows }) => rows.length === 0 && html`<${Card}><${Empty} title="No client is connected" /><//>`}>
      ${({ rows, pageState }) => html`<${Clients} clients=${rows} hasMore=${pageState !== null} />`}
    <//>
  <//>`;
}

export default {
  id: 'connections',
  title: 'Connections',
  icon: 'connections',
  group: 'Watch',
  needs: (session) => session.features.cql,
  View,
};
