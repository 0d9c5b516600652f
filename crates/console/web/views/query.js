// The view Query: an editor of CQL, its results, their trace, and a history.

import {
  Badge,
  Button,
  Checkbox,
  Code,
  Confirm,
  Dialog,
  Empty,
  Failure,
  Field,
  Filter,
  Input,
  Page,
  Select,
  html,
  useEffect,
  useMemo,
  useRef,
  useState,
} from '../ui.js';
import { useData } from '../api.js';
import { ago, count, duration } from '../format.js';
import { CqlEditor } from './query/editor.js';
import { examplesOf } from './query/examples.js';
import { addToHistory, clearHistory, readHistory, remember, remembered, takeHandedOver } from './query/history.js';
import { Outcome } from './query/results.js';
import { entryOf, keyOfMarker, nextPage, runStatement } from './query/run.js';
import { loadSchema } from './query/schema.js';
import { holdsSecret, markersOf, statementAt, statements } from './query/text.js';

const PAGE_SIZES = [25, 100, 500, 1000];
const CHANGES_SCHEMA = new Set(['CREATE', 'ALTER', 'DROP']);
const NEEDS_CONFIRMATION = new Set(['DROP', 'TRUNCATE']);

export default {
  id: 'query',
  title: 'Query',
  icon: 'query',
  group: 'Use',
  needs: (session) => session.features.cql,
  View,
};

// The text that the editor begins with: what another view or the address hands over, else the draft.
// It is never run by itself, as an address may come from anywhere.
function firstText(query) {
  const given = takeHandedOver();
  if (given) return given;
  if (query.get('text') !== null) return { text: query.get('text'), keyspace: query.get('keyspace') ?? '' };
  return { text: remembered('query.draft', ''), keyspace: remembered('query.keyspace', '') };
}

function View({ query }) {
  const first = useMemo(() => firstText(query), [query.toString()]);
  const handle = useRef(null);
  const schema = useData((signal) => loadSchema({ signal }), []);
  const [text, setText] = useState(first.text);
  const [place, setPlace] = useState(0);
  const [keyspace, setKeyspace] = useState(first.keyspace);
  const [settings, setSettings] = useState(() =>
    remembered('query.settings', { isReadOnly: false, trace: true, pageSize: 100 }),
  );
  const [values, setValues] = useState({});
  const [historyShown, showHistory] = useState(false);
  const runs = useRuns({ handle, keyspace, setKeyspace, settings, values, onSchema: schema.reload });
  useEffect(() => {
    if (handle.current && handle.current.text() !== first.text) handle.current.replace(first.text);
    setKeyspace(first.keyspace);
  }, [first]);
  useEffect(() => remember('query.settings', settings), [settings]);
  useEffect(() => remember('query.keyspace', keyspace), [keyspace]);
  const write = (written) => {
    handle.current.replace(written);
    handle.current.focus();
  };
  const markers = markersOf(statementAt(text, place)?.text ?? '');
  const actions = html`<${Button} icon="slow" onClick=${() => showHistory(true)}>History<//>`;
  return html`<${Page} title="Query" actions=${actions}>
    ${schema.failure && html`<${Failure} failure=${schema.failure} retry=${schema.reload} />`}
    <div class="query">
      <div class="query-desk">
        <${Toolbar} keyspaces=${schema.data?.keyspaces() ?? []} ...${{ keyspace, setKeyspace, settings, setSettings, runs }} hasSeveral=${statements(text).length > 1} />
        <${CqlEditor}
          handle=${handle}
          initial=${first.text}
          label="CQL statement"
          schema=${schema.data}
          keyspace=${keyspace}
          onChange=${(written, cursor) => {
            setText(written);
            setPlace(cursor);
            // A password is nothing to remember.
            remember('query.draft', holdsSecret(written) ? '' : written);
          }}
          onRun=${runs.run}
        />
        ${markers.length > 0 && html`<${Values} markers=${markers} values=${values} onChange=${setValues} />`}
      </div>
      <${Results} runs=${runs} schema=${schema.data} onTry=${write} onTrace=${() => runs.again({ trace: true })} />
    </div>
    <${History} open=${historyShown} onClose=${() => showHistory(false)} onChoose=${(entry) => {
      showHistory(false);
      setKeyspace(entry.keyspace ?? '');
      write(entry.text);
    }} />
    <${Confirm}
      open=${runs.waiting !== null}
      title=${`${runs.waiting?.verb ?? ''}?`}
      onConfirm=${() => runs.confirm()}
      onClose=${() => runs.dismiss()}
      confirmLabel="Send it"
      danger
    >
      <p>This statement removes data, and nothing brings it back but a backup:</p>
      <${Code} text=${runs.waiting?.text ?? ''} language="cql" bare />
    <//>
  <//>`;
}

// The runs of statements: what was answered, what is under way, and the ways to begin and end them.
function useRuns({ handle, keyspace, setKeyspace, settings, values, onSchema }) {
  const [state, setState] = useState({ outcomes: [], shown: 0, isBusy: false, tab: 'table' });
  const [waiting, setWaiting] = useState(null);
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);

  async function send(list, changes = {}) {
    abort.current?.abort();
    const controller = (abort.current = new AbortController());
    handle.current.mark(null);
    setState((before) => ({ ...before, outcomes: [], shown: 0, isBusy: true, began: performance.now() }));
    const outcomes = [];
    let used = keyspace;
    for (const statement of list) {
      const outcome = await runStatement(statement, {
        ...settings,
        ...changes,
        values,
        keyspace: used,
        signal: controller.signal,
      });
      if (controller.signal.aborted && abort.current !== controller) return;
      outcomes.push(outcome);
      if (outcome.used !== undefined) setKeyspace((used = outcome.used));
      const entry = entryOf(outcome, used);
      if (entry) addToHistory(entry);
      setState((before) => ({ ...before, outcomes: [...outcomes], shown: outcomes.length - 1 }));
      if (!outcome.ok) break;
      if (CHANGES_SCHEMA.has(statement.verb)) onSchema();
    }
    setState((before) => ({
      ...before,
      isBusy: false,
      tab: changes.trace ? 'trace' : before.tab === 'trace' ? 'table' : before.tab,
    }));
    const last = outcomes.at(-1);
    if (last?.place)
      handle.current?.mark({
        from: last.statement.from + last.place.from,
        to: last.statement.from + last.place.to,
        message: last.failure.message,
      });
  }

  const start = (list) => {
    if (list.length === 0) return handle.current.focus();
    const dangerous = settings.isReadOnly ? null : list.find(({ verb }) => NEEDS_CONFIRMATION.has(verb));
    if (dangerous) return setWaiting({ ...dangerous, list });
    return send(list);
  };

  return {
    ...state,
    waiting,
    // Runs what is selected, the statement at the cursor, or all.
    run(all) {
      const written = handle.current.text();
      const selected = handle.current.selection();
      if (all) return start(statements(written));
      if (!selected) return start([statementAt(written, handle.current.cursor())].filter(Boolean));
      const within = statements(written.slice(selected.from, selected.to));
      return start(within.map((one) => ({ ...one, from: one.from + selected.from, to: one.to + selected.from })));
    },
    again: (changes) => send([state.outcomes[state.shown].statement], changes),
    cancel: () => abort.current?.abort(),
    confirm() {
      setWaiting(null);
      send(waiting.list);
    },
    dismiss: () => setWaiting(null),
    show: (shown) => setState((before) => ({ ...before, shown })),
    showTab: (tab) => setState((before) => ({ ...before, tab })),
    async page(at) {
      const { outcomes, shown } = state;
      const put = (outcome) =>
        setState((before) => ({ ...before, isPaging: false, outcomes: before.outcomes.with(shown, outcome) }));
      if (at < outcomes[shown].pages.length) return put({ ...outcomes[shown], at });
      setState((before) => ({ ...before, isPaging: true }));
      try {
        return put(await nextPage(outcomes[shown]));
      } catch (failure) {
        return put({
          ...outcomes[shown],
          ok: false,
          failure,
          place: { from: 0, to: outcomes[shown].statement.text.length },
        });
      }
    },
  };
}

function Toolbar({ keyspaces, keyspace, setKeyspace, settings, setSettings, runs, hasSeveral }) {
  const set = (changes) => setSettings({ ...settings, ...changes });
  const names = keyspace && !keyspaces.includes(keyspace) ? [keyspace, ...keyspaces] : keyspaces;
  return html`<div class="query-toolbar">
    <${Field} label="Keyspace">
      <${Select} value=${keyspace} onChange=${(event) => setKeyspace(event.target.value)} options=${[{ value: '', label: 'none' }, ...names.map((name) => ({ value: name, label: name }))]} />
    <//>
    <${Field} label="Rows a page">
      <${Select} value=${String(settings.pageSize)} onChange=${(event) => set({ pageSize: Number(event.target.value) })} options=${PAGE_SIZES.map((size) => ({ value: String(size), label: count(size) }))} />
    <//>
    <${Checkbox} label="Trace" checked=${settings.trace} onChange=${(event) => set({ trace: event.target.checked })} />
    <${Checkbox} label="Read-only" checked=${settings.isReadOnly} onChange=${(event) => set({ isReadOnly: event.target.checked })} />
    <span class="query-keys soft small"><kbd>${isMac() ? '⌘' : 'Ctrl'}</kbd> <kbd>Enter</kbd></span>
    ${hasSeveral && html`<${Button} onClick=${() => runs.run(true)} disabled=${runs.isBusy}>Run all<//>`}
    ${runs.isBusy ? html`<${Button} icon="stop" onClick=${runs.cancel}>Cancel<//>` : html`<${Button} kind="primary" icon="play" onClick=${() => runs.run(false)}>Run<//>`}
  </div>`;
}

const isMac = () => /Mac|iPhone|iPad/.test(navigator.platform);

// The values of markers, which are sent apart from the statement.
function Values({ markers, values, onChange }) {
  return html`<fieldset class="query-values">
    <legend>Values of markers, as JSON or text</legend>
    ${markers.map((name, at) => {
      const key = keyOfMarker(name, at);
      return html`<${Field} key=${key} label=${name ? `:${name}` : `? ${at + 1}`}>
        <${Input} value=${values[key] ?? ''} onInput=${(event) => onChange({ ...values, [key]: event.target.value })} />
      <//>`;
    })}
  </fieldset>`;
}

function Results({ runs, schema, onTry, onTrace }) {
  const outcome = runs.outcomes[runs.shown];
  if (runs.isBusy && !outcome) return html`<${Running} began=${runs.began} onCancel=${runs.cancel} />`;
  if (!outcome) return html`<${Examples} schema=${schema} onTry=${onTry} />`;
  return html`<section class="query-results" aria-label="Answer" aria-busy=${runs.isBusy}>
    ${runs.outcomes.length > 1 && html`<${Outcomes} runs=${runs} />`}
    <${Outcome} key=${`${runs.shown} ${outcome.statement.from}`} outcome=${outcome} schema=${schema} shown=${runs.tab} onShow=${runs.showTab} onPage=${runs.page} busy=${runs.isPaging} wantsTrace=${onTrace} />
  </section>`;
}

function Outcomes({ runs }) {
  return html`<div class="segments" role="group" aria-label="Statements that were run">
    ${runs.outcomes.map(
      (
        { statement, ok },
        at,
      ) => html`<button type="button" key=${at} aria-pressed=${at === runs.shown} onClick=${() => runs.show(at)}>
        ${at + 1} ${statement.verb} ${!ok && html`<${Badge} tone="bad">failed<//>`}
      </button>`,
    )}
  </div>`;
}

// What is shown while a statement is under way: for how long, and that it can be given up.
function Running({ began, onCancel }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((performance.now() - began) / 1000), 100);
    return () => clearInterval(timer);
  }, [began]);
  return html`<div class="query-running" role="status">
    <p>${seconds < 0.3 ? 'Running' : `Running for ${seconds.toFixed(1)} s`}</p>
    ${seconds >= 1 && html`<${Button} onClick=${onCancel}>Cancel<//>`}
  </div>`;
}

function Examples({ schema, onTry }) {
  const examples = schema ? examplesOf(schema) : [];
  return html`<section class="query-examples" aria-label="Statements to try">
    <h2>Try one of these</h2>
    <ul>
      ${examples.map(
        ({ title, text }) => html`<li key=${title}>
          <button type="button" onClick=${() => onTry(text)}><span>${title}</span><code>${text}</code></button>
        </li>`,
      )}
    </ul>
  </section>`;
}

function History({ open, onClose, onChoose }) {
  const [entries, setEntries] = useState([]);
  const [wanted, setWanted] = useState('');
  useEffect(() => {
    if (open) setEntries(readHistory());
  }, [open]);
  if (!open) return null;
  const found = entries.filter(({ text }) => text.toLowerCase().includes(wanted.toLowerCase()));
  const actions = html`<${Button} onClick=${() => setEntries(clearHistory())} disabled=${entries.length === 0}>Clear<//>`;
  return html`<${Dialog} title="History" open wide onClose=${onClose} actions=${actions}>
    <p class="soft query-about">Statements that were run from this browser. They stay in it; those with passwords are left out.</p>
    <${Filter} value=${wanted} onChange=${setWanted} placeholder="Filter the history" />
    ${
      found.length === 0
        ? html`<${Empty} title=${entries.length ? 'Nothing matches' : 'Nothing yet'}>Statements that you run appear here.<//>`
        : html`<ul class="query-history">
          ${found.map(
            (entry) => html`<li key=${`${entry.keyspace} ${entry.text}`}>
              <button type="button" onClick=${() => onChoose(entry)}>
                <code>${entry.text}</code>
                <span class="soft">
                  ${entry.ok ? `${count(entry.rows)} ${entry.rows === 1 ? 'row' : 'rows'}, ${duration(entry.milliseconds)}` : html`<${Badge} tone="bad">failed<//>`}
                  ${entry.keyspace && ` · ${entry.keyspace}`} · ${ago(new Date(entry.at))}
                </span>
              </button>
            </li>`,
          )}
        </ul>`
    }
  <//>`;
}
