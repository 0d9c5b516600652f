// What runs, and how it is.
import { get, useData } from '../api.js';
import { count, duration } from '../format.js';
import { Async, Card, Icon, Stat, html } from '../ui.js';
import { indexHref, taskHref } from './links.js';
import { isLog } from './tables/definition.js';
import { useTables } from './tables/sizes.js';

const EVERY_MS = 5000;
const LINES_MAX = 5;
// A lag that searches notice.
const LAG_S = 10;

async function load(features, readTables, signal) {
  const [service, indexes, tasks, maintenance] = await Promise.all([
    features.indexes ? get('/api/v1/status', { signal }) : null,
    features.indexes ? get('/api/v1/indexes', { signal }) : [],
    features.tasks ? get('/api/v1/tasks', { signal }) : [],
    // A gateway without a store has no such work.
    features.indexes ? get('/api/v1/maintenance', { signal }) : null,
  ]);
  const ended = tasks.filter((task) => task.state !== 'running').length;
  const tables = features.tables ? await readTables(signal, `${indexes.length} ${ended}`) : null;
  return { service: service?.status ?? service, indexes, tables, tasks, maintenance: maintenance?.maintenance ?? false };
}

// What a person has to know now, each with the place that has more.
function worriesOf({ service, indexes, tasks, maintenance }) {
  const worries = [];
  const add = (tone, text, href) => worries.push({ tone, text, href });
  if (maintenance) add('warn', 'The server is in maintenance: new work is refused.', '#/settings');
  if (service && service !== 'SERVING') add('warn', `The index service is ${service}.`, '#/indexes');
  for (const index of indexes) {
    const name = `${index.keyspace}.${index.index}`;
    const href = indexHref(index.keyspace, index.index);
    if (index.status !== 'SERVING') add('warn', `${name} is built: ${Math.floor(index.build_progress ?? 0)} %.`, href);
    if (index.rows_without_room > 0) add('bad', `${name} has no room for ${count(index.rows_without_room)} rows.`, href);
    if (index.lag_seconds > LAG_S) add('warn', `${name} is ${duration(index.lag_seconds * 1000)} behind its table.`, href);
  }
  for (const task of tasks.filter((one) => one.state === 'failed')) {
    const of = task.index ? ` of ${task.keyspace}.${task.index}` : '';
    add('bad', `A task failed: ${task.kind}${of}.`, taskHref(task));
  }
  return worries.sort((left, right) => (left.tone === right.tone ? 0 : left.tone === 'bad' ? -1 : 1));
}

function Worries({ worries }) {
  if (worries.length === 0) {
    return html`<p class="worry good"><${Icon} name="check" size="16" /> Nothing needs your attention.</p>`;
  }
  const more = worries.length - LINES_MAX;
  return html`<ul class="stack tight">
    ${worries.slice(0, LINES_MAX).map(
      (worry) => html`<li class=${`worry ${worry.tone}`}><${Icon} name="warning" size="16" /> <a href=${worry.href}>${worry.text}</a></li>`,
    )}
    ${more > 0 && html`<li class="soft">And ${count(more)} more.</li>`}
  </ul>`;
}

function Figures({ data, features }) {
  const { service, indexes, tables, tasks } = data;
  const own = tables?.filter(({ table }) => !isLog(table));
  const lag = Math.max(0, ...indexes.map((index) => index.lag_seconds ?? 0));
  const serving = service === null || service === 'SERVING';
  return html`<dl class="stats">
    <${Stat} label="State" value=${serving ? 'Serving' : 'Starting'} tone=${serving ? 'good' : 'warn'} />
    ${own && html`<${Stat} label="Tables" value=${count(own.length)} />`}
    ${features.indexes &&
    html`<${Stat} label="Indexes" value=${count(indexes.length)} />
      <${Stat} label="Rows in indexes" value=${count(indexes.reduce((sum, index) => sum + (index.count ?? 0), 0))} />
      <${Stat} label="Furthest behind" value=${indexes.length === 0 ? 'none' : lag < 1 ? 'under 1 s' : duration(lag * 1000)} />`}
    ${features.tasks && html`<${Stat} label="Tasks that run" value=${count(tasks.filter((task) => task.state === 'running').length)} />`}
  </dl>`;
}

// The state of the server, looked at again every few seconds.
export function useStatus(features) {
  const readTables = useTables();
  return useData((signal) => load(features, readTables, signal), [], { every: EVERY_MS });
}

export function Status({ of, features }) {
  return html`<${Card} title="How it is">
    <${Async} of=${of} label="Looking">
      ${(data) => html`<div class="stack"><${Figures} data=${data} features=${features} /><${Worries} worries=${worriesOf(data)} /></div>`}
    <//>
  <//>`;
}
