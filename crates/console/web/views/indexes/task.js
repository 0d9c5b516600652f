// How a task is shown on the pages of indexes and of maps.
import { del, path } from '../../api.js';
import { count } from '../../format.js';
import { Badge, Button, Progress, html, toast } from '../../ui.js';

const TONES = { running: 'warn', done: 'good', failed: 'bad', aborted: 'quiet' };

export function TaskState({ task }) {
  return html`<span class="task-state"><${Badge} tone=${TONES[task.state]}>${task.state}<//>${task.error && html` <span class="small">${task.error}</span>`}</span>`;
}

export function TaskProgress({ task }) {
  const { progress_completed: completed, progress_total: total, progress_units: units } = task;
  const words = `${count(completed)}${total === undefined || total === null ? '' : ` of ${count(total)}`} ${units.replaceAll('_', ' ')}`;
  if (task.state !== 'running') return html`<span class="soft small">${words}</span>`;
  return html`<div class="task-progress"><${Progress} value=${completed} max=${total ?? 0} label=${`Progress: ${task.kind}`} /><span class="soft small">${words}</span></div>`;
}

// Stops a task. Why it can't be stopped is said.
export async function abortTask(task, reload) {
  try {
    await del(path('/api/v1/tasks', task.id));
    toast('The work stops.', 'good');
  } catch (failure) {
    toast(failure.message, 'bad');
  }
  reload?.();
}

export function stoppable(task, reload) {
  if (task.state !== 'running' || !task.is_abortable) return '';
  return html`<${Button} icon="stop" disabled=${task.abort_requested} onClick=${() => abortTask(task, reload)}>Stop<//>`;
}
