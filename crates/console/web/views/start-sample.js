// The film sample: loaded by a click, with its index on words and its map.
import { path, post } from '../api.js';
import { count } from '../format.js';
import { Button, Card, Failure, Progress, html, toast, useEffect, useRef, useState } from '../ui.js';
import { followTask } from './tasks/follow.js';

const LOOK_MS = 400;
const WHERE = ['samples', 'movies_by_plot'];

// The map is drawn meanwhile: a newcomer's next click finds it ready, or nearly.
async function beginMap(signal) {
  try {
    await post(`${path('/api/v1/indexes', ...WHERE)}/map`, {}, { signal });
    toast('The films are there, and their map is drawn', 'good');
  } catch (failure) {
    if (signal.aborted) throw failure;
    toast(`The films are there, but not their map: ${failure.message}`, 'warn');
  }
}

// `running`: the task of a load that another page has begun. onBusy says whether this one follows a load.
export function Sample({ running, onBusy, onLoaded }) {
  const [work, setWork] = useState(null);
  const [failure, setFailure] = useState(null);
  const controller = useRef(null);
  const load = async (begin) => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    setFailure(null);
    setWork({});
    onBusy(true);
    try {
      const onLook = (task, unanswered) => {
        setWork({ task });
        setFailure(unanswered);
      };
      const ended = await followTask(await begin(signal), { every: LOOK_MS, signal, onLook });
      if (ended.state !== 'done') throw new Error(ended.error ?? `The task ended: ${ended.state}.`);
      await beginMap(signal);
      onLoaded();
    } catch (thrown) {
      if (signal.aborted) return;
      setFailure(thrown);
    }
    setWork(null);
    onBusy(false);
  };
  useEffect(() => {
    if (running) load(() => running);
    return () => controller.current?.abort();
  }, []);
  const { progress_completed: done, progress_total: total } = work?.task ?? {};
  return html`<${Card} title="Begin with 10,000 films">
    <div class="stack">
      <p>They have plots, genres, dates and vectors of what happens in them: enough to try a search by meaning, by words, or by both.</p>
      ${failure && html`<${Failure} failure=${failure} />`}
      ${work
        ? html`<div class="stack tight" role="status">
            <span>Loading films${total > 0 ? `: ${count(done)} of ${count(total)}` : ''}</span>
            <${Progress} label="Films that are loaded" value=${done} max=${total} />
          </div>`
        : html`<div><${Button} kind="primary" icon="download" onClick=${() => load((signal) => post('/api/v1/samples/movies', {}, { signal }))}>Load the films<//></div>`}
    </div>
  <//>`;
}
