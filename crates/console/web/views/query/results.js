// What a statement answered: rows as a table or as JSON, pages, time, the trace, or the error.

import { Badge, Button, Copy, Dialog, Empty, Json, Table, Tabs, html, useState } from '../../ui.js';
import { count, duration } from '../../format.js';
import { meantBy } from './nearest.js';
import { jsonName } from '../tables/definition.js';
import { TracePicture } from '../trace/picture.js';
import { Cell, isNumber, sortKey, textOf } from '../tables/values.js';

// `onPage` gets the number of the page to show; one after the last is read. `shown` is the tab.
export function Outcome({ outcome, schema, shown, onShow, onPage, busy, wantsTrace }) {
  if (outcome.cancelled) {
    return html`<${Empty} title="Cancelled">
      The statement was given up after ${duration(outcome.milliseconds)}. A write may have been carried out.
    <//>`;
  }
  if (outcome.failure) return html`<${Problem} outcome=${outcome} schema=${schema} />`;
  if (outcome.used !== undefined)
    return html`<p class="query-done">Statements without a keyspace now mean <code>${outcome.used}</code>.</p>`;
  const hasRows = outcome.columns.length > 0;
  const tabs = [
    hasRows && { id: 'table', label: 'Table' },
    hasRows && { id: 'json', label: 'JSON' },
    { id: 'trace', label: 'Trace' },
  ].filter(Boolean);
  const tab = tabs.some(({ id }) => id === shown) ? shown : tabs[0].id;
  const page = outcome.pages[outcome.at];
  return html`<div class="outcome">
    <div class="outcome-bar">
      <${Summary} outcome=${outcome} />
      ${(hasRows || outcome.traceIds.length > 0) && html`<${Tabs} tabs=${tabs} value=${tab} onChange=${onShow} label="Views of the answer" />`}
    </div>
    ${outcome.warnings.map((warning) => html`<p class="query-warning" role="note"><${Badge} tone="warn">Warning<//> ${warning}</p>`)}
    ${tab === 'table' && hasRows && html`<${Rows} columns=${outcome.columns} rows=${page.rows} />`}
    ${tab === 'json' && hasRows && html`<${Json} value=${page.rows} label="Rows as JSON" />`}
    ${tab === 'trace' && html`<${Trace} outcome=${outcome} wantsTrace=${wantsTrace} hasRows=${hasRows} />`}
    ${hasRows && tab !== 'trace' && html`<${Pages} outcome=${outcome} onPage=${onPage} busy=${busy} />`}
  </div>`;
}

function Summary({ outcome }) {
  const { columns, pages, at, milliseconds } = outcome;
  if (columns.length === 0)
    return html`<p class="outcome-summary" role="status"><b>Done</b> in ${duration(milliseconds)}</p>`;
  const rows = pages[at].rows.length;
  const more = pages[at].next ? ', and more follow' : '';
  return html`<p class="outcome-summary" role="status"><b>${count(rows)} ${rows === 1 ? 'row' : 'rows'}</b> in ${duration(milliseconds)}${more}</p>`;
}

function Trace({ outcome, wantsTrace, hasRows }) {
  if (outcome.traceIds.length > 0) return html`<${TracePicture} ids=${outcome.traceIds} />`;
  if (!hasRows) return null;
  return html`<${Empty} title="This answer has no trace" action=${html`<${Button} onClick=${wantsTrace}>Run with a trace<//>`}>
    A trace shows how the server found the rows: the plan, the search of the index, candidates, rows read.
  <//>`;
}

function Problem({ outcome, schema }) {
  const { failure, statement, place } = outcome;
  const marked = place.to - place.from < statement.text.length ? statement.text.slice(place.from, place.to) : null;
  const meant = meantBy(failure.message, schema);
  // A hint about the HTTP API is none for a reader of this page.
  const hint = /^(GET|PUT|POST|DELETE) \//.test(failure.hint ?? '') ? null : failure.hint;
  return html`<div class="query-problem" role="alert">
    <h2>${headOf(failure)}</h2>
    <p>${failure.message}</p>
    ${meant && html`<p>Did you mean <code>${meant}</code>?</p>`}
    ${marked && !failure.isLocal && html`<p class="soft">It is marked in the text: <code>${marked.slice(0, 60)}</code></p>`}
    ${hint && html`<p class="soft">${hint}</p>`}
  </div>`;
}

const HEADS = {
  refused: 'You may not do this',
  missing: 'There is no such thing',
  busy: 'The server is busy',
  away: 'The server does not answer',
  failed: 'The server failed',
};

const headOf = (failure) => (failure.isLocal ? 'Not sent' : (HEADS[failure.kind] ?? 'The statement is refused'));

// The rows of a page. A row opens to show its values whole.
function Rows({ columns, rows }) {
  const [open, setOpen] = useState(null);
  if (rows.length === 0) return html`<${Empty} title="No rows">The statement is right, and no row satisfies it.<//>`;
  const shown = columns.map(({ name, type }, at) => ({
    key: `${at} ${name}`,
    label: name,
    detail: type,
    render: (row) => html`<${Cell} value=${row[jsonName(name)]} type=${type} />`,
    sort: (row) => sortKey(row[jsonName(name)], type),
    align: isNumber(type) ? 'right' : undefined,
  }));
  return html`
    <div class="card flush"><${Table} columns=${shown} rows=${rows} onRow=${setOpen} caption="Rows of the answer" /></div>
    <${RowWindow} columns=${columns} row=${open} onClose=${() => setOpen(null)} />
  `;
}

// All values of a row, as long as they are.
export function RowWindow({ columns, row, onClose, title = 'Row' }) {
  if (!row) return null;
  return html`<${Dialog} title=${title} open wide onClose=${onClose} actions=${html`<${Copy} text=${textOf(row)} label="Copy as JSON" />`}>
    <dl class="row-values">
      ${columns.map(
        ({ name, type }) => html`<div key=${name}>
          <dt>${name} <small class="soft">${type}</small></dt>
          <dd><${Whole} value=${row[jsonName(name)]} /></dd>
        </div>`,
      )}
    </dl>
  <//>`;
}

function Whole({ value }) {
  if (value === null || value === undefined) return html`<span class="null">null</span>`;
  return html`<span class=${typeof value === 'string' ? 'whole-text' : 'whole-text mono'}>${textOf(value)}</span>`;
}

function Pages({ outcome, onPage, busy }) {
  const { pages, at } = outcome;
  const hasNext = at + 1 < pages.length || pages[at].next;
  if (pages.length === 1 && !hasNext) return null;
  return html`<nav class="query-pages" aria-label="Pages of the answer">
    <${Button} onClick=${() => onPage(at - 1)} disabled=${at === 0 || busy}>Previous<//>
    <span>Page ${at + 1}</span>
    <${Button} onClick=${() => onPage(at + 1)} disabled=${!hasNext} busy=${busy}>Next<//>
  </nav>`;
}
