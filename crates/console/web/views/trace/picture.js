// The trace of a request as a picture: where its time went, what a search did in numbers, and each
// step on a line of time.

import { cql, useData } from '../../api.js';
import { Async, Empty, html, useState } from '../../ui.js';
import { count } from '../../format.js';
import { MEANINGS, STAGES, pictureOf } from './steps.js';

const SESSION = 'SELECT request, duration, parameters FROM system_traces.sessions WHERE session_id = ?';
const EVENTS = 'SELECT activity, source_elapsed, thread FROM system_traces.events WHERE session_id = ?';

// A trace has 512 steps at most.
const STEPS_MAX = 1000;

async function loadTrace(id, signal) {
  const [session, events] = await Promise.all([
    cql(SESSION, { parameters: [id], signal }),
    cql(EVENTS, { parameters: [id], pageSize: STEPS_MAX, signal }),
  ]);
  const [about] = session.rows;
  return about
    ? { id, request: about.request, text: about.parameters?.query ?? '', ...pictureOf(events.rows, about.duration) }
    : null;
}

// The traces of a request, by their ids. A search over HTTP has several: of a row that is the query,
// of the statement that is prepared, and of the search.
export function TracePicture({ ids }) {
  const loaded = useData(
    async (signal) => (await Promise.all(ids.map((id) => loadTrace(id, signal)))).filter(Boolean),
    [ids.join(' ')],
  );
  return html`<${Async} of=${loaded}>${(traces) => html`<${Traces} traces=${traces} />`}<//>`;
}

function Traces({ traces }) {
  const longest = traces.reduce((best, one, at) => (one.total > traces[best].total ? at : best), 0);
  const [chosen, choose] = useState(null);
  if (traces.length === 0) {
    return html`<${Empty} title="The trace is gone">
      Traces are in memory, 4 MiB of them at most, for a day. Run the statement again.
    <//>`;
  }
  const shown = Math.min(chosen ?? longest, traces.length - 1);
  return html`<div class="trace">
    ${
      traces.length > 1 &&
      html`<div class="segments" role="group" aria-label="Requests that were traced">
      ${traces.map(
        (
          { id, steps, total },
          at,
        ) => html`<button type="button" key=${id} aria-pressed=${at === shown} onClick=${() => choose(at)}>
          ${nameOf(steps)} <span class="soft">${micros(total)}</span>
        </button>`,
      )}
    </div>`
    }
    <${Picture} key=${traces[shown].id} trace=${traces[shown]} />
  </div>`;
}

// What a trace is of, by its steps.
function nameOf(steps) {
  const has = (stage) => steps.some((step) => step.stage === stage);
  if (has('walk') || has('filter') || has('candidates')) return 'Search';
  if (has('write')) return 'Write';
  return has('rows') ? 'Read of a row' : 'Preparation';
}

function Picture({ trace }) {
  const { steps, parts, total, facts, id } = trace;
  return html`
    ${facts && html`<${Facts} facts=${facts} total=${total} />`}
    <${Strip} parts=${parts} total=${total} />
    <${Waterfall} steps=${steps} total=${total} />
    <p class="soft small trace-id">Trace <code>${id}</code>, in <code>system_traces</code> for a day</p>
  `;
}

function Facts({ facts, total }) {
  const ways = facts.ways.map(([way, times]) => (times > 1 ? `${way} × ${times}` : way)).join(', ');
  const shown = [
    ['Time', micros(total), 'From the request to its answer'],
    ['Plan', ways || 'index alone', 'How the index was searched'],
    facts.admitted !== null && ['Filter admitted', count(facts.admitted), 'Rows of the index that satisfy the filter'],
    ['Candidates', count(facts.named), `Rows that the index named, of ${count(facts.requested)} requested`],
    ['Rows read', count(facts.read), facts.gone ? `${count(facts.gone)} of them are gone` : 'From the table'],
    facts.rescored > 0 && ['Rescored', count(facts.rescored), 'Texts or rows with exact scores'],
    ['Refills', count(facts.refills), facts.refills ? 'Too few rows satisfied WHERE' : 'Candidates were enough'],
  ];
  return html`<dl class="trace-facts">
    ${shown.filter(Boolean).map(
      ([name, value, hint]) => html`<div key=${name}>
        <dt>${name}</dt>
        <dd>${value}<small>${hint}</small></dd>
      </div>`,
    )}
  </dl>`;
}

const percent = (share) => (share >= 0.995 ? '100 %' : share < 0.01 ? '< 1 %' : `${Math.round(share * 100)} %`);
const width = (share) => ({ width: `${share * 100}%` });
const colour = (stage) => `var(${STAGES[stage].colour})`;

function Strip({ parts, total }) {
  const words = parts.map(({ stage, share }) => `${STAGES[stage].label} ${percent(share)}`).join(', ');
  return html`<figure class="trace-parts">
    <div class="trace-strip" role="img" aria-label=${`${micros(total)}: ${words}`}>
      ${parts.map(({ stage, share }) => html`<span key=${stage} style=${{ ...width(share), background: colour(stage) }} />`)}
    </div>
    <ul class="trace-legend">
      ${parts.map(
        ({ stage, micros: time, share }) => html`<li key=${stage} title=${MEANINGS[stage]}>
          <i style=${{ background: colour(stage) }} aria-hidden="true" />
          <span>${stage === 'other' ? 'Between steps' : STAGES[stage].label}</span>
          <b>${micros(time)}</b>
          <span class="soft">${percent(share)}</span>
        </li>`,
      )}
    </ul>
  </figure>`;
}

function Waterfall({ steps, total }) {
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Steps of the trace">
    <table class="trace-steps">
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col" class="trace-axis">
            <span>0</span><span>${micros(total / 2)}</span><span>${micros(total)}</span>
          </th>
          <th scope="col" class="number">At</th>
        </tr>
      </thead>
      <tbody>
        ${steps.map(
          (step, at) => html`<tr key=${at} class=${at > 0 && step.round !== steps[at - 1].round ? 'trace-round' : ''}>
            <td>
              <span class="trace-stage"><i style=${{ background: colour(step.stage) }} aria-hidden="true" />${STAGES[step.stage].label}</span>
              <span class="trace-activity">${step.activity}</span>
            </td>
            <td class="trace-track"><div><${StepBar} step=${step} total=${total} /></div></td>
            <td class="number" title=${step.thread}>${micros(step.at)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function StepBar({ step, total }) {
  const length = (step.to - step.from) / total;
  const place = { left: `${(step.from / total) * 100}%`, background: colour(step.stage), ...width(length) };
  return html`<span class=${length === 0 ? 'trace-bar trace-moment' : 'trace-bar'} style=${place} />`;
}

// Microseconds for a reader.
export function micros(time) {
  if (time < 1000) return `${Math.round(time)} µs`;
  if (time < 1e6) return `${(time / 1000).toPrecision(3)} ms`;
  return `${(time / 1e6).toPrecision(3)} s`;
}
