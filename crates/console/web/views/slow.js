import { cql, useData } from '../api.js';
import { count, duration } from '../format.js';
import { Async, Button, Card, Code, Dialog, Empty, Filter, Page, Table, Tabs, Time, html, useState, wordsOf } from '../ui.js';
import { queryHref } from './links.js';

// The server holds as many.
const ROWS_MAX = 1000;

const ofMicroseconds = (us) => duration(us / 1000);

const STATEMENT = {
  key: 'statement',
  label: 'Statement',
  width: '52%',
  render: (row) => html`<code class="statement">${row.statement}</code>`,
};

const NEWEST = [
  STATEMENT,
  { key: 'duration_us', label: 'Took', align: 'right', sort: true, render: (row) => ofMicroseconds(row.duration_us) },
  { key: 'started_at', label: 'Began', sort: true, render: (row) => html`<${Time} at=${row.started_at} />` },
  { key: 'role', label: 'Role', sort: true },
  { key: 'client', label: 'Client', sort: true, render: (row) => html`<span class="mono">${row.client}</span>` },
];

const BY_STATEMENT = [
  STATEMENT,
  { key: 'times', label: 'Times', align: 'right', sort: true, render: (row) => count(row.times) },
  { key: 'total', label: 'In all', align: 'right', sort: true, render: (row) => ofMicroseconds(row.total) },
  { key: 'mean', label: 'Mean', align: 'right', sort: true, render: (row) => ofMicroseconds(row.mean) },
  { key: 'longest', label: 'Longest', align: 'right', sort: true, render: (row) => ofMicroseconds(row.longest) },
];

const TABS = [
  { id: 'newest', label: 'Newest' },
  { id: 'statements', label: 'By statement' },
];

// The same statement with other literals is one row. Its newest occurrence stands for it.
function byStatement(rows) {
  const groups = new Map();
  for (const row of rows) {
    const group = groups.get(row.statement) ?? { ...row, times: 0, total: 0, longest: 0 };
    group.times += 1;
    group.total += row.duration_us;
    group.longest = Math.max(group.longest, row.duration_us);
    groups.set(row.statement, group);
  }
  return [...groups.values()].map((group) => ({ ...group, mean: group.total / group.times }));
}

function Details({ row, onClose }) {
  const facts = row && [
    ['Took', ofMicroseconds(row.duration_us)],
    ['Began', html`<${Time} at=${row.started_at} />`],
    ['Role', row.role],
    ['Client', row.client_port ? `${row.client}:${row.client_port}` : `${row.client}, by HTTP`],
    ['Keyspace', row.keyspace_name ?? 'none in use'],
    row.request_id && ['Request', html`<code>${row.request_id}</code>`],
  ];
  const link = row && html`<a class="button quiet" href=${queryHref(row.statement)}>Open as a query</a>`;
  return html`<${Dialog} title="Slow statement" open=${row !== null} onClose=${onClose} actions=${link} wide>
    ${row &&
    html`<div class="stack">
      <${Code} text=${row.statement} language="cql" label="Statement" wrap />
      <dl class="facts">${facts.filter(Boolean).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
      ${row.plan && html`<h3>How the search was done</h3><${Code} text=${row.plan} label="Plan" wrap />`}
    </div>`}
  <//>`;
}

function Statements({ rows }) {
  const [filter, setFilter] = useState('');
  const [tab, setTab] = useState('newest');
  const [open, setOpen] = useState(null);
  const matches = wordsOf(filter);
  const matching = rows.filter((row) => matches(`${row.statement} ${row.role} ${row.client} ${row.request_id}`));
  const grouped = tab === 'statements';
  return html`<div class="row spread">
      <${Tabs} tabs=${TABS} value=${tab} onChange=${setTab} label="Order" controls="slow-statements" />
      <${Filter} value=${filter} onChange=${setFilter} placeholder="Filter statements" />
    </div>
    <div id="slow-statements" role="tabpanel" aria-label=${TABS.find((one) => one.id === tab).label}>
      <${Card} flush>
        <${Table}
          key=${tab}
          caption="Slow statements"
          columns=${grouped ? BY_STATEMENT : NEWEST}
          rows=${grouped ? byStatement(matching) : matching}
          rowKey=${grouped ? 'statement' : 'id'}
          order=${grouped ? { key: 'total', down: true } : { key: 'started_at', down: true }}
          onRow=${setOpen}
          empty=${html`<${Empty} title="No slow statement matches">Another word may be in a statement, a role or an address.<//>`}
        />
      <//>
    </div>
    <${Details} row=${open} onClose=${() => setOpen(null)} />`;
}

// The threshold, where the login may read it.
async function thresholdOf(signal) {
  try {
    const answer = await cql("SELECT value FROM system_views.settings WHERE name = 'slow-query-threshold'", { signal });
    return answer.rows[0]?.value ?? null;
  } catch (failure) {
    if (failure.kind !== 'refused') throw failure;
    return null;
  }
}

async function load(signal) {
  const [slow, threshold] = await Promise.all([
    cql('SELECT * FROM system_views.slow_queries', { pageSize: ROWS_MAX, signal }),
    thresholdOf(signal),
  ]);
  return { rows: slow.rows, threshold };
}

function nothing({ rows, threshold }) {
  if (rows.length > 0) return false;
  const off = threshold === '0s' || threshold === 'never';
  return html`<${Card}>
    <${Empty} title=${off ? 'Slow statements are not noted' : 'No statement was slow'}>
      ${off
        ? 'The setting slow-query-threshold is 0s. Start the server with a time above zero.'
        : `None took longer than ${threshold ?? 'the threshold'} since the server started. The setting slow-query-threshold sets the time.`}
    <//>
  <//>`;
}

function View() {
  const slow = useData(load);
  const threshold = slow.data?.threshold;
  return html`<${Page}
    title="Slow queries"
    lead=${`The newest 1,000 statements that took longer than ${threshold ?? 'the setting slow-query-threshold'}, with ? for their literals.`}
    actions=${html`<${Button} icon="refresh" busy=${slow.loading} onClick=${slow.reload}>Look again<//>`}
  >
    <${Async} of=${slow} label="Loading slow statements" empty=${nothing}>${({ rows }) => html`<${Statements} rows=${rows} />`}<//>
  <//>`;
}

export default {
  id: 'slow',
  title: 'Slow queries',
  icon: 'slow',
  group: 'Watch',
  needs: (session) => session.features.cql,
  View,
};
