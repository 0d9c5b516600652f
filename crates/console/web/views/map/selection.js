// The rows that are selected on the map, as a table and as CQL. What the canvas shows as a picture is here as text.
import { useData } from '../../api.js';
import { count } from '../../format.js';
import { Button, Card, Code, Empty, Failure, Table, html } from '../../ui.js';
import { isVector, keyColumns, orderedColumns, valueOf } from '../tables/definition.js';
import { queryHref, tableHref } from '../links.js';
import { Cell } from '../tables/values.js';
import { keyValue, rowsOf, statementOf } from './rows.js';

// So many rows are read with all their columns; of others what the map has is shown.
const ROWS_READ = 100;
const ROWS_SHOWN = 1000;

function columnsOf(map, from, column) {
  if (from) {
    const shown = orderedColumns(from.definition).filter(({ type }) => !isVector(type));
    const own = { ...map.column_values, ...(column ? { [column.name]: column.values } : {}) };
    const cell = ({ name }, { point, row }) => (row ? valueOf(row, name) : (map.primary_keys[name]?.[point] ?? own[name]?.[point]));
    const drawn = (one, line) => {
      const value = cell(one, line);
      return value === undefined ? html`<span class="soft">not read</span>` : html`<${Cell} value=${value} type=${one.type} />`;
    };
    return shown.map((one) => ({ key: one.name, label: one.name, render: (line) => drawn(one, line) }));
  }
  return [
    ...Object.keys(map.primary_keys).map((name) => ({ key: name, label: name, render: ({ point }) => html`<${Cell} value=${keyValue(map, name, point)} />` })),
    ...Object.keys(map.column_values).map((name) => ({ key: name, label: name, render: ({ point }) => html`<${Cell} value=${map.column_values[name][point]} />` })),
  ];
}

// The address of one row in the view of tables.
function rowHref(map, from, { point }) {
  const key = keyColumns(from.definition).map((name) => [`key.${name}`, String(keyValue(map, name, point))]);
  return `${tableHref(from.keyspace, from.table)}?${new URLSearchParams(key)}`;
}

function AsCql({ map, from, points }) {
  const { text, points: named } = statementOf(map, from, points);
  return html`<div class="stack tight">
    <${Code} language="cql" label="The selected rows as CQL" text=${text} />
    ${named < points.length && html`<p class="soft small">The statement names the first ${count(named)} of ${count(points.length)} rows.</p>`}
  </div>`;
}

export function Selection({ map, from, column, points, onClear }) {
  const rows = useData((signal) => (from && points.length ? rowsOf(map, from, points.slice(0, ROWS_READ), signal) : new Map()), [map, points]);
  if (points.length === 0) {
    return html`<${Card} title="Selected rows">
      <${Empty} title="Nothing is selected">Draw a lasso around points, choose a colour of the legend, or go to the map by keyboard and press Enter.<//>
    <//>`;
  }
  const lines = points.slice(0, ROWS_SHOWN).map((point) => ({ point, row: rows.data?.get(point) }));
  const actions = html`<${Button} onClick=${onClear}>Select nothing<//>
    ${from && html`<a class="button primary" href=${queryHref(statementOf(map, from, points).text, from.keyspace)}>Open as CQL</a>`}`;
  return html`<${Card} title=${`${count(points.length)} selected ${points.length === 1 ? 'row' : 'rows'}`} actions=${actions} flush>
      ${rows.failure && html`<${Failure} failure=${rows.failure} retry=${rows.reload} />`}
      <div class="selection"><${Table}
        caption="Selected rows"
        columns=${columnsOf(map, from, column)}
        rows=${lines}
        rowKey="point"
        rowHref=${from ? (line) => rowHref(map, from, line) : undefined}
      /></div>
      ${points.length > ROWS_SHOWN && html`<p class="soft small selection-more">The first ${count(ROWS_SHOWN)} are listed.</p>`}
    <//>
    ${from && html`<details class="selection-cql"><summary>These rows as CQL</summary><${AsCql} map=${map} from=${from} points=${points} /></details>`}`;
}
