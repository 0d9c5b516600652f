// One task with its parts.
import { get, path, useData } from '../../api.js';
import { count } from '../../format.js';
import { Async, Badge, Card, Code, Page, Progress, Time, html, useState } from '../../ui.js';
import { Stop } from './stop.js';
import { aboutOf, counterOf, objectOf, progressOf, rangeOf, stateOf, titleOf, tookText } from './words.js';

const EVERY_MS = 2000;

function Measure({ task }) {
  const text = progressOf(task);
  if (task.state !== 'running') return html`<span class="soft number">${text}</span>`;
  return html`<span class="task-progress">
    <${Progress} value=${task.progress_completed} max=${task.progress_total ?? 0} label=${`Progress of ${titleOf(task)}`} />
    <span class="soft number">${text ?? 'running'}</span>
  </span>`;
}

function Facts({ task }) {
  const link = task.index && `#/indexes/${encodeURIComponent(task.keyspace)}/${encodeURIComponent(task.index)}`;
  const facts = [
    [task.index ? 'Index' : 'Of', link ? html`<a href=${link}>${objectOf(task)}</a>` : objectOf(task)],
    task.index && task.table && ['Table', `${task.keyspace}.${task.table}`],
    task.entity && task.entity !== objectOf(task) && ['Reader', task.entity],
    ['Began', html`<${Time} at=${task.start_time} />`],
    [task.state === 'running' ? 'Runs for' : 'Took', tookText(task)],
    task.is_abortable || task.state !== 'running' ? null : ['Stopping', 'It can\'t be stopped by itself.'],
    ...Object.entries(task.counters ?? {}).map((counter) => {
      const { label, value } = counterOf(counter);
      return [label[0].toUpperCase() + label.slice(1), value];
    }),
  ].filter(Boolean);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function Part({ task }) {
  const children = task.children ?? [];
  // What needs a look is open: work that runs or failed.
  const [open, setOpen] = useState(task.state !== 'done');
  const state = stateOf(task);
  const line = html`<span class="part-name">${titleOf(task)}${rangeOf(task) && html` <span class="soft small mono">${rangeOf(task)}</span>`}</span>
    <${Measure} task=${task} />
    <span class="soft number">${tookText(task)}</span>
    <${Badge} tone=${state.tone}>${state.label}<//>`;
  const problem = task.error && html`<p class="field-error small">${task.error}</p>`;
  if (children.length === 0) return html`<li><div class="part">${line}</div>${problem}</li>`;
  return html`<li>
    <details open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary class="part">${line}</summary>
      ${problem}
      <${Parts} tasks=${children} leftOut=${task.children_left_out} />
    </details>
  </li>`;
}

function Parts({ tasks, leftOut }) {
  return html`<ul class="parts">
    ${tasks.map((task) => html`<${Part} key=${task.id} task=${task} />`)}
    ${leftOut > 0 && html`<li class="soft small">${count(leftOut)} more parts have ended and are no longer listed.</li>`}
  </ul>`;
}

function Whole({ task }) {
  const state = stateOf(task);
  const parts = task.children ?? [];
  return html`<${Card}>
      <div class="stack">
        <div class="row spread">
          <${Badge} tone=${state.tone}>${state.label}<//>
          <span class="soft number">${progressOf(task)}</span>
        </div>
        ${task.state === 'running' &&
        html`<${Progress} value=${task.progress_completed} max=${task.progress_total ?? 0} label="Progress" />`}
        ${task.error && html`<p class="task-error" role="alert">${task.error}</p>`}
        <${Facts} task=${task} />
      </div>
    <//>
    ${parts.length > 0 &&
    html`<${Card} title="Parts"><${Parts} tasks=${parts} leftOut=${task.children_left_out} /><//>`}
    ${task.state === 'running' &&
    html`<${Card} title="From a shell">
      <${Code} text=${`annulus tasks wait ${task.id}`} language="bash" label="Command that waits" />
    <//>`}`;
}

export function Task({ id }) {
  const [ended, setEnded] = useState(false);
  const task = useData(
    async (signal) => {
      const tree = await get(path('/api/v1/tasks', id, 'tree'), { signal });
      setEnded(tree.state !== 'running');
      return tree;
    },
    [id],
    { every: ended ? undefined : EVERY_MS },
  );
  const one = task.data;
  return html`<${Page}
    title=${one ? titleOf(one) : 'Task'}
    lead=${one && aboutOf(one)}
    back=${{ href: '#/tasks', label: 'Tasks' }}
    actions=${one && html`<${Stop} task=${one} onStopped=${task.reload} />`}
  >
    <${Async} of=${task} label="Loading the task">${(data) => html`<${Whole} task=${data} />`}<//>
    ${task.failure?.kind === 'missing' &&
    html`<p class="soft">Tasks that have ended stay listed for a while, and until the server restarts.</p>`}
  <//>`;
}
