// The view Search: an index, what to look for, filters, and the rows that were found with the reason
// for their order, as CQL and as code.

import {
  Async,
  Button,
  Code,
  Empty,
  Page,
  Pick,
  html,
  navigate,
  useEffect,
  useMemo,
  useState,
} from '../ui.js';
import { cql, get, useData, useSession } from '../api.js';
import { count, cqlName } from '../format.js';
import { searchHref } from './links.js';
import { formOf, isAnswerable, queryOf } from './search/form.js';
import { SearchForm } from './search/panel.js';
import { FoundKeys, FoundRows } from './search/results.js';
import { searchIndex, searchRows } from './search/run.js';
import { nameOf, partnersOf, serviceTargets, targetsOf, titleColumn } from './search/targets.js';
import { keyColumns, keyOfRow, valueOf } from './tables/definition.js';
import { textOf } from './tables/values.js';

export default {
  id: 'search',
  title: 'Search',
  icon: 'search',
  group: 'Use',
  needs: (session) => session.features.search,
  View,
};

function View({ parts, query }) {
  const { features } = useSession();
  const targets = useData(
    async (signal) => {
      if (!features.tables) return serviceTargets(await get('/api/v1/indexes', { signal }));
      return targetsOf(await get('/api/v1/schema', { signal }));
    },
    [features.tables],
  );
  const lead = features.tables
    ? null
    : 'This program is an index service: it finds keys, and has no tables to read rows from.';
  return html`<${Page} title="Search" lead=${lead}>
    <${Async} of=${targets}>${(all) => (all.length === 0 ? html`<${NoIndex} />` : html`<${Search} targets=${all} parts=${parts} query=${query} />`)}<//>
  <//>`;
}

function NoIndex() {
  const text = "CREATE CUSTOM INDEX products_v ON shop.products (v) USING 'vector_index';";
  return html`<${Empty} title="There is no index to search">
    <p>A search needs an index on a column of vectors, or on a column of texts:</p>
    <${Code} text=${text} language="cql" />
  <//>`;
}

function Search({ targets, parts, query }) {
  const [keyspace, index] = parts;
  const chosen = targets.find((one) => one.keyspace === keyspace && one.index === index);
  const target = chosen ?? (keyspace ? null : firstOf(targets));
  return html`<div class="search">
    <div class="search-side">
      <${IndexPicker} targets=${targets} target=${target} />
      ${target && html`<${Desk} key=${nameOf(target)} target=${target} targets=${targets} query=${query} />`}
    </div>
    ${
      target
        ? html`<${Answer} target=${target} targets=${targets} query=${query} />`
        : html`<${Empty} title=${`There is no index ${keyspace}.${index ?? ''} to search`}>Pick another one.<//>`
    }
  </div>`;
}

// The index that a newcomer begins with: one on words whose table has vectors too, if there is one.
function firstOf(targets) {
  const both = targets.find(
    (one) => one.kind === 'words' && one.table && partnersOf(one, targets, 'vector').length > 0,
  );
  return both ?? targets[0];
}

const kindLabel = ({ kind, column, dimensions }) => {
  const what = kind === 'words' ? 'words' : `vectors${dimensions ? ` of ${count(dimensions)}` : ''}`;
  return column ? `${what}, ${column}` : what;
};

function IndexPicker({ targets, target }) {
  const options = targets.map((one) => ({ value: nameOf(one), label: `${nameOf(one)} (${kindLabel(one)})` }));
  const go = (name) => {
    const { keyspace, index } = targets.find((one) => nameOf(one) === name);
    navigate(searchHref(keyspace, index));
  };
  return html`<${Pick} label="Index" of="indexes" options=${options} value=${target ? nameOf(target) : ''} onChange=${go} />`;
}

// The targets of a search that begins with one of them: on vectors and on words, of one table.
function pairOf(target, targets, query) {
  if (!target.table) return target.kind === 'words' ? { words: target } : { vectors: target };
  const other = target.kind === 'words' ? 'vector' : 'words';
  const partners = partnersOf(target, targets, other);
  const partner = partners.find(({ column }) => column === query.get('with')) ?? partners[0];
  return target.kind === 'words'
    ? { words: target, vectors: partner, partners }
    : { vectors: target, words: partner, partners };
}

function Desk({ target, targets, query }) {
  const pair = pairOf(target, targets, query);
  const given = query.toString();
  const [form, setForm] = useState(() => formOf(query));
  useEffect(() => setForm(formOf(query)), [given]);
  // A slider that is moved makes no new step to go back to.
  const settle = (changed) => {
    setForm(changed);
    location.replace(hashOf(target, changed, query));
  };
  return html`<${SearchForm} form=${form} onChange=${setForm} target=${target} pair=${pair} onSearch=${() => go(target, form, query)} onSettle=${settle} onPartner=${(column) => go(target, form, query, column)} />`;
}

function hashOf(target, form, query, partner = query.get('with')) {
  const next = queryOf(form);
  if (partner) next.set('with', partner);
  return searchHref(target.keyspace, target.index, next);
}

// A search is an address. The same one again is a new event, so that it runs once more.
function go(target, form, query, partner) {
  const hash = hashOf(target, form, query, partner);
  if (location.hash === hash) dispatchEvent(new CustomEvent('annulus:search-again'));
  else navigate(hash);
  // Where the answer is below the form, it comes into sight.
  if (matchMedia('(max-width: 1000px)').matches) document.querySelector('.search-answer')?.scrollIntoView();
}

function Answer({ target, targets, query }) {
  const form = useMemo(() => formOf(query), [query.toString()]);
  const pair = useMemo(() => pairOf(target, targets, query), [target, query.toString()]);
  const isReady = isAnswerable(form);
  const found = useData(
    async (signal) => {
      if (!isReady) return null;
      return target.table ? searchRows(form, pair, { signal }) : searchIndex(form, target, { signal });
    },
    [nameOf(target), query.toString()],
  );
  useEffect(() => {
    addEventListener('annulus:search-again', found.reload);
    return () => removeEventListener('annulus:search-again', found.reload);
  }, [found.reload]);
  const more = (row) => go(target, { ...form, words: '', near: 'row', row }, query);
  if (!isReady)
    return html`<div class="search-answer"><${Invitation} target=${target} pair=${pair} onMore=${more} /></div>`;
  return html`<section class="search-answer" aria-label="Answer">
    <${Async} of=${found}>
      ${(answer) =>
        answer &&
        (target.table
          ? html`<${FoundRows} answer=${answer} form=${form} pair=${pair} onMore=${more} />`
          : html`<${FoundKeys} answer=${answer} target=${target} form=${form} />`)}
    <//>
  </section>`;
}

function Invitation({ target, pair, onMore }) {
  const ways = [
    pair.words && 'type words',
    target.table && 'name a row, to find rows like it',
    pair.vectors && 'paste a vector',
  ].filter(Boolean);
  return html`<${Empty} title="What are you looking for?">
    ${`${ways.join(', or ')}.`.replace(/^./, (first) => first.toUpperCase())}
    ${pair.words && pair.vectors ? ' Words and a row or vector together make one order, and a slider weighs them.' : ''}
    ${target.table && html`<${Beginnings} target=${target} onMore=${onMore} />`}
  <//>`;
}

const BEGINNINGS = 3;

// Some rows to begin with: a newcomer knows no key.
function Beginnings({ target, onMore }) {
  const { keyspace, table, definition, column } = target;
  const title = titleColumn(definition, column);
  const rows = useData(
    async (signal) => {
      const names = [...keyColumns(definition), ...(title ? [title] : [])].map(cqlName).join(', ');
      const from = `${cqlName(keyspace)}.${cqlName(table)}`;
      return (await cql(`SELECT ${names} FROM ${from} LIMIT ${BEGINNINGS}`, { signal })).rows;
    },
    [nameOf(target)],
  );
  if (rows.failure) return html`<p class="soft small">No row to begin with can be shown: ${rows.failure.message}</p>`;
  if (!rows.data?.length) return null;
  return html`<p class="search-beginnings">Or take one that is there:</p>
    <div class="row search-beginnings">
      ${rows.data.map((row) => {
        const key = keyOfRow(definition, row);
        const name = title ? valueOf(row, title) : null;
        return html`<${Button} key=${textOf(key)} onClick=${() => onMore(key)}>Rows like ${name ?? textOf(Object.values(key).join(', '))}<//>`;
      })}
    </div>`;
}
