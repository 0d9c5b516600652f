// One index: its state, its memory, its recall, its definition, its repair and its tasks.
import { ApiFailure, del, get, path, useData, useSession } from '../../api.js';
import { bytes, count, cqlName, percent, titled } from '../../format.js';
import { Async, Badge, Bar, Button, Card, Code, Confirm, Failure, Page, Progress, Stat, html, navigate, toast, useState } from '../../ui.js';
import { mapHref, tableHref } from '../links.js';
import { KINDS } from '../tables/definition.js';
import { tableOfIndex } from '../tables/find.js';
import { createStatements } from '../tables/schema.js';
import { Recall } from './recall.js';
import { Repair } from './repair.js';
import { StateBadge, kindOf, lagText, lagTone, memoryOf } from './state.js';
import { Tasks } from './tasks.js';

const REFRESH_MS = 3000;
const ALL = html`<a class="button quiet" href="#/indexes">All indexes</a>`;

// The state of an index; null for one of the storage, which has no state of its own.
async function stateOf(keyspace, index, signal) {
  try {
    return await get(path('/api/v1/indexes', keyspace, index), { signal });
  } catch (failure) {
    if (failure.kind === 'missing') return null;
    throw failure;
  }
}

function Numbers({ state, kind }) {
  return html`<${Card}>
    <dl class="stats">
      <div class="stat"><dt>State</dt><dd class="stat-badge"><${StateBadge} index=${state ?? {}} /></dd></div>
      <${Stat} label="Finds by" value=${KINDS[kind].toLowerCase()} />
      ${state && html`
        <${Stat} label="Rows" value=${count(state.count)} />
        <${Stat} label="Lag" value=${lagText(state)} tone=${lagTone(state)} />
        <${Stat} label="Memory" value=${bytes(memoryOf(state).own)} />
        ${state.changes_waiting > 0 && html`<${Stat} label="Changes that wait" value=${count(state.changes_waiting)} />`}
        ${state.dead_entries > 0 && html`<${Stat} label="Dead entries" value=${count(state.dead_entries)} />`}
        ${state.rows_without_room > 0 && html`<${Stat} label="Rows without room" value=${count(state.rows_without_room)} tone="bad" />`}`}
    </dl>
    ${state?.status === 'BOOTSTRAPPING' && html`<div class="index-build"><${Progress} value=${state.build_progress} max="100" label="The table is read" /></div>`}
  <//>`;
}

const PARTS = { graph: 'Graph', codes: 'Codes', vectors: 'Vectors', text: 'Words', keys: 'Keys', filter_values: 'Values for filters', fresh: 'Fresh changes', other: 'Other' };

function Memory({ state }) {
  const { parts, mapped } = memoryOf(state);
  return html`<${Card} title="Memory by part">
    <div class="stack">
      <${Bar} label="Memory by part" parts=${Object.entries(parts).map(([key, value]) => ({ label: PARTS[key] ?? key, value }))} format=${bytes} />
      ${mapped > 0 && html`<p class="soft small">And ${bytes(mapped)} of mapped files, which the system takes out of memory where it needs room.</p>`}
    </div>
  <//>`;
}

function Definition({ keyspace, found, state }) {
  const statements = useData((signal) => (found ? createStatements(keyspace, found.table, signal) : []), [found?.table]);
  const { type: _, ...options } = state?.options ?? found?.index.options ?? {};
  const text = statements.data?.find((row) => row.type === 'index' && row.name === found.index.name)?.create_statement;
  return html`<${Card} title="Definition">
    <div class="stack">
      <dl class="facts">
        ${found && html`
          <dt>Table</dt><dd><a href=${tableHref(keyspace, found.table)}>${keyspace}.${found.table}</a></dd>
          <dt>Column</dt><dd><code>${found.index.column}</code></dd>
          ${found.index.localKey.length > 0 && html`<dt>Searches within</dt><dd><code>${found.index.localKey.join(', ')}</code></dd>`}
          ${found.index.filters.length > 0 && html`<dt>Filters by</dt><dd><code>${found.index.filters.join(', ')}</code></dd>`}`}
        ${Object.entries(options).map(([name, value]) => html`<dt key=${name}>${titled(name)}</dt><dd><code>${String(value).toLowerCase()}</code></dd>`)}
        ${state?.version && html`<dt>Version</dt><dd><code>${state.version}</code></dd>`}
      </dl>
      ${statements.failure && html`<${Failure} failure=${statements.failure} retry=${statements.reload} />`}
      ${text && html`<${Code} wrap language="cql" label="Statement that makes the index" text=${text} />`}
    </div>
  <//>`;
}

function Drop({ keyspace, index, table }) {
  const [open, setOpen] = useState(false);
  const drop = async () => {
    await del(path('/api/v1/tables', keyspace, table, 'indexes', index));
    toast(`${keyspace}.${index} is dropped.`, 'good');
    navigate('#/indexes');
  };
  return html`<${Button} kind="danger" onClick=${() => setOpen(true)}>Drop<//>
    <${Confirm} title="Drop this index?" open=${open} onClose=${() => setOpen(false)} onConfirm=${drop} confirmLabel="Drop the index" danger>
      <p>Searches that need <code>${keyspace}.${index}</code> fail from then on. Its rows stay in <code>${table}</code>.</p>
      <p class="soft">The same as CQL: <code>DROP INDEX ${cqlName(keyspace)}.${cqlName(index)}</code></p>
    <//>`;
}

function Estimate({ recall }) {
  if (!recall) return html`<p class="soft">No estimate yet: it begins with 8,192 rows and some thousand changes.</p>`;
  const facts = [10, 100].filter((k) => recall[`estimate_at_${k}`] !== undefined || recall[`width_at_${k}`] !== undefined);
  return html`<dl class="stats">
      ${facts.map((k) => html`<${Stat} key=${k} label=${`Estimate, ${k} nearest`} value=${recall[`estimate_at_${k}`] === undefined ? 'not yet' : percent(recall[`estimate_at_${k}`])} note=${`walks ${recall[`width_at_${k}`] ?? 1} times as wide as the default`} />`)}
    </dl>
    ${recall.bounded && html`<p><${Badge} tone="warn">bounded<//> The widest walk finds less than 99 %. Search with <code>exact</code>, or make an index with a larger <code>search_beam_width</code>.</p>`}`;
}

export function OneIndex({ keyspace, index }) {
  const { features } = useSession();
  const found = useData((signal) => tableOfIndex(features, keyspace, index, signal), []);
  if (found.data !== undefined) return html`<${Known} keyspace=${keyspace} index=${index} found=${found.data} />`;
  return html`<${Page} title=${`${keyspace}.${index}`} actions=${ALL}><${Async} of=${found} label="Loading the index" /><//>`;
}

// An index whose table is known, or that has none here.
function Known({ keyspace, index, found }) {
  const data = useData(
    async (signal) => {
      const state = found?.index.kind === 'secondary' ? null : await stateOf(keyspace, index, signal);
      if (state || found) return { state };
      throw new ApiFailure('missing', `There is no index ${keyspace}.${index}.`);
    },
    [],
    { every: REFRESH_MS },
  );
  const kind = data.data && (found?.index.kind ?? kindOf(data.data.state));
  const actions = html`${ALL}
    ${kind === 'vector' && html`<a class="button quiet" href=${mapHref(keyspace, index)}>Map</a>`}
    ${data.data && found && html`<${Drop} keyspace=${keyspace} index=${index} table=${found.table} />`}`;
  return html`<${Page} title=${`${keyspace}.${index}`} actions=${actions}>
    <${Async} of=${data} label="Loading the index">
      ${({ state }) => html`<${Numbers} state=${state} kind=${kind} />
        <div class="index-columns">
          <div class="stack">
            ${state && html`<${Memory} state=${state} />`}
            ${kind === 'vector' && html`<${Recall} keyspace=${keyspace} index=${index}><${Estimate} recall=${state?.recall} /><//>`}
            <${Repair} keyspace=${keyspace} index=${index} />
          </div>
          <${Definition} keyspace=${keyspace} found=${found} state=${state} />
        </div>
        <${Tasks} keyspace=${keyspace} index=${index} />`}
    <//>
  <//>`;
}
