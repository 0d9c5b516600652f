// A search in other forms: as CQL, as code to copy, and as the trace of how it was done.

import { Async, Button, Code, Copy, Empty, html, navigate, useState } from '../../ui.js';
import { request, useData, useSession } from '../../api.js';
import { handOver } from '../query/history.js';
import { TracePicture } from '../trace/picture.js';
import { curlOf, pythonOf, shortened } from './code.js';
import { cqlOf } from './request.js';
import { valueOfRow } from './run.js';

// The search as a statement, which gives the same rows in the query view.
export function CqlOfSearch({ form, pair, queries }) {
  const byRow = queries.find(({ field }) => field.row);
  const value = useData(
    async (signal) => (byRow ? { value: await valueOfRow(byRow, { signal }) } : {}),
    [JSON.stringify(byRow?.field ?? null)],
  );
  return html`<${Async} of=${value}>${({ value: rowValue }) => html`<${Statement} same=${cqlOf(form, pair, queries, rowValue)} />`}<//>`;
}

function Statement({ same }) {
  if (same.reason) {
    return html`<${Empty} title="There is no such statement">
      ${same.reason}, so this filter works over HTTP only. The tab Code has the request.
    <//>`;
  }
  const open = () => {
    handOver(same.text);
    navigate('#/query');
  };
  return html`
    <${Text} text=${same.text} language="cql" actions=${html`<${Button} onClick=${open}>Open in Query<//>`} />
    ${same.notes.map((note) => html`<p class="soft small" key=${note}>${note}</p>`)}
  `;
}

// A text to copy. Long vectors are shortened to the eye; the copy has them whole.
function Text({ text, language, before = null, actions = null }) {
  const [isWhole, setWhole] = useState(false);
  const short = shortened(text);
  return html`<div class="same">
    <div class="same-bar">
      ${before}
      <span class="same-space"></span>
      ${short !== text && html`<button type="button" class="toggle" aria-pressed=${isWhole} onClick=${() => setWhole(!isWhole)}>Whole vector</button>`}
      ${actions}
      <${Copy} text=${text} label="Copy" />
    </div>
    <${Code} text=${isWhole ? text : short} language=${language} bare />
    ${short !== text && !isWhole && html`<p class="soft small">The vector is shortened here. The copy has it whole.</p>`}
  </div>`;
}

const LANGUAGES = { curl: curlOf, Python: pythonOf };

export function CodeOfSearch({ route, body }) {
  const { login } = useSession();
  const [language, setLanguage] = useState('curl');
  // The reasons of the order are for this page.
  const { explain, ...sent } = body;
  const choice = html`<div class="segments" role="group" aria-label="Language">
    ${Object.keys(LANGUAGES).map((name) => html`<button type="button" key=${name} aria-pressed=${name === language} onClick=${() => setLanguage(name)}>${name}</button>`)}
  </div>`;
  const text = LANGUAGES[language](route, sent, login);
  return html`<${Text} text=${text} language=${language === 'curl' ? 'bash' : 'python'} before=${choice} />`;
}

// The search once more, with a trace.
export function TraceOfSearch({ route, body }) {
  const traced = useData(
    async (signal) => {
      const response = await request('POST', route, { body, signal, headers: { 'X-Annulus-Trace': '1' }, raw: true });
      return (response.headers.get('X-Annulus-Trace') ?? '').split(' ').filter(Boolean);
    },
    [route, JSON.stringify(body)],
  );
  return html`<${Async} of=${traced}>
    ${(ids) => (ids.length > 0 ? html`<${TracePicture} ids=${ids} />` : html`<${Empty} title="There is no trace">The server gave no id of one for this search.<//>`)}
  <//>`;
}
