// The view Map: a sample of an index in two dimensions, coloured by a column, with a way from points to rows and to CQL.
import { get, useData, useSession } from '../api.js';
import { count, duration, percent } from '../format.js';
import { Async, Button, Card, Empty, Failure, Field, Loading, Page, Pick, Select, Stat, Time, html, navigate, useCallback, useEffect, useMemo, useState } from '../ui.js';
import { indexHref, mapHref } from './links.js';
import { Cell } from './tables/values.js';
import { isVector, orderedColumns, valueOf } from './tables/definition.js';
import { tableOfIndex } from './tables/find.js';
import { stopTask } from './tasks/follow.js';
import { TaskProgress } from './tasks/parts.js';
import { MapChart } from './map/chart.js';
import { colouring, resolved } from './map/colours.js';
import { Legend } from './map/legend.js';
import { useMap } from './map/making.js';
import { colourColumns, columnValues, keyTextOf, rowsOf } from './map/rows.js';
import { Selection } from './map/selection.js';

const SIZES = [1000, 2500, 5000, 10000, 20000];
const FIRST_SIZE = 5000;
// A row is read when the pointer has rested on its point for so long.
const REST_MS = 120;
const VALUES_SHOWN = 5;
const LEAD = 'A sample of an index in two dimensions: what is near on the map is near in the index.';

function View({ parts }) {
  const [keyspace, index] = parts;
  const indexes = useData(async (signal) => (await get('/api/v1/indexes', { signal })).filter((one) => one.options.type === 'vector'), []);
  const empty = html`<${Card}><${Empty} title="There is no index on vectors" action=${html`<a class="button quiet" href="#/indexes">Indexes</a>`}>A map shows the vectors of an index.<//><//>`;
  return html`<${Page} title="Map" lead=${LEAD}>
    <${Async} of=${indexes} label="Loading the indexes" empty=${empty}>
      ${(all) => html`<${Chosen} indexes=${all} keyspace=${keyspace} index=${index} />`}
    <//>
  <//>`;
}

const nameOf = ({ keyspace, index }) => `${keyspace}.${index}`;

// The index that the address names, or else the one with the most rows.
function Chosen({ indexes, keyspace, index }) {
  const largest = useMemo(() => [...indexes].sort((one, other) => other.count - one.count)[0], []);
  const name = index === undefined ? largest : { keyspace, index };
  const state = indexes.find((one) => one.keyspace === name.keyspace && one.index === name.index);
  const choose = html`<${IndexChoice} indexes=${indexes} name=${name} />`;
  if (!state) {
    return html`${choose}<${Failure} failure=${{ kind: 'missing', message: `There is no index ${nameOf(name)} on vectors.` }} />`;
  }
  return html`<${OneMap} key=${nameOf(name)} keyspace=${name.keyspace} index=${name.index} state=${state} choose=${choose} />`;
}

function IndexChoice({ indexes, name }) {
  const options = indexes.map((one) => ({ ...one, value: nameOf(one), label: nameOf(one) }));
  const go = (value) => {
    const { keyspace, index } = options.find((one) => one.value === value);
    navigate(mapHref(keyspace, index));
  };
  return html`<${Pick} label="Index" of="indexes" options=${options} value=${nameOf(name)} onChange=${go} />`;
}

function Making({ making, size, setSize, hasMap, hasRows }) {
  const { task, start, startFailure, taskFailure } = making;
  const runs = task?.state === 'running';
  return html`<div class="stack tight">
    <${Field} label="Rows at most"><${Select} value=${size} disabled=${runs} options=${SIZES.map((one) => ({ value: one, label: count(one) }))} onChange=${(event) => setSize(Number(event.target.value))} /><//>
    ${runs
      ? html`<${TaskProgress} task=${task} />
          <${Button} icon="stop" disabled=${task.abort_requested} onClick=${() => stopTask(task)}>Stop<//>`
      : html`<${Button} kind=${hasMap ? 'quiet' : 'primary'} icon=${hasMap ? 'refresh' : 'map'} disabled=${!hasRows} onClick=${() => start({ points: size, ...(hasMap ? { fresh: true } : {}) })}>
          ${hasMap ? 'Make it again' : 'Make the map'}
        <//>`}
    ${task?.state === 'failed' && html`<${Failure} failure=${{ kind: 'failed', message: task.error ?? 'The map could not be made.' }} />`}
    ${task?.state === 'aborted' && html`<p class="soft small" role="status">The work was stopped before the map was made.</p>`}
    ${(startFailure ?? taskFailure) && html`<${Failure} failure=${startFailure ?? taskFailure} />`}
  </div>`;
}

function NoMap({ making, state }) {
  const runs = making.task?.state === 'running';
  if (state.count === 0) return html`<${Card}><${Empty} title="The index has no rows yet">A map needs vectors to show.<//><//>`;
  return html`<div class="map-blank">
    ${runs
      ? html`<${Empty} title="The map is being made">It takes some seconds of one core, in the background.<//>`
      : html`<${Empty} title="There is no map of this index yet">The server draws rows by chance, and lays them out so that near rows stay near. You can go on meanwhile.<//>`}
  </div>`;
}

// What is stated of a map: how it was made, and how much of the neighbourhoods it has.
function Method({ map }) {
  const { neighbours_kept: kept, neighbours_kept_by_pca: pca } = map;
  return html`<${Card} title="How true is it?">
    <div class="stack">
      ${typeof kept === 'number' && html`<dl class="stats">
        <${Stat} label=${`Of the ${map.neighbours} nearest stay near`} value=${percent(kept)} />
        ${typeof pca === 'number' && html`<${Stat} label="With PCA, for comparison" value=${percent(pca)} note=${pca > 0 ? `the map keeps ${(kept / pca).toFixed(1)} times as many` : undefined} />`}
        <${Stat} label="Rows on the map" value=${count(map.points)} note=${`of ${count(map.rows)} in the index`} />
        <${Stat} label="Made" value=${html`<${Time} at=${map.made_at} />`} note=${`in ${duration(map.seconds * 1000)}, seed ${map.seed}`} />
      </dl>`}
      <p class="soft">${map.method}</p>
    </div>
  <//>`;
}

// The column that colours the points, with its values once they are read.
function useColour(map, from) {
  const [name, setName] = useState(null);
  const choices = useMemo(() => (map ? colourColumns(map, from) : []), [map, from]);
  const wanted = name ?? firstColour(map, choices);
  const column = useData(
    async (signal) => (map && wanted ? { name: wanted, ...(await columnValues(map, from, wanted, signal)) } : null),
    [map, from, wanted],
  );
  const colours = useMemo(() => colouring(column.data ?? null), [column.data]);
  return { wanted: wanted ?? '', setName, choices, column, colours };
}

// A column that the map has, or one whose name says that it is a category. An empty text is no colour.
function firstColour(map, choices) {
  if (!map) return '';
  const own = Object.keys(map.column_values)[0];
  const likely = choices.find((name) => /^(genre|category|kind|type|colour|color|topic|label|class|lang|language|country|brand)$/i.test(name));
  return own ?? likely ?? '';
}

// The row under the pointer, once it has rested there.
function useHovered(map, from) {
  const [point, setPoint] = useState(-1);
  const [rested, setRested] = useState(-1);
  useEffect(() => {
    const timer = setTimeout(() => setRested(point), REST_MS);
    return () => clearTimeout(timer);
  }, [point]);
  const row = useData(async (signal) => (from && rested >= 0 ? { rested, row: (await rowsOf(map, from, [rested], signal)).get(rested) } : null), [map, from, rested]);
  const label = (shown) => {
    const read = row.data?.rested === shown ? row.data.row : null;
    return html`<${HoverLabel} map=${map} from=${from} point=${shown} row=${read} failure=${row.failure} />`;
  };
  return { setPoint, label };
}

function HoverLabel({ map, from, point, row, failure }) {
  const own = Object.entries(map.column_values).map(([name, values]) => ({ name, value: values[point] }));
  const read = row && from ? orderedColumns(from.definition).filter(({ name, type }) => !isVector(type) && !(name in map.primary_keys)).map(({ name, type }) => ({ name, type, value: valueOf(row, name) })) : own;
  // Short values first: a long text would push them out.
  const shown = [...read].sort((one, other) => String(one.value).length - String(other.value).length).slice(0, VALUES_SHOWN);
  return html`<p class="mono">${keyTextOf(map, point)}</p>
    <dl>${shown.map(({ name, value, type }) => html`<div key=${name}><dt>${name}</dt><dd><${Cell} value=${value} type=${type ?? 'text'} /></dd></div>`)}</dl>
    ${failure && html`<p class="small">The row is not read: ${failure.message}</p>`}`;
}

function useSelection(map) {
  const [points, setPoints] = useState([]);
  useEffect(() => setPoints([]), [map]);
  const select = useCallback((given, adds) => setPoints((before) => (adds ? [...new Set([...before, ...given])] : given)), []);
  const selected = useMemo(() => new Set(points), [points]);
  return { points, selected, select };
}

function OneMap({ keyspace, index, state, choose }) {
  const { features } = useSession();
  const [size, setSize] = useState(FIRST_SIZE);
  const making = useMap(keyspace, index);
  const table = useData((signal) => tableOfIndex(features, keyspace, index, signal), []);
  const map = making.map ?? null;
  const from = table.data ?? null;
  const colour = useColour(map, from);
  const hovered = useHovered(map, from);
  const selection = useSelection(map);
  if (making.failure && !map) return html`${choose}<${Failure} failure=${making.failure} retry=${making.reload} />`;
  if ((making.loading && map === null && making.data === undefined) || table.loading) return html`<${Loading} label="Loading the map" />`;
  const selectGroup = (group) => selection.select([...colour.colours.groups].flatMap((one, point) => (one === group ? [point] : [])), false);
  return html`<div class="map">
      ${map
        ? html`<${MapChart} map=${map} name=${`${keyspace}.${index}`} colours=${colour.colours} selected=${selection.selected} onSelect=${selection.select} onHover=${hovered.setPoint} label=${hovered.label} />`
        : html`<${NoMap} making=${making} state=${state} />`}
      <div class="map-side">
        ${choose}
        ${table.failure && html`<${Failure} failure=${table.failure} retry=${table.reload} />`}
        ${map && html`<${ColourChoice} colour=${colour} onSelectGroup=${selectGroup} />`}
        <${Making} making=${making} size=${size} setSize=${setSize} hasMap=${map !== null} hasRows=${state.count > 0} />
        <p class="small"><a href=${indexHref(keyspace, index)}>The index, its memory and its recall</a></p>
      </div>
    </div>
    ${map && html`<${Selection} map=${map} from=${from} column=${colour.column.data} points=${selection.points} onClear=${() => selection.select([], false)} /><${Method} map=${map} />`}`;
}

function ColourChoice({ colour, onSelectGroup }) {
  const { wanted, setName, choices, column, colours } = colour;
  const options = [{ value: '', label: 'none' }, ...choices.map((name) => ({ value: name, label: name }))];
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return html`<div class="stack tight">
    <${Field} label="Colour by"><${Select} value=${wanted} options=${options} onChange=${(event) => setName(event.target.value)} /><//>
    ${column.loading && html`<${Loading} label="Reading the column" />`}
    ${column.failure && html`<${Failure} failure=${column.failure} retry=${column.reload} />`}
    ${column.data && html`<${Legend} legend=${colours.legend} column=${wanted} colours=${resolved(colours.colours, variable)} onSelect=${onSelectGroup} />`}
  </div>`;
}

export default {
  id: 'map',
  title: 'Map',
  icon: 'map',
  group: 'Use',
  needs: (session) => session.features.indexes,
  View,
};
