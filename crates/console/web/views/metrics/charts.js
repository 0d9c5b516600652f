// Which charts there are, and how each is made of the metrics.
import { bytes, count, duration, percent } from '../../format.js';
import { foremost, lastOf, maximumOf, meanOf, minimumOf, moving, rateOf, sumOf } from './series.js';

// A chart with more lines can't be read, and there are eight colours.
const LINES_MAX = 7;

const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const aSecond = (value) => `${value >= 1000 ? count(Math.round(value)) : small.format(value)}/s`;
const ofSeconds = (value) => (value === 0 ? '0' : duration(value * 1000));
// A quiet server uses few thousandths of a core.
const cores = (value) => (value >= 1 ? value.toFixed(2) : small.format(value));

const words = (text) => text.replaceAll('_', ' ');

function labelOf(labels) {
  if (labels.index !== undefined) return `${labels.keyspace}.${labels.index}`;
  const values = Object.values(labels).map(words);
  return values.length === 0 ? 'all' : values.join(', ');
}

function lines(names, name, change = (points) => points, named = labelOf) {
  return (names.get(name) ?? []).map(({ labels, points }) => ({ label: named(labels), points: change(points) }));
}

const rates = (name) => (names) => moving(lines(names, name, rateOf));

function means(family) {
  return (names) => {
    const counts = new Map((names.get(`${family}_count`) ?? []).map((one) => [labelOf(one.labels), one.points]));
    const all = (names.get(`${family}_sum`) ?? []).map(({ labels, points }) => ({
      label: labelOf(labels),
      points: meanOf(points, counts.get(labelOf(labels)) ?? []),
    }));
    return all.filter((line) => line.points.some(([, value]) => value !== null));
  };
}

function refusals(names) {
  const of = (name, before) => lines(names, name, rateOf, (labels) => `${before}: ${words(labels.reason)}`);
  const errors = lines(names, 'annulus_cql_errors_total', rateOf, (labels) => `error: ${words(labels.error)}`);
  const byError = [...Map.groupBy(errors, (line) => line.label)].map(([label, some]) => sumOf(some, label));
  const all = [...of('annulus_cql_shed_total', 'shed'), ...of('annulus_search_shed_total', 'search refused'), ...byError];
  const some = all.filter((line) => maximumOf(line.points) > 0);
  if (some.length > 0) return some;
  return all.length === 0 ? [] : [sumOf(all, 'refused or failed')];
}

// The owners, and above them what belongs to none: the height is the memory that is used.
function memory(names) {
  const used = lines(names, 'annulus_memory_used_bytes', undefined, () => 'used');
  const owners = lines(names, 'annulus_memory_bytes').filter((line) => maximumOf(line.points) > 0);
  if (owners.length === 0 || used.length === 0) return used;
  const owned = new Map(sumOf(owners, 'owned').points);
  const other = used[0].points.map(([time, value]) => {
    const known = owned.get(time);
    return [time, value === null || known === undefined ? null : Math.max(0, value - known)];
  });
  return [...owners, { label: 'other', points: other }];
}

function disk(names) {
  const free = lines(names, 'annulus_disk_free_bytes', undefined, (labels) => `free for ${labels.directory}`);
  // The directories are most often on one file system: then one line says it.
  const [first] = free;
  const same = free.every((line) => lastOf(line.points) === lastOf(first.points));
  return same && first ? [{ ...first, label: 'free' }] : free;
}

// title, group, and lines(names). `isWhole`: the values are whole numbers. `worst`: which lines are shown of many. `empty`: what to say where there is no line.
const CHARTS = [
  { id: 'searches', group: 'Requests', title: 'Searches', form: aSecond, lines: rates('annulus_search_requests_total') },
  {
    id: 'search-latency',
    group: 'Requests',
    title: 'Mean latency of searches',
    form: ofSeconds,
    lines: means('annulus_search_duration_seconds'),
    needs: 'annulus_search_duration_seconds_count',
    empty: 'No search in this time.',
  },
  { id: 'refused', group: 'Requests', title: 'Refused and failed', form: aSecond, lines: refusals },
  { id: 'statements', group: 'Requests', title: 'CQL statements', form: aSecond, lines: rates('annulus_cql_requests_total') },
  {
    id: 'statement-latency',
    group: 'Requests',
    title: 'Mean latency of CQL',
    form: ofSeconds,
    lines: means('annulus_cql_request_duration_seconds'),
    needs: 'annulus_cql_request_duration_seconds_count',
    empty: 'No statement by CQL in this time.',
  },
  { id: 'http', group: 'Requests', title: 'HTTP requests, by status', form: aSecond, lines: rates('annulus_http_requests_total') },
  { id: 'gateway', group: 'Gateway', title: 'Requests through the gateway', form: aSecond, lines: rates('annulus_gateway_requests_total') },
  {
    id: 'gateway-search',
    group: 'Gateway',
    title: 'Mean latency of gateway searches',
    form: ofSeconds,
    lines: means('annulus_gateway_search_duration_seconds'),
    needs: 'annulus_gateway_search_duration_seconds_count',
    empty: 'No search in this time.',
  },
  {
    id: 'gateway-write',
    group: 'Gateway',
    title: 'Mean latency of gateway writes',
    form: ofSeconds,
    lines: means('annulus_gateway_write_duration_seconds'),
    needs: 'annulus_gateway_write_duration_seconds_count',
    empty: 'No write in this time.',
  },
  {
    id: 'lag',
    group: 'Indexes',
    title: 'How far indexes are behind',
    form: ofSeconds,
    lines: (names) => lines(names, 'annulus_index_lag_seconds'),
    worst: (line) => maximumOf(line.points),
    needs: 'annulus_index_lag_seconds',
  },
  {
    id: 'recall',
    group: 'Indexes',
    title: 'Recall, as last checked',
    form: percent,
    lines: (names) => lines(names, 'annulus_index_recall_ratio'),
    worst: (line) => -minimumOf(line.points),
    isShare: true,
    always: 'Indexes',
    empty: 'No recall was checked. The command "annulus check keyspace.index" does, and --check-interval does by itself.',
  },
  {
    id: 'rows',
    group: 'Indexes',
    title: 'Rows in indexes',
    isWhole: true,
    form: count,
    lines: (names) => lines(names, 'annulus_index_rows'),
    worst: (line) => maximumOf(line.points),
    needs: 'annulus_index_rows',
  },
  { id: 'memory', group: 'Machine', title: 'Memory, by owner', form: bytes, isBytes: true, isStacked: true, lines: memory },
  { id: 'cpu', group: 'Machine', title: 'Processor, cores in use', form: cores, lines: (names) => lines(names, 'annulus_process_cpu_seconds_total', rateOf, () => 'this server') },
  { id: 'disk', group: 'Machine', title: 'Room on the disk', form: bytes, isBytes: true, lines: disk, needs: 'annulus_disk_free_bytes' },
  {
    id: 'storage',
    group: 'Machine',
    title: 'Files of rows',
    form: bytes,
    isBytes: true,
    lines: (names) => lines(names, 'annulus_storage_size_bytes', undefined, () => 'on the disk'),
  },
  {
    id: 'connections',
    group: 'Machine',
    title: 'Connections',
    isWhole: true,
    form: count,
    lines: (names) => lines(names, 'annulus_connection_open'),
  },
  {
    id: 'work',
    group: 'Machine',
    title: 'Work in the background',
    isWhole: true,
    form: count,
    lines: (names) =>
      moving([...lines(names, 'annulus_task_running'), ...lines(names, 'annulus_compaction_running', undefined, () => 'compaction')]),
  },
];

// The charts that this server has, in groups: {group, charts: [{chart, lines, leftOut}]}.
export function chartsOf(names) {
  const groups = new Map();
  const put = (chart, shown, leftOut = 0) => {
    groups.set(chart.group, [...(groups.get(chart.group) ?? []), { chart, lines: shown, leftOut }]);
  };
  for (const chart of CHARTS) {
    const all = chart.lines(names);
    const isExpected = names.has(chart.needs) || groups.has(chart.always);
    if (all.length === 0 && !(isExpected && chart.empty)) continue;
    const rank = chart.worst ?? ((line) => maximumOf(line.points));
    const { lines: shown, leftOut } = all.length > LINES_MAX ? foremost(all, LINES_MAX, rank) : { lines: all, leftOut: 0 };
    put(chart, shown, leftOut);
  }
  return [...groups].map(([group, charts]) => ({ group, charts }));
}
