// The filter of a search as a form: conditions and groups of them, joined by AND or OR, each of them
// turned round by NOT.

import { Button, Input, Select, html } from '../../ui.js';
import { COMPARES, comparesFor, emptyFilter } from './filter.js';
import { isVector, typeOf } from '../tables/definition.js';

// Groups within groups beyond this are written better as CQL or JSON.
const LEVELS_MAX = 4;

export function FilterEditor({ filter, onChange, definition, hasWords, level = 0, onRemove }) {
  const columns = definition
    ? definition.columns.filter(({ type }) => !isVector(type)).map(({ name }) => name)
    : null;
  const set = (changes) => onChange({ ...filter, ...changes });
  const put = (at, part) => set({ parts: filter.parts.with(at, part) });
  const remove = (at) => set({ parts: filter.parts.toSpliced(at, 1) });
  const add = (part) => set({ parts: [...filter.parts, part] });
  const name = level === 0 ? 'filter' : 'group';
  return html`<div class=${level ? 'filter-group nested' : 'filter-group'} role="group" aria-label=${name}>
    ${
      (filter.parts.length > 1 || level > 0) &&
      html`<div class="filter-head">
      <${Select} aria-label="Conditions" value=${filter.op} onChange=${(event) => set({ op: event.target.value })} options=${[
        { value: 'and', label: 'All of these' },
        { value: 'or', label: 'One of these' },
      ]} />
      <${Not} value=${filter.not} onChange=${(not) => set({ not })} />
      ${onRemove && html`<${Remove} label="Remove the group" onClick=${onRemove} />`}
    </div>`
    }
    ${filter.parts.map((part, at) =>
      part.parts
        ? html`<${FilterEditor} key=${at} filter=${part} onChange=${(changed) => put(at, changed)} onRemove=${() => remove(at)} ...${{ definition, hasWords }} level=${level + 1} />`
        : html`<${Condition} key=${at} condition=${part} onChange=${(changed) => put(at, changed)} onRemove=${() => remove(at)} ...${{ columns, definition, hasWords }} />`,
    )}
    <div class="filter-add">
      <${Button} kind="quiet" onClick=${() => add(emptyCondition(columns, definition, hasWords))}>Add a condition<//>
      ${level < LEVELS_MAX && filter.parts.length > 0 && html`<${Button} kind="quiet" onClick=${() => add({ ...emptyFilter(), op: filter.op === 'and' ? 'or' : 'and', parts: [emptyCondition(columns, definition, hasWords)] })}>Add a group<//>`}
    </div>
  </div>`;
}

function emptyCondition(columns, definition, hasWords) {
  const column = columns?.[0] ?? '';
  return { column, compare: comparesFor(typeOf(definition, column), hasWords.has(column))[0], text: '', not: false };
}

function Condition({ condition, onChange, onRemove, columns, definition, hasWords }) {
  const set = (changes) => onChange({ ...condition, ...changes });
  const type = typeOf(definition, condition.column);
  const compares = comparesFor(type, hasWords.has(condition.column));
  const choose = (column) => {
    const possible = comparesFor(typeOf(definition, column), hasWords.has(column));
    set({ column, compare: possible.includes(condition.compare) ? condition.compare : possible[0] });
  };
  return html`<div class="filter-condition">
    ${
      columns
        ? html`<${Select} aria-label="Column" value=${condition.column} onChange=${(event) => choose(event.target.value)} options=${columns.map((name) => ({ value: name, label: name }))} />`
        : html`<${Input} aria-label="Column" placeholder="column" value=${condition.column} onInput=${(event) => choose(event.target.value)} />`
    }
    <${Select} aria-label="Comparison" value=${condition.compare} onChange=${(event) => set({ compare: event.target.value })} options=${compares.map((value) => ({ value, label: COMPARES[value].label }))} />
    ${
      type === 'boolean'
        ? html`<${Select} aria-label="Value" value=${condition.text} onChange=${(event) => set({ text: event.target.value })} options=${['', 'true', 'false'].map((value) => ({ value, label: value }))} />`
        : html`<${Input} aria-label="Value" placeholder=${exampleOf(type, condition.compare)} value=${condition.text} onInput=${(event) => set({ text: event.target.value })} />`
    }
    <${Not} value=${condition.not} onChange=${(not) => set({ not })} />
    <${Remove} label=${`Remove the condition on ${condition.column}`} onClick=${onRemove} />
  </div>`;
}

function exampleOf(type, compare) {
  if (compare === 'in') return 'a, b, c';
  return (
    { date: '2026-01-31', timestamp: '2026-01-31T12:00:00Z', time: '13:14:15', uuid: 'uuid', blob: '0x00ff' }[type] ??
    'value'
  );
}

function Not({ value, onChange }) {
  return html`<button type="button" class="toggle" aria-pressed=${value} title="Rows that do not satisfy it" onClick=${() => onChange(!value)}>not</button>`;
}

function Remove({ label, onClick }) {
  return html`<button type="button" class="remove" aria-label=${label} title=${label} onClick=${onClick}>×</button>`;
}
