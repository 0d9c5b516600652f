import { cql, useData } from '../../api.js';
import { cqlName } from '../../format.js';
import { Async, Badge, Card, Code, Empty, Table, html } from '../../ui.js';
import { indexHref, newIndexHref } from '../links.js';
import { KINDS, indexOf, keyColumns, orderedColumns } from './definition.js';

// The server writes the statement of an index in one line.
const inLines = (text) => text.replace(/ (USING '[^']*')(?: (WITH OPTIONS = \{.*\}))?(;?)$/s, (_, by, options, end) => `\n    ${by}${options ? `\n    ${options}` : ''}${end}`);

// The statements that make a table and its indexes.
export async function createStatements(keyspace, table, signal) {
  const { rows } = await cql(`DESCRIBE TABLE ${cqlName(keyspace)}.${cqlName(table)}`, { signal });
  return rows.map((row) => (row.type === 'index' ? { ...row, create_statement: inLines(row.create_statement) } : row));
}

const ROLES = { partition_key: 'partition key', clustering: 'clustering', static: 'static', regular: '' };

function roleOf({ name, kind }, { key }) {
  const place = kind === 'partition_key' ? key.partition : key.clustering;
  const role = ROLES[kind] ?? kind;
  return place.length > 1 && place.includes(name) ? `${role} ${place.indexOf(name) + 1}` : role;
}

function Columns({ keyspace, definition }) {
  const indexes = definition.indexes.map((index) => indexOf(definition, index));
  const rows = orderedColumns(definition).map((column) => ({
    ...column,
    role: roleOf(column, definition),
    indexes: indexes.filter((index) => index.column === column.name),
  }));
  const columns = [
    { key: 'name', label: 'Column', render: (row) => html`<code>${row.name}</code>` },
    { key: 'type', label: 'Type', render: (row) => html`<code>${row.type}</code>` },
    { key: 'role', label: 'Part of the key', render: (row) => row.role && html`<${Badge}>${row.role}<//>` },
    {
      key: 'indexes',
      label: 'Indexes',
      render: (row) => row.indexes.map((index) => html`<a class="inline-link" href=${indexHref(keyspace, index.name)}>${index.name}</a>`),
    },
  ];
  return html`<${Card} title="Columns" flush><${Table} caption="Columns of the table" columns=${columns} rows=${rows} rowKey="name" /><//>`;
}

export function Schema({ keyspace, table, definition }) {
  const statements = useData((signal) => createStatements(keyspace, table, signal), [definition]);
  return html`<${Columns} keyspace=${keyspace} definition=${definition} />
    <${Card} title="As CQL">
      <${Async} of=${statements} label="Loading the statements">
        ${(rows) => html`<${Code} wrap language="cql" label="Statements that make the table" text=${rows.map((row) => row.create_statement).join('\n\n')} />`}
      <//>
    <//>`;
}

export function IndexesOfTable({ keyspace, table, definition }) {
  const rows = definition.indexes.map((index) => indexOf(definition, index));
  const key = keyColumns(definition);
  const create = html`<a class="button quiet" href=${newIndexHref(keyspace, table)}>New index</a>`;
  const columns = [
    { key: 'name', label: 'Index', sort: true },
    { key: 'kind', label: 'Finds by', sort: true, render: (row) => KINDS[row.kind] },
    { key: 'column', label: 'Column', sort: true, render: (row) => html`<code>${row.column}</code>` },
    { key: 'localKey', label: 'Within', render: (row) => (row.localKey.length ? html`<code>${row.localKey.join(', ')}</code>` : 'all rows') },
    { key: 'filters', label: 'Filters by', render: (row) => row.kind !== 'secondary' && html`<code>${[...key, ...row.filters].join(', ')}</code>` },
  ];
  return html`<${Card} title="Indexes" actions=${create} flush>
    <${Table}
      caption="Indexes of the table"
      columns=${columns}
      rows=${rows}
      rowKey="name"
      rowHref=${(row) => indexHref(keyspace, row.name)}
      empty=${html`<${Empty} title="This table has no index">An index finds rows by nearest vectors, by words, or by a value.<//>`}
    />
  <//>`;
}
