// The rows that a search found: their scores, highlights and the reason for their order.

import { Button, Copy, Empty, Marked, Table, Tabs, html, useState } from '../../ui.js';
import { count, duration } from '../../format.js';
import { RowWindow } from '../query/results.js';
import { Cell, textOf } from '../tables/values.js';
import { CodeOfSearch, CqlOfSearch, TraceOfSearch } from './same.js';
import { RANK_CONSTANT, partsOfScore, wordsOfFilter } from './request.js';
import { MARKS } from './run.js';
import { shownColumns, titleColumn } from './targets.js';
import { keyColumns, keyOfRow, typeOf, valueOf } from '../tables/definition.js';

const TABS = [
  { id: 'rows', label: 'Rows' },
  { id: 'cql', label: 'CQL' },
  { id: 'code', label: 'Code' },
  { id: 'trace', label: 'Trace' },
];

export function FoundRows({ answer, form, pair, onMore }) {
  const [tab, setTab] = useState('rows');
  const { definition } = answer.queries[0].target;
  return html`
    <div class="outcome-bar">
      <${Summary} found=${answer.rows.length} milliseconds=${answer.milliseconds} form=${form} />
      <${Tabs} tabs=${TABS} value=${tab} onChange=${setTab} label="Views of the answer" />
    </div>
    ${tab === 'rows' && html`<${Hits} answer=${answer} form=${form} definition=${definition} onMore=${onMore} />`}
    ${tab === 'cql' && html`<${CqlOfSearch} form=${form} pair=${pair} queries=${answer.queries} />`}
    ${tab === 'code' && html`<${CodeOfSearch} route=${answer.route} body=${answer.body} />`}
    ${tab === 'trace' && html`<${TraceOfSearch} route=${answer.route} body=${answer.body} />`}
  `;
}

function Summary({ found, milliseconds, form }) {
  const words = wordsOfFilter(form.filter);
  const joined = words ? `, filter: ${words}` : '';
  return html`<p class="outcome-summary" role="status"><b>${count(found)} ${found === 1 ? 'row' : 'rows'}</b> in ${duration(milliseconds)}${joined}</p>`;
}

function Hits({ answer, form, definition, onMore }) {
  const [open, setOpen] = useState(null);
  const { rows, scores, explain, highlights, unmarked, queries } = answer;
  if (rows.length === 0) {
    const why = wordsOfFilter(form.filter)
      ? 'The filter may admit too few rows. Take a condition away.'
      : 'Try other words, or fewer.';
    return html`<${Empty} title="Nothing was found">${why}<//>`;
  }
  const names = shownColumns(definition);
  const words = queries.find(({ by }) => by === 'words')?.target.column;
  const title = titleColumn(definition, words);
  const shared = { definition, title, words, form, queries, best: Math.max(...scores), onOpen: setOpen, onMore };
  return html`
    ${unmarked && html`<p class="soft small" role="note">The words that were found are not marked: ${unmarked}</p>`}
    <ol class="hits">
      ${rows.map(
        (row, at) =>
          html`<${Hit} key=${textOf(keyOfRow(definition, row))} row=${row} at=${at} score=${scores[at]} explained=${explain[at]} highlight=${highlights[at]} names=${names} ...${shared} />`,
      )}
    </ol>
    <${RowWindow} columns=${names.map((name) => ({ name, type: typeOf(definition, name) }))} row=${open} onClose=${() => setOpen(null)} />
  `;
}

// How much of a text without highlights is shown.
const TEXT_MAX = 260;

function Hit({
  row,
  at,
  score,
  explained,
  highlight,
  names,
  definition,
  title,
  words,
  form,
  queries,
  best,
  onOpen,
  onMore,
}) {
  const keyText = keyColumns(definition)
    .map((name) => `${name} ${textOf(valueOf(row, name))}`)
    .join(', ');
  const head = title ? valueOf(row, title) : null;
  const excerpt = words ?? names.find((name) => name !== title && String(valueOf(row, name) ?? '').length > 80);
  const others = names.filter((name) => name !== title && name !== excerpt && !keyColumns(definition).includes(name));
  const parts = partsOfScore(explained, queries.length > 1, form.rank);
  return html`<li class="hit">
    <div class="hit-head">
      <span class="hit-place" aria-hidden="true">${at + 1}</span>
      <h2><button type="button" onClick=${() => onOpen(row)}>${head ?? keyText}</button></h2>
      ${head && html`<code class="hit-key">${keyText}</code>`}
      <${Button} kind="quiet" onClick=${() => onMore(keyOfRow(definition, row))}>Rows like this<//>
    </div>
    ${excerpt && html`<p class="hit-text"><${Excerpt} highlight=${highlight} text=${valueOf(row, excerpt)} /></p>`}
    <${Others} row=${row} names=${others} definition=${definition} />
    <${Why} parts=${parts} score=${score} best=${best} isFused=${queries.length > 1} rank=${form.rank} />
  </li>`;
}

function Excerpt({ highlight, text }) {
  if (highlight) return html`<${Marked} text=${highlight} pre=${MARKS.pre} post=${MARKS.post} />`;
  const plain = String(text ?? '');
  return plain.length > TEXT_MAX ? `${plain.slice(0, TEXT_MAX)}…` : plain;
}

const OTHERS_MAX = 6;

function Others({ row, names, definition }) {
  const shown = names.filter((name) => valueOf(row, name) !== null).slice(0, OTHERS_MAX);
  if (shown.length === 0) return null;
  return html`<dl class="hit-values">
    ${shown.map((name) => html`<div key=${name}><dt>${name}</dt><dd><${Cell} value=${valueOf(row, name)} type=${typeOf(definition, name)} /></dd></div>`)}
  </dl>`;
}

const COLOURS = { vector: 'var(--c1)', words: 'var(--c2)' };
const NAMES = { vector: 'Vectors', words: 'Words' };
const digits = (number) =>
  number === null ? 'none' : Math.abs(number) >= 100 ? number.toFixed(1) : Number(number.toPrecision(4)).toString();

// Why a row is at its place: a bar of the parts of its score next to that of the best row, and the
// sum that makes it.
function Why({ parts, score, best, isFused, rank }) {
  const whole = best > 0 ? Math.max(score / best, 0) : 0;
  const words = parts
    .map(
      ({ by, rank: place, score: own }) =>
        `${NAMES[by]} ${place ? `${ordinal(place)}, ` : ''}${own === null ? 'not found' : digits(own)}`,
    )
    .join('; ');
  return html`<details class="hit-why">
    <summary>
      <span class="why-bar" role="img" aria-label=${`Score ${digits(score)}. ${words}`}>
        ${parts.map(({ by, column, share }, at) => html`<i key=${`${column} ${at}`} style=${{ width: `${whole * share * 100}%`, background: COLOURS[by] }} />`)}
      </span>
      <span class="why-score">${digits(score)}</span>
      <span class="why-places" aria-hidden="true">
        ${parts.map(
          ({ by, column, rank: place, score: own }, at) =>
            html`<span key=${`${column} ${at}`}><i style=${{ background: COLOURS[by] }} />${NAMES[by]} ${place ? html`<b>${ordinal(place)}</b>` : own === null ? 'not found' : html`<b>${digits(own)}</b>`}</span>`,
        )}
      </span>
      <span class="why-more">Why here</span>
    </summary>
    <${Reasons} parts=${parts} score=${score} isFused=${isFused} rank=${rank} />
  </details>`;
}

function Reasons({ parts, score, isFused, rank }) {
  return html`<div class="why-reasons" tabindex="0" role="region" aria-label="Parts of the score">
    <table>
      <thead><tr><th scope="col">By</th><th scope="col" class="number">Place</th><th scope="col" class="number">Score</th>${isFused && html`<th scope="col">Adds</th><th scope="col" class="number">Sum</th>`}</tr></thead>
      <tbody>
        ${parts.map(
          ({ by, column, rank: place, score: own, weight, part }, at) => html`<tr key=${at}>
            <th scope="row">${NAMES[by]} <code>${column}</code></th>
            <td class="number">${place ?? '–'}</td>
            <td class="number">${own === null ? '–' : digits(own)}</td>
            ${isFused && html`<td><code>${sumOf(rank, weight, place, own)}</code></td><td class="number">${digits(part)}</td>`}
          </tr>`,
        )}
        ${isFused && html`<tr class="why-sum"><th scope="row" colspan="4">Score</th><td class="number">${digits(score)}</td></tr>`}
      </tbody>
    </table>
    <p class="soft">${reasonOf(isFused, rank, parts)}</p>
  </div>`;
}

function sumOf(rank, weight, place, own) {
  if (rank === 'score') return own === null ? '0' : `${weight} × ${digits(own)}`;
  return place ? `${weight} / (${RANK_CONSTANT} + ${place})` : '0: not among its candidates';
}

function reasonOf(isFused, rank, parts) {
  if (isFused && rank === 'score') return 'The order is that of the weighted sum of the scores.';
  if (isFused)
    return 'The order is that of the sum. A row that both searches rank high comes first (reciprocal rank fusion).';
  return parts[0].by === 'vector'
    ? 'The order is that of the score: higher is nearer.'
    : 'The order is that of BM25: rare words count more, and so do short texts.';
}

function ordinal(place) {
  const tail = place % 100 >= 11 && place % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th');
  return `${count(place)}${tail}`;
}

// What an index service finds: keys and scores, as it has no rows.
export function FoundKeys({ answer, target, form }) {
  const [tab, setTab] = useState('rows');
  const { keys, scores } = answer;
  const names = Object.keys(keys[0] ?? {});
  const columns = [
    { key: 'place', label: 'Place', align: 'right' },
    ...names.map((name) => ({ key: `key ${name}`, label: name, render: ({ key }) => textOf(key[name]) })),
    { key: 'score', label: 'Score', align: 'right', render: ({ score }) => digits(score) },
  ];
  const rows = keys.map((key, at) => ({ key, score: scores[at], place: at + 1 }));
  const tabs = [
    { id: 'rows', label: 'Keys' },
    { id: 'code', label: 'Code' },
  ];
  return html`
    <div class="outcome-bar">
      <${Summary} found=${keys.length} milliseconds=${answer.milliseconds} form=${form} />
      <${Tabs} tabs=${tabs} value=${tab} onChange=${setTab} label="Views of the answer" />
    </div>
    ${tab === 'code' && html`<${CodeOfSearch} route=${answer.route} body=${answer.body} />`}
    ${
      tab === 'rows' &&
      (keys.length === 0
        ? html`<${Empty} title="Nothing was found">Try other words, or take a condition away.<//>`
        : html`<${Table} columns=${columns} rows=${rows} caption="Keys that were found" />
          <p class="soft small">
            The rows are in the database that this service follows. Their texts with highlights, searches by a row, and words
            with vectors in one order need its tables: ${target.keyspace} is not in this program.
          </p>
          <${Copy} text=${textOf(keys)} label="Copy the keys as JSON" />`)
    }
  `;
}
