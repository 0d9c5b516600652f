import { mayOperate, programName, session } from '../api.js';
import { Icon, Page, html, useState } from '../ui.js';
import { kindOf } from './indexes/state.js';
import { mapHref, queryHref, searchHref } from './links.js';
import { Sample } from './start-sample.js';
import { Snippets, reachable } from './start-snippets.js';
import { Status, useStatus } from './start-status.js';

const FILMS = { keyspace: 'samples', index: 'movies_by_plot' };
// A film that everyone knows, to begin with.
const FILM = { id: 2263, title: 'Frankenstein' };
const FILM_QUERY = `SELECT title, genre, release_date FROM samples.movies
WHERE release_date >= '2000-01-01' LIMIT 20 ALLOW FILTERING;`;
const TABLE_QUERY = `CREATE KEYSPACE IF NOT EXISTS shop
    WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};

CREATE TABLE shop.products (id int PRIMARY KEY, name text, v vector<float, 3>);`;

const isOnVectors = (index) => kindOf(index) === 'vector';

// An index service has no rows: it answers keys.
function searchOf(index, of, features) {
  if (features.tables) return `Words, a row or a vector in ${of}, and why each row is found.`;
  return `${isOnVectors(index) ? 'A vector' : 'Words'} in ${of}, and the keys of what is found.`;
}

// Three things that work on what is there.
function triesOf({ indexes }, features) {
  const films = indexes.find((one) => one.keyspace === FILMS.keyspace && one.index === FILMS.index);
  const index = films ?? indexes.find(isOnVectors) ?? indexes[0];
  const of = films ? 'the films' : index && `${index.keyspace}.${index.index}`;
  const query = films
    ? { title: 'Ask in CQL', text: 'Films since 2000: results in pages, and the trace of each query.', href: queryHref(FILM_QUERY) }
    : { title: 'Make a table in CQL', text: 'An editor with completion, history, and the trace of each query.', href: queryHref(TABLE_QUERY) };
  return [
    index &&
      features.search && {
        icon: 'search',
        title: films ? `Find films like ${FILM.title}` : 'Search an index',
        text: films ? 'The neighbours of a film by its plot, and why each ranks there.' : searchOf(index, of, features),
        href: searchHref(index.keyspace, index.index, films && { row: JSON.stringify({ id: FILM.id }) }),
      },
    index &&
      features.search &&
      isOnVectors(index) && {
        icon: 'map',
        title: films ? 'See the films on a map' : 'See an index on a map',
        text: `What is alike in ${of} is near. Draw a line around rows to list them.`,
        href: mapHref(index.keyspace, index.index),
      },
    features.cql && { icon: 'query', ...query },
    // A gateway without a store has few routes, and no page of them.
    features.indexes && { icon: 'external', title: 'Read the API', text: 'Every route with its fields. The page sends requests, too.', href: '/docs' },
    features.metrics && { icon: 'metrics', title: 'See the last hours', text: 'Searches, their times, memory and disk.', href: '#/metrics' },
    features.settings && { icon: 'settings', title: 'See the settings', text: 'What this server runs with, and from where it has it.', href: '#/settings' },
  ]
    .filter(Boolean)
    .slice(0, 3);
}

function Tries({ data, features }) {
  return html`<section aria-labelledby="tries" class="stack">
    <h2 id="tries">Three things to try</h2>
    <ul class="grid">
      ${triesOf(data, features).map(
        (one) => html`<li key=${one.title}>
          <a class="card try" href=${one.href}>
            <${Icon} name=${one.icon} size="22" />
            <span class="try-title">${one.title}</span>
            <span class="soft">${one.text}</span>
          </a>
        </li>`,
      )}
    </ul>
  </section>`;
}

function lead(current) {
  const { cql, http } = current;
  const name = programName(current);
  const served = reachable(http ?? location.host);
  if (!cql) return html`${name} serves HTTP at <code>${served}</code>.`;
  return html`${name} serves CQL drivers at <code>${reachable(cql)}</code> and HTTP at <code>${served}</code>.`;
}

function View() {
  const { current } = session;
  const { features } = current;
  const status = useStatus(features);
  const { data } = status;
  const hasFilms = data?.tables?.some((table) => table.keyspace === 'samples' && table.table === 'movies');
  const maySample = features.sample && mayOperate();
  const running = data?.tasks.find((task) => task.kind === 'sample' && task.state === 'running');
  // The table is there before its rows are.
  const [isLoading, setLoading] = useState(false);
  return html`<${Page} title="Start" lead=${lead(current)}>
    <${Status} of=${status} features=${features} />
    ${data && maySample && (!hasFilms || running || isLoading) && html`<${Sample} running=${running} onBusy=${setLoading} onLoaded=${status.reload} />`}
    ${data && html`<${Tries} data=${data} features=${features} />`}
    <${Snippets} />
  <//>`;
}

export default { id: 'start', title: 'Start', icon: 'start', group: 'Use', needs: () => true, View };
