import { get, useData } from '../../api.js';
import { Async, Card, Empty, Table, Time, html } from '../../ui.js';
import { taskHref } from '../links.js';
import { TaskProgress, TaskState } from '../tasks/parts.js';
import { Stop } from '../tasks/stop.js';
import { stateOf, titleOf } from '../tasks/words.js';

const REFRESH_MS = 3000;

const COLUMNS = [
  { key: 'kind', label: 'Work', sort: titleOf, render: titleOf },
  { key: 'state', label: 'State', sort: (task) => stateOf(task).label, render: (task) => html`<${TaskState} task=${task} withError />` },
  { key: 'progress', label: 'Progress', render: (task) => html`<${TaskProgress} task=${task} />` },
  { key: 'start_time', label: 'Began', sort: true, render: (task) => html`<${Time} at=${task.start_time} />` },
  { key: 'end_time', label: 'Ended', sort: true, render: (task) => (task.end_time ? html`<${Time} at=${task.end_time} />` : '') },
];

// Only what runs can be stopped.
function columnsOf(tasks, reload) {
  if (!tasks.some((task) => task.state === 'running')) return COLUMNS;
  return [...COLUMNS, { key: 'stop', label: 'Stop', render: (task) => html`<${Stop} task=${task} onStopped=${reload} />` }];
}

// The builds and the other long work of an index.
export function Tasks({ keyspace, index }) {
  const tasks = useData(
    async (signal) => {
      const all = await get('/api/v1/tasks', { signal });
      return all.filter((task) => task.keyspace === keyspace && task.index === index).sort((one, other) => other.sequence_number - one.sequence_number);
    },
    [],
    { every: REFRESH_MS },
  );
  return html`<${Card} title="Builds and other long work" flush>
    <${Async} of=${tasks} label="Loading the tasks" empty=${html`<${Empty} title="Nothing since the server started">Builds, repairs, checks and maps of this index appear here.<//>`}>
      ${(rows) => html`<${Table} caption="Tasks of the index" columns=${columnsOf(rows, tasks.reload)} rows=${rows} rowKey="id" rowHref=${taskHref} />`}
    <//>
  <//>`;
}
