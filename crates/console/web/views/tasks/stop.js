// The button that stops a task, with the question before it.
import { del, mayOperate, path } from '../../api.js';
import { Button, Confirm, html, toast, useState } from '../../ui.js';
import { objectOf, stopOf, titleOf } from './words.js';

function mayStop(task) {
  return task.state === 'running' && task.is_abortable && !task.abort_requested && mayOperate();
}

export function Stop({ task, onStopped }) {
  const [open, setOpen] = useState(false);
  if (!mayStop(task) && !open) return null;
  const stop = async () => {
    await del(path('/api/v1/tasks', task.id));
    toast(`${titleOf(task)} of ${objectOf(task)} stops.`, 'good');
    onStopped();
  };
  return html`<${Button} icon="stop" onClick=${() => setOpen(true)}>Stop<//>
    <${Confirm}
      title=${`Stop this ${titleOf(task).toLowerCase()}?`}
      open=${open}
      onClose=${() => setOpen(false)}
      onConfirm=${stop}
      confirmLabel="Stop it"
      danger
    >
      <p><code>${objectOf(task)}</code></p>
      <p>${stopOf(task)}</p>
    <//>`;
}
