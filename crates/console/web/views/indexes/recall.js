import { path, post } from '../../api.js';
import { count, duration, percent } from '../../format.js';
import { Button, Card, Failure, Field, Progress, Select, Stat, html, useEffect, useRef, useState } from '../../ui.js';

const QUERIES = [20, 100, 1000];

function Measured({ measured }) {
  return html`<div role="status"><dl class="stats">
    <${Stat}
      label="Recall, measured"
      value=${percent(measured.recall)}
      tone=${measured.recall >= 0.95 ? 'good' : 'warn'}
      note=${`95 % interval ${percent(measured.low)} to ${percent(measured.high)}`}
    />
    <${Stat} label="Self-recall" value=${percent(measured.self_recall)} note="rows that their own search answers first" />
    <${Stat} label="Rows as queries" value=${count(measured.queries)} note=${`in ${duration(measured.milliseconds)}`} />
  </dl></div>`;
}

// What the samples of the index say, in `children`, and what a check of all vectors finds.
export function Recall({ keyspace, index, children }) {
  const [queries, setQueries] = useState(100);
  const [state, setState] = useState({ busy: false, measured: null, failure: null });
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const measure = async () => {
    const controller = (abort.current = new AbortController());
    setState({ busy: true, measured: null, failure: null });
    const began = performance.now();
    try {
      const answer = await post(path('/api/v1/indexes', keyspace, index, 'recall'), { queries }, { signal: controller.signal });
      setState({ busy: false, measured: { ...answer, milliseconds: performance.now() - began }, failure: null });
    } catch (failure) {
      setState({ busy: false, measured: null, failure: failure.name === 'AbortError' ? null : failure });
    }
  };
  return html`<${Card} title="Recall">
    <div class="stack">
      ${children}
      <div class="row end">
        <${Field} label="Rows as queries">
          <${Select} value=${queries} options=${QUERIES.map((one) => ({ value: one, label: count(one) }))} onChange=${(event) => setQueries(Number(event.target.value))} />
        <//>
        ${state.busy
          ? html`<${Button} icon="stop" onClick=${() => abort.current.abort()}>Stop<//>`
          : html`<${Button} icon="play" onClick=${measure}>Measure<//>`}
      </div>
      ${state.busy && html`<${Progress} label="Measuring the recall" />`}
      ${state.failure && html`<${Failure} failure=${state.failure} retry=${measure} />`}
      ${state.measured && html`<${Measured} measured=${state.measured} />`}
      <p class="soft small">A check searches for the vectors of rows that are drawn by chance, and compares what it finds with the ten nearest of all rows.</p>
    </div>
  <//>`;
}
