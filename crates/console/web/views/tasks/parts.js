// Parts of views that show tasks: the state of one, and how far it is.
import { percent } from '../../format.js';
import { Badge, Progress, html } from '../../ui.js';
import { objectOf, progressOf, stateOf, titleOf } from './words.js';

// `withError`: why it failed is next to it.
export function TaskState({ task, withError }) {
  const { tone, label } = stateOf(task);
  const badge = html`<${Badge} tone=${tone}>${label}<//>`;
  if (!withError || !task.error) return badge;
  return html`<span class="task-state">${badge} <span class="small">${task.error}</span></span>`;
}

// A bar while it runs, and numbers. `share` is known better than the task knows it. `uncounted`: the
// words for a task that counts nothing.
export function TaskProgress({ task, share, uncounted = 'not counted' }) {
  const numbers = share === undefined ? progressOf(task) : percent(share);
  const words = html`<span class="soft small number">${numbers ?? uncounted}</span>`;
  if (task.state !== 'running') return words;
  const value = share ?? task.progress_completed;
  const max = share === undefined ? (task.progress_total ?? 0) : 1;
  return html`<span class="task-progress">
    <${Progress} value=${value} max=${max} label=${`Progress of ${titleOf(task)} of ${objectOf(task)}`} />
    ${words}
  </span>`;
}
