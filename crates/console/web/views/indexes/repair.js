import { get, patch, path, post, put, useData } from '../../api.js';
import { count, duration, titled } from '../../format.js';
import { Async, Button, Card, Confirm, Field, Input, Select, Time, html, toast, useState } from '../../ui.js';
import { TaskProgress, TaskState } from '../tasks/parts.js';
import { Stop } from '../tasks/stop.js';

const REFRESH_MS = 3000;
const DAY_S = 86400;
const SCHEDULES = [
  { value: 0, label: 'never' },
  { value: DAY_S, label: 'each day' },
  { value: 7 * DAY_S, label: 'each week' },
  { value: 30 * DAY_S, label: 'each 30 days' },
];
const INTENSITY_HINT = 'Token ranges that are compared at a time. 0 is as many as the nodes allow.';

function Last({ task, base, reload }) {
  if (!task) return html`<p class="soft">No repair since the server started.</p>`;
  const faster = () => patch(base, { intensity: 0 }).then(() => toast('The repair goes as fast as the nodes allow.', 'good'), (failure) => toast(failure.message, 'bad'));
  const counters = Object.entries(task.counters ?? {}).filter(([, value]) => value > 0);
  return html`<dl class="facts">
      <dt>Last repair</dt><dd><${TaskState} task=${task} withError /></dd>
      <dt>Began</dt><dd><${Time} at=${task.start_time} /></dd>
      <dt>Progress</dt><dd><${TaskProgress} task=${task} /></dd>
      ${counters.map(([name, value]) => html`<dt key=${name}>${titled(name)}</dt><dd class="number">${count(value)}</dd>`)}
    </dl>
    ${task.state === 'running' && html`<div class="row"><${Stop} task=${task} onStopped=${reload} /><${Button} onClick=${faster}>As fast as it can<//></div>`}`;
}

function Schedule({ schedule, base, reload }) {
  const interval = schedule?.interval_s ?? 0;
  const options = SCHEDULES.some(({ value }) => value === interval) ? SCHEDULES : [...SCHEDULES, { value: interval, label: `each ${duration(interval * 1000)}` }];
  const change = async (event) => {
    const seconds = Number(event.target.value);
    try {
      await put(`${base}/schedule`, seconds === 0 ? { never: true } : { interval_s: seconds });
      toast('The schedule is saved.', 'good');
    } catch (failure) {
      toast(failure.message, 'bad');
    }
    reload();
  };
  return html`<${Field} label="By schedule"><${Select} value=${interval} options=${options} onChange=${change} /><//>`;
}

function Start({ base, reload, running }) {
  const [open, setOpen] = useState(false);
  const [intensity, setIntensity] = useState('1');
  const start = async () => {
    await post(base, { intensity: Number(intensity) });
    toast('The repair has begun.', 'good');
    reload();
  };
  return html`<${Button} disabled=${running} onClick=${() => setOpen(true)}>Start a repair<//>
    <${Confirm} title="Compare the index with its table?" open=${open} onClose=${() => setOpen(false)} onConfirm=${start} confirmLabel="Start the repair">
      <div class="stack">
        <p>The repair reads the whole table once, and mends what differs. Searches and writes go on.</p>
        <${Field} label="Intensity" hint=${INTENSITY_HINT}>
          <${Input} type="number" min="0" max="64" value=${intensity} onInput=${(event) => setIntensity(event.target.value)} />
        <//>
      </div>
    <//>`;
}

// The last repair of an index, its schedule, and a button for one now.
export function Repair({ keyspace, index }) {
  const base = path('/api/v1/indexes', keyspace, index, 'repair');
  const repair = useData((signal) => get(base, { signal }), [], { every: REFRESH_MS });
  return html`<${Card} title="Repair">
    <${Async} of=${repair} label="Loading the repair">
      ${({ last, schedule }) => html`<div class="stack">
        <${Last} task=${last} base=${base} reload=${repair.reload} />
        <div class="row end">
          <${Schedule} schedule=${schedule} base=${base} reload=${repair.reload} />
          <${Start} base=${base} reload=${repair.reload} running=${last?.state === 'running'} />
        </div>
      </div>`}
    <//>
  <//>`;
}
