// The rows of a table in pages: read, find by key, edit, delete, insert.
import { cql, useData } from '../../api.js';
import { count, cqlName, duration } from '../../format.js';
import { Button, Card, Empty, Failure, Field, Input, Loading, Select, Table, html, useState } from '../../ui.js';
import { keyColumns, keyOfRow, orderedColumns, typeOf, valueOf } from './definition.js';
import { RowDialog } from './row-dialog.js';
import { Cell, exampleOf, isNumber, isText } from './values.js';
import { toJson } from '../../json.js';

const PAGE_SIZES = [25, 50, 100];

// The statement of the rows whose key begins with `find`, and its parameters.
function statementOf({ keyspace, table, definition }, find) {
  const named = keyColumns(definition).filter((name) => (find[name] ?? '').trim() !== '');
  const where = named.map((name) => `${cqlName(name)} = ?`).join(' AND ');
  return {
    text: `SELECT * FROM ${cqlName(keyspace)}.${cqlName(table)}${where && ` WHERE ${where}`}`,
    parameters: named.length ? named.map((name) => parameterOf(find[name], typeOf(definition, name))) : undefined,
  };
}

const parameterOf = (text, type) => (isText(type) ? text : text.trim());

// A form for the key, or the first columns of it.
function FindForm({ definition, onFind, found }) {
  const [wanted, setWanted] = useState(found);
  const submit = (event) => {
    event.preventDefault();
    onFind(wanted);
  };
  const isFiltered = Object.values(found).some((text) => text !== '');
  return html`<form class="find-rows" onSubmit=${submit}>
    ${keyColumns(definition).map(
      (name) => html`<${Field} key=${name} label=${name}>
        <${Input}
          value=${wanted[name] ?? ''}
          placeholder=${exampleOf(typeOf(definition, name)) ?? typeOf(definition, name)}
          onInput=${(event) => setWanted({ ...wanted, [name]: event.target.value })}
        />
      <//>`,
    )}
    <${Button} type="submit" icon="search">Find<//>
    ${isFiltered &&
    html`<${Button}
      onClick=${() => {
        setWanted({});
        onFind({});
      }}
      >All rows<//
    >`}
  </form>`;
}

function Pages({ pages, at, hasMore, loading, pageSize, onGo, onSize }) {
  return html`<nav class="pager" aria-label="Pages of rows">
    <${Select}
      aria-label="Rows a page"
      value=${pageSize}
      options=${PAGE_SIZES.map((size) => ({ value: size, label: `${size} rows` }))}
      onChange=${(event) => onSize(Number(event.target.value))}
    />
    <span class="soft small" aria-live="polite">Page ${at + 1}</span>
    <${Button} disabled=${at === 0 || loading} onClick=${() => onGo(at - 1)}>Previous<//>
    <${Button} disabled=${(!hasMore && at + 1 >= pages) || loading} onClick=${() => onGo(at + 1)}>Next<//>
  </nav>`;
}

// The columns of the table that is drawn. What a row looks like must not change from page to page.
function drawnColumns(definition) {
  return orderedColumns(definition).map(({ name, type }) => ({
    key: name,
    label: name,
    align: isNumber(type) && !keyColumns(definition).includes(name) ? 'right' : undefined,
    render: (row) => html`<${Cell} value=${valueOf(row, name)} type=${type} />`,
  }));
}

export function Rows({ keyspace, table, definition, query }) {
  const [find, setFind] = useState(() => findOf(query, definition));
  const [pageSize, setPageSize] = useState(PAGE_SIZES[0]);
  const [place, setPlace] = useState({ states: [null], at: 0 });
  const [shown, setShown] = useState(null);
  const rows = useData(
    (signal) => {
      const { text, parameters } = statementOf({ keyspace, table, definition }, find);
      return cql(text, { parameters, pageSize, pageState: place.states[place.at], signal });
    },
    [find, pageSize, place],
  );
  const restart = () => setPlace({ states: [null], at: 0 });
  const go = (at) => {
    const states = at < place.states.length ? place.states : [...place.states, rows.data.pageState];
    setPlace({ states, at });
  };
  const changed = () => {
    setShown(null);
    rows.reload();
  };
  const title = rows.data ? `${count(rows.data.rows.length)} rows, read in ${duration(rows.data.milliseconds)}` : 'Rows';
  return html`<div class="row spread end">
      <${FindForm}
        definition=${definition}
        found=${find}
        onFind=${(wanted) => {
          setFind(wanted);
          restart();
        }}
      />
      <${Button} kind="primary" icon="plus" onClick=${() => setShown({ row: null })}>Insert a row<//>
    </div>
    <${Card} title=${title} flush>
      ${rows.failure && html`<${Failure} failure=${rows.failure} retry=${rows.reload} />`}
      ${!rows.data && rows.loading && html`<${Loading} label="Loading the rows" />`}
      ${rows.data &&
      html`<${Table}
        caption=${`Rows of ${keyspace}.${table}`}
        columns=${drawnColumns(definition)}
        rows=${rows.data.rows}
        rowKey=${(row) => toJson(keyOfRow(definition, row))}
        onRow=${(row) => setShown({ row })}
        empty=${html`<${Empty} title="No rows here">${place.at > 0 ? 'The last page was full.' : 'The table is empty, or no row has this key.'}<//>`}
      />`}
      <${Pages}
        pages=${place.states.length}
        at=${place.at}
        hasMore=${Boolean(rows.data?.pageState)}
        loading=${rows.loading}
        pageSize=${pageSize}
        onGo=${go}
        onSize=${(size) => {
          setPageSize(size);
          restart();
        }}
      />
    <//>
    <${RowDialog}
      keyspace=${keyspace}
      table=${table}
      definition=${definition}
      shown=${shown}
      onClose=${() => setShown(null)}
      onChanged=${changed}
    />`;
}

// An address may name a key: #/tables/shop/products?key.id=2.
function findOf(query, definition) {
  const named = keyColumns(definition).filter((name) => query.has(`key.${name}`));
  return Object.fromEntries(named.map((name) => [name, query.get(`key.${name}`)]));
}
