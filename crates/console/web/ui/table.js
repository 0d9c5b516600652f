import { html, useEffect, useMemo, useRef, useState, useMedia } from './html.js';
import { toJson } from '../json.js';
import { Button } from './controls.js';
import { Icon } from './icons.js';

// More rows than this are drawn only where they are seen.
const DRAWN_AT_ONCE = 200;
const ROW_HEIGHT = 41;
const ROWS_AROUND = 12;
const CARDS_A_STEP = 50;

function valueOf(column, row) {
  return typeof column.sort === 'function' ? column.sort(row) : row[column.key];
}

// Made once: a collator for each comparison would take seconds for 5,000 rows.
const names = new Intl.Collator('en', { numeric: true });

function compare(left, right) {
  const absent = (value) => value === null || value === undefined;
  if (absent(left) || absent(right)) return absent(left) ? (absent(right) ? 0 : 1) : -1;
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  return names.compare(String(left), String(right));
}

function sortedBy(rows, columns, order) {
  const column = order && columns.find((one) => one.key === order.key);
  if (!column) return rows;
  const sorted = [...rows].sort((left, right) => compare(valueOf(column, left), valueOf(column, right)));
  return order.down ? sorted.reverse() : sorted;
}

function plain(value) {
  if (value === null || value === undefined) return html`<span class="soft">none</span>`;
  return typeof value === 'object' ? toJson(value) : String(value);
}

function Heading({ column, order, setOrder }) {
  const mine = order?.key === column.key;
  const style = column.width ? { width: column.width } : undefined;
  const className = column.align === 'right' ? 'right' : undefined;
  const detail = column.detail && html` <span class="th-detail">${column.detail}</span>`;
  // Of a column of buttons the head is only heard.
  const label = column.label === '' ? html`<span class="hidden">Actions</span>` : html`<span>${column.label}${detail}</span>`;
  if (!column.sort) return html`<th scope="col" role="columnheader" class=${className} style=${style}>${label}</th>`;
  const sort = () => setOrder({ key: column.key, down: mine ? !order.down : false });
  return html`<th
    scope="col"
    role="columnheader"
    class=${className}
    style=${style}
    aria-sort=${mine ? (order.down ? 'descending' : 'ascending') : 'none'}
  >
    <button type="button" class="sort" onClick=${sort}>
      ${label}
      <span class=${mine ? 'sort-mark' : 'sort-mark faint'}><${Icon} name=${mine && !order.down ? 'up' : 'down'} size="12" /></span>
    </button>
  </th>`;
}

function Row({ row, columns, onRow, rowHref, place, selected }) {
  const open = onRow
    ? (event) => {
        // A control in the row has a meaning of its own, and so has a text that is being selected.
        if (!event.target.closest('button, a, input, select') && String(getSelection()) === '') onRow(row);
      }
    : undefined;
  const first = (content) => {
    if (rowHref) return html`<a class="row-open" href=${rowHref(row)}>${content}</a>`;
    if (onRow) return html`<button type="button" class="row-open" onClick=${() => onRow(row)}>${content}</button>`;
    return content;
  };
  return html`<tr
    role="row"
    class=${onRow ? 'opens' : undefined}
    aria-rowindex=${place + 2}
    aria-selected=${selected === undefined ? undefined : String(selected)}
    onClick=${open}
  >
    ${columns.map((column, at) => {
      const content = column.render ? column.render(row) : plain(row[column.key]);
      return html`<td
        key=${column.key}
        role="cell"
        class=${column.align === 'right' ? 'right number' : undefined}
        data-label=${typeof column.label === 'string' ? column.label : ''}
      >
        ${at === 0 ? first(content) : content}
      </td>`;
    })}
  </tr>`;
}

// The part of many rows that is seen, and how much room the others take above and below.
function useWindow(box, count, whole) {
  const [seen, setSeen] = useState({ top: 0, height: 640 });
  useEffect(() => {
    const element = box.current;
    if (whole || !element) return undefined;
    const update = () => setSeen({ top: element.scrollTop, height: element.clientHeight });
    update();
    element.addEventListener('scroll', update, { passive: true });
    return () => element.removeEventListener('scroll', update);
  }, [whole, count]);
  if (whole) return { from: 0, to: count };
  const from = Math.max(0, Math.floor(seen.top / ROW_HEIGHT) - ROWS_AROUND);
  return { from, to: Math.min(count, from + Math.ceil(seen.height / ROW_HEIGHT) + 2 * ROWS_AROUND) };
}

// A table. columns: {key, label, detail, render(row), align: 'right', sort: true or (row) => value, width}. onRow(row) or
// rowHref(row) opens a row: the first cell is then its button or link. Under 600 px each row is a card.
export function Table({ columns, rows, rowKey, onRow, rowHref, caption, empty, order: first, selected }) {
  const [order, setOrder] = useState(first ?? null);
  const [cards, setCards] = useState(CARDS_A_STEP);
  const narrow = useMedia('(max-width: 599px)');
  const box = useRef(null);
  const sorted = useMemo(() => sortedBy(rows, columns, order), [rows, order]);
  const whole = narrow || sorted.length <= DRAWN_AT_ONCE;
  const seen = useWindow(box, sorted.length, whole);
  const { from } = seen;
  const to = narrow ? Math.min(cards, sorted.length) : seen.to;
  if (rows.length === 0 && empty) return empty;
  const keyOf = (row, place) => (typeof rowKey === 'function' ? rowKey(row) : rowKey ? row[rowKey] : place);
  const gap = (key, count) =>
    count > 0 && html`<tr key=${key} role="presentation" aria-hidden="true"><td class="gap" colspan=${columns.length} style=${{ height: `${count * ROW_HEIGHT}px` }}></td></tr>`;
  return html`<div
      ref=${box}
      class=${whole ? 'table-box' : 'table-box tall'}
      role="region"
      aria-label=${`${caption}, table`}
      tabindex="0"
    >
      <table class=${whole ? 'table' : 'table even'} role="table" aria-rowcount=${sorted.length + 1}>
        <caption class="hidden">${caption}</caption>
        <thead role="rowgroup">
          <tr role="row" aria-rowindex="1">
            ${columns.map((column) => html`<${Heading} key=${column.key} column=${column} order=${order} setOrder=${setOrder} />`)}
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${gap('above', whole ? 0 : from)}
          ${sorted.slice(from, to).map(
            (row, at) =>
              html`<${Row}
                key=${keyOf(row, from + at)}
                row=${row}
                columns=${columns}
                onRow=${onRow}
                rowHref=${rowHref}
                place=${from + at}
                selected=${selected ? selected(row) : undefined}
              />`,
          )}
          ${gap('below', whole ? 0 : sorted.length - to)}
        </tbody>
      </table>
    </div>
    ${narrow &&
    to < sorted.length &&
    html`<div class="more"><${Button} onClick=${() => setCards(cards + CARDS_A_STEP)}>Show more (${sorted.length - to} left)<//></div>`}`;
}
