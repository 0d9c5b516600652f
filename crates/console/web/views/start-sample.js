// The film sample: loaded by a click, with its index on words and its map.
import { get, path, post } from '../api.js';
import { count } from '../format.js';
import { Button, Card, Failure, Progress, html, toast, useEffect, useRef, useState } from '../ui.js';

const LOOK_MS = 400;
const WHERE = ['samples', 'movies_by_plot'];

const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

// Follows a task until it has ended.
async function follow(task, signal, show) {
  let now = task;
  while (now.state === 'created' || now.state === 'running') {
    show(now);
    await pause(LOOK_MS, signal);
    now = await get(path('/api/v1/tasks', now.id), { signal });
  }
  if (now.state !== 'done') throw new Error(now.error ?? `The task ended: ${now.state}.`);
}

// Rows, then their map: a newcomer's next click finds it ready.
async function loadFilms(signal, show) {
  const sample = await post('/api/v1/samples/movies', {}, { signal });
  await follow(sample.task ?? sample, signal, (task) => show('Loading films', task));
  const map = await post(`${path('/api/v1/indexes', ...WHERE)}/map`, {}, { signal });
  await follow(map.task, signal, (task) => show('Drawing their map', task));
}

export function Sample({ onLoaded }) {
  const [work, setWork] = useState(null);
  const [failure, setFailure] = useState(null);
  const controller = useRef(null);
  useEffect(() => () => controller.current?.abort(), []);
  const load = async () => {
    controller.current = new AbortController();
    setFailure(null);
    setWork({ label: 'Loading films' });
    try {
      await loadFilms(controller.current.signal, (label, task) => setWork({ label, task }));
      toast('The films are there, and so is their map', 'good');
      onLoaded();
    } catch (thrown) {
      if (controller.current.signal.aborted) return;
      setFailure(thrown);
    }
    setWork(null);
  };
  const { progress_completed: done, progress_total: total } = work?.task ?? {};
  return html`<${Card} title="Begin with 10,000 films">
    <div class="stack">
      <p>They have plots, genres, years and vectors of what happens in them: enough to try a search by meaning, by words, or by both.</p>
      ${failure && html`<${Failure} failure=${failure} />`}
      ${work
        ? html`<div class="stack tight" role="status">
            <span>${work.label}${total > 0 ? `: ${count(done)} of ${count(total)}` : ''}</span>
            <${Progress} label=${work.label} value=${done} max=${total} />
          </div>`
        : html`<div><${Button} kind="primary" icon="download" onClick=${load}>Load the films<//></div>`}
    </div>
  <//>`;
}
