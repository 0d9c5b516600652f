import { get, path, useData } from '../api.js';
import { Async, Badge, Card, Empty, Filter, Page, Select, Table, Time, html, useState, wordsOf } from '../ui.js';
import { taskHref } from './links.js';
import { TaskProgress, TaskState } from './tasks/parts.js';
import { Stop } from './tasks/stop.js';
import { Task } from './tasks/task.js';
import { objectOf, progressOf, stateOf, titleOf, tookOf, tookText } from './tasks/words.js';

const RUNNING_MS = 2000;
const QUIET_MS = 5000;
// The steps of a build say little: its index knows how much of the table it has. Of more builds the steps do.
const BUILDS_LOOKED_AT = 20;

async function load(signal) {
  const tasks = await get('/api/v1/tasks', { signal });
  const builds = tasks.filter((task) => task.kind === 'build' && task.state === 'running' && task.index);
  await Promise.all(
    builds.slice(0, BUILDS_LOOKED_AT).map(async (task) => {
      const status = await get(path('/api/v1/indexes', task.keyspace, task.index, 'status'), { signal }).catch((failure) => {
        // An index that was dropped meanwhile, or one that the login may not see.
        if (failure.name === 'AbortError') throw failure;
        return null;
      });
      if (typeof status?.build_progress === 'number') task.share = status.build_progress / 100;
    }),
  );
  return tasks;
}

function Name({ task }) {
  return html`<span class="task-name">
    <span>${titleOf(task)}</span>
    <span class="soft small mono">${objectOf(task)}</span>
  </span>`;
}

const RUNNING = (reload) => [
  { key: 'kind', label: 'Work', sort: titleOf, width: '36%', render: (task) => html`<${Name} task=${task} />` },
  { key: 'progress', label: 'Progress', width: '30%', render: (task) => html`<${TaskProgress} task=${task} share=${task.share} />` },
  { key: 'took', label: 'Runs for', align: 'right', sort: tookOf, render: (task) => tookText(task) },
  {
    key: 'stop',
    label: 'Stop',
    align: 'right',
    render: (task) => {
      if (task.abort_requested) return html`<${Badge} tone="warn">Stopping<//>`;
      return task.is_abortable ? html`<${Stop} task=${task} onStopped=${reload} />` : html`<span class="soft">no</span>`;
    },
  },
];

const ENDED = [
  { key: 'kind', label: 'Work', sort: titleOf, width: '36%', render: (task) => html`<${Name} task=${task} />` },
  {
    key: 'state',
    label: 'Result',
    sort: (task) => stateOf(task).label,
    render: (task) => html`<${TaskState} task=${task} />`,
  },
  { key: 'progress', label: 'Done', render: (task) => progressOf(task) ?? html`<span class="soft">not counted</span>` },
  { key: 'took', label: 'Took', align: 'right', sort: tookOf, render: (task) => tookText(task) },
  { key: 'end_time', label: 'Ended', align: 'right', sort: true, render: (task) => html`<${Time} at=${task.end_time} />` },
];

const RESULTS = [
  { value: '', label: 'All results' },
  { value: 'failed', label: 'Failed' },
  { value: 'aborted', label: 'Stopped' },
  { value: 'done', label: 'Done' },
];

const textOf = (task) => `${titleOf(task)} ${task.kind} ${objectOf(task)} ${task.table ?? ''} ${task.error ?? ''}`;

function Tasks({ tasks, reload }) {
  const [filter, setFilter] = useState('');
  const [result, setResult] = useState('');
  const matches = wordsOf(filter);
  const shown = tasks.filter((task) => matches(textOf(task)));
  const running = shown.filter((task) => task.state === 'running');
  const ended = shown.filter((task) => task.state !== 'running' && (!result || task.state === result));
  const isFiltered = filter.trim() !== '' || result !== '';
  const nothing = !isFiltered ? html`<p class="task-none soft">Nothing has ended yet.</p>` : html`<${Empty} title="No task matches">Another word may be in the kind of work, a table or an index.<//>`;
  return html`<div class="row spread">
      <${Filter} value=${filter} onChange=${setFilter} placeholder="Filter tasks" />
      <${Select} aria-label="Results" options=${RESULTS} value=${result} onChange=${(event) => setResult(event.target.value)} />
    </div>
    <${Card} title="Running now" flush>
      <div class="running-tasks"><${Table}
        caption="Running tasks"
        columns=${RUNNING(reload)}
        rows=${running}
        rowKey="id"
        rowHref=${taskHref}
        empty=${html`<p class="task-none soft">${filter.trim() !== '' ? 'No task that runs matches.' : 'Nothing runs.'}</p>`}
      /></div>
    <//>
    <${Card} title="Ended lately" flush>
      <${Table}
        caption="Ended tasks"
        columns=${ENDED}
        rows=${ended}
        rowKey="id"
        rowHref=${taskHref}
        order=${{ key: 'end_time', down: true }}
        empty=${nothing}
      />
    <//>`;
}

function List() {
  const [busy, setBusy] = useState(false);
  const tasks = useData(
    async (signal) => {
      const found = await load(signal);
      setBusy(found.some((task) => task.state === 'running'));
      return found;
    },
    [],
    { every: busy ? RUNNING_MS : QUIET_MS },
  );
  const none = html`<${Card}>
    <${Empty} title="No task yet">
      Builds of indexes, repairs, backups, checks of files and maps are tasks. They appear here while they run, and stay
      listed for a while.
    <//>
  <//>`;
  return html`<${Page} title="Tasks" lead="Long work of this server: what runs, how far it is, and how it ended.">
    <${Async} of=${tasks} label="Loading the tasks" empty=${none}>
      ${(data) => html`<${Tasks} tasks=${data} reload=${tasks.reload} />`}
    <//>
  <//>`;
}

function View({ parts }) {
  return parts.length > 0 ? html`<${Task} key=${parts[0]} id=${parts[0]} />` : html`<${List} />`;
}

export default {
  id: 'tasks',
  title: 'Tasks',
  icon: 'tasks',
  group: 'Watch',
  needs: (session) => session.features.tasks,
  View,
};
