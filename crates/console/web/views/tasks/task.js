// One task with its parts.
import { get, path, useData } from '../../api.js';
import { count, titled } from '../../format.js';
import { Async, Card, Code, Page, Progress, Time, html, useState } from '../../ui.js';
import { indexHref } from '../links.js';
import { TaskProgress, TaskState } from './parts.js';
import { Stop } from './stop.js';
import { aboutOf, counterOf, objectOf, progressOf, rangeOf, titleOf, tookText } from './words.js';

const EVERY_MS = 2000;

function Facts({ task }) {
  const facts = [
    [task.index ? 'Index' : 'Of', task.index ? html`<a href=${indexHref(task.keyspace, task.index)}>${objectOf(task)}</a>` : objectOf(task)],
    task.index && task.table && ['Table', `${task.keyspace}.${task.table}`],
    task.entity && task.entity !== objectOf(task) && ['Reader', task.entity],
    ['Began', html`<${Time} at=${task.start_time} />`],
    [task.state === 'running' ? 'Runs for' : 'Took', tookText(task)],
    task.is_abortable || task.state !== 'running' ? null : ['Stopping', 'It can\'t be stopped by itself.'],
    ...Object.entries(task.counters ?? {}).map((counter) => {
      const { label, value } = counterOf(counter);
      return [titled(label), value];
    }),
  ].filter(Boolean);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function Part({ task }) {
  const children = task.children ?? [];
  // What needs a look is open: work that runs or failed.
  const [open, setOpen] = useState(task.state !== 'done');
  const line = html`<span class="part-name">${titleOf(task)}${rangeOf(task) && html` <span class="soft small mono">${rangeOf(task)}</span>`}</span>
    <${TaskProgress} task=${task} uncounted=${task.state === 'running' ? 'running' : ''} />
    <span class="soft number">${tookText(task)}</span>
    <${TaskState} task=${task} />`;
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
  const parts = task.children ?? [];
  return html`<${Card}>
      <div class="stack">
        <div class="row spread">
          <${TaskState} task=${task} />
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
      try {
        const tree = await get(path('/api/v1/tasks', id, 'tree'), { signal });
        setEnded(tree.state !== 'running');
        return tree;
      } catch (failure) {
        // One that is gone does not come back.
        setEnded(failure.kind === 'missing');
        throw failure;
      }
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
