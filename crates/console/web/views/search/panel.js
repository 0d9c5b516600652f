// The form of a search: words, what the rows should be near to, the balance of both, filters.

import { Badge, Button, Checkbox, Field, Input, Select, Slider, TextArea, html } from '../../ui.js';
import { useSession } from '../../api.js';
import { count } from '../../format.js';
import { hasNear, isAnswerable } from './form.js';
import { FilterEditor } from './filter-editor.js';
import { unindexed } from './filter.js';
import { filterable } from './targets.js';
import { jsonName, keyColumns, typeOf } from '../tables/definition.js';

const LIMITS = [5, 10, 20, 50, 100, 1000];

export function SearchForm({ form, onChange, target, pair, onSearch, onSettle, onPartner }) {
  const set = (changes) => onChange({ ...form, ...changes });
  const submit = (event) => {
    event.preventDefault();
    if (isAnswerable(form)) onSearch();
  };
  const hasBoth = pair.words && pair.vectors && form.words.trim() && hasNear(form);
  return html`<form class="search-form" onSubmit=${submit}>
    ${pair.words && html`<${Words} form=${form} set=${set} column=${pair.words.column} />`}
    ${(pair.vectors || target.table) && html`<${Near} form=${form} set=${set} target=${target} pair=${pair} />`}
    ${hasBoth && html`<${Balance} form=${form} set=${set} onSettle=${onSettle} />`}
    ${pair.partners?.length > 1 && html`<${Partner} pair=${pair} target=${target} onPartner=${onPartner} />`}
    <${Filters} form=${form} set=${set} target=${target} pair=${pair} />
    <div class="search-submit">
      <${Button} kind="primary" type="submit" disabled=${!isAnswerable(form)}>Search<//>
      <${Field} label="Rows">
        <${Select} value=${String(form.limit)} onChange=${(event) => set({ limit: Number(event.target.value) })} options=${limitsWith(form.limit).map((limit) => ({ value: String(limit), label: count(limit) }))} />
      <//>
      ${pair.vectors && hasNear(form) && html`<${Checkbox} label="Exact" checked=${form.exact} onChange=${(event) => set({ exact: event.target.checked })} />`}
    </div>
  </form>`;
}

const limitsWith = (limit) => [...new Set([...LIMITS, limit])].sort((one, other) => one - other);

function Words({ form, set, column }) {
  const hint = form.operators
    ? html`<code>AND</code> <code>OR</code> <code>NOT</code> <code>"a phrase"</code> <code>pre*</code> <code>fuzzy~1</code>`
    : null;
  return html`
    <${Field} label=${column ? `Words in ${column}` : 'Words'} hint=${hint}>
      <${Input} type="search" value=${form.words} onInput=${(event) => set({ words: event.target.value })} />
    <//>
    <${Checkbox} label="With operators" checked=${form.operators} onChange=${(event) => set({ operators: event.target.checked })} />
  `;
}

const NEARS = { nothing: 'Nothing', row: 'A row', vector: 'A vector', sentence: 'A sentence' };

function Near({ form, set, target, pair }) {
  const { features } = useSession();
  const ways = [
    pair.words && 'nothing',
    target.table && 'row',
    pair.vectors && 'vector',
    pair.vectors && features.embeddings && 'sentence',
  ].filter(Boolean);
  const chosen = ways.includes(form.near) ? form.near : ways[0];
  const column = (pair.vectors ?? pair.words).column;
  // A form without words has to be near to something.
  if (chosen !== form.near) queueMicrotask(() => set({ near: chosen }));
  return html`<fieldset class="search-near">
    <legend>${column ? `Near to, by ${column}` : 'Near to'}</legend>
    <div class="segments" role="radiogroup" aria-label="Near to">
      ${ways.map(
        (way) => html`<label key=${way} class=${way === chosen ? 'chosen' : ''}>
          <input type="radio" name="near" value=${way} checked=${way === chosen} onChange=${() => set({ near: way })} />${NEARS[way]}
        </label>`,
      )}
    </div>
    ${chosen === 'row' && html`<${Row} form=${form} set=${set} definition=${target.definition} />`}
    ${chosen === 'vector' && html`<${Vector} form=${form} set=${set} dimensions=${pair.vectors.dimensions} />`}
    ${chosen === 'sentence' && html`<${Sentence} form=${form} set=${set} />`}
    ${pair.vectors && !features.embeddings && html`<p class="soft small">To search by a sentence, start the server with <code class="flag">--embeddings-url</code>.</p>`}
  </fieldset>`;
}

function Row({ form, set, definition }) {
  return keyColumns(definition).map((name) => {
    const key = jsonName(name);
    const value = form.row[key] ?? '';
    return html`<${Field} key=${name} label=${`${name} (${typeOf(definition, name)})`}>
      <${Input} value=${typeof value === 'object' ? JSON.stringify(value) : String(value)} onInput=${(event) => set({ row: { ...form.row, [key]: event.target.value } })} />
    <//>`;
  });
}

function Vector({ form, set, dimensions }) {
  const label = dimensions ? `${count(dimensions)} numbers` : 'Numbers';
  return html`<${Field} label=${label}>
    <${TextArea} rows="3" spellcheck=${false} placeholder="[0.12, -0.03, …]" value=${form.vector} onInput=${(event) => set({ vector: event.target.value })} />
  <//>`;
}

function Sentence({ form, set }) {
  return html`<${Field} label="Sentence" hint="The server has it embedded, and looks for vectors near to it.">
    <${TextArea} rows="2" value=${form.sentence} onInput=${(event) => set({ sentence: event.target.value })} />
  <//>`;
}

// How much words and vectors count. Where the slider is let go, the search is done again.
function Balance({ form, set, onSettle }) {
  const words = 100 - form.balance;
  return html`<fieldset class="search-balance">
    <legend>Balance</legend>
    <div class="balance-slider">
      <${Slider} aria-label="Share of vectors, in per cent" min="0" max="100" step="5" value=${form.balance} aria-valuetext=${`words ${words} %, vectors ${form.balance} %`} onInput=${(event) => set({ balance: Number(event.target.value) })} onChange=${(event) => onSettle({ ...form, balance: Number(event.target.value) })} />
    </div>
    <div class="balance-ends"><span>Words <b>${words} %</b></span><span>Vectors <b>${form.balance} %</b></span></div>
    <${Field} label="Ordered by" hint=${form.rank === 'rrf' ? 'Places in both lists: needs no scale (RRF).' : 'Scores: vectors have 0 to 1, words have no upper bound.'}>
      <${Select} value=${form.rank} onChange=${(event) => onSettle({ ...form, rank: event.target.value })} options=${[
        { value: 'rrf', label: 'Ranks' },
        { value: 'score', label: 'Scores' },
      ]} />
    <//>
  </fieldset>`;
}

function Partner({ pair, target, onPartner }) {
  const other = target.kind === 'words' ? pair.vectors : pair.words;
  return html`<${Field} label=${target.kind === 'words' ? 'Vectors of' : 'Words of'}>
    <${Select} value=${other.column} onChange=${(event) => onPartner(event.target.value)} options=${pair.partners.map(({ column }) => ({ value: column, label: column }))} />
  <//>`;
}

function Filters({ form, set, target, pair }) {
  const used = [hasNear(form) && (pair.vectors ?? pair.words), form.words.trim() && pair.words].filter(Boolean);
  const searched = used.length > 0 ? used : [target];
  const slow = target.table ? unindexed(form.filter, commonFilters(searched)) : [];
  return html`<fieldset class="search-filters">
    <legend>Filter</legend>
    <${FilterEditor} filter=${form.filter} onChange=${(filter) => set({ filter })} definition=${target.definition} hasWords=${pair.words ? new Set([pair.words.column]) : new Set()} />
    ${slow.length > 0 && html`<p class="soft small"><${Badge} tone="warn">slow<//> No index has ${slow.join(', ')}: rows are read and checked one by one.</p>`}
    ${target.localKey.length > 0 && html`<p class="soft small">This index is local: a condition <code>=</code> on ${target.localKey.join(', ')} is needed.</p>`}
  </fieldset>`;
}

// The columns by which all indexes of a search can filter.
function commonFilters(searched) {
  const [first, ...others] = searched.map(filterable);
  return new Set([...first].filter((column) => others.every((other) => other.has(column))));
}
