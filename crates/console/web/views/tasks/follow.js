// Follows a task on a page that goes on when it has ended.
import { del, get, path } from '../../api.js';
import { pause } from '../../polling.js';
import { toast } from '../../ui.js';

const isUnderWay = ({ state }) => state === 'created' || state === 'running';

// Looks at a task each `every` milliseconds until it has ended, and returns it. onLook(task, failure)
// hears of each look. While the server does not answer it is tried again.
export async function followTask(task, { every, signal, onLook }) {
  let now = task;
  onLook(now, null);
  while (isUnderWay(now)) {
    await pause(every, signal);
    try {
      now = await get(path('/api/v1/tasks', now.id), { signal });
      onLook(now, null);
    } catch (failure) {
      if (failure.kind !== 'away' && failure.kind !== 'busy') throw failure;
      onLook(now, failure);
    }
  }
  return now;
}

// Stops a task. Why it can't be stopped is said.
export async function stopTask(task) {
  try {
    await del(path('/api/v1/tasks', task.id));
    toast('The work stops.', 'good');
  } catch (failure) {
    toast(failure.message, 'bad');
  }
}
