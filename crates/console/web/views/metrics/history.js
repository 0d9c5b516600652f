// The values of the main metrics from the ring in the server, and only what is new once they are here.
import { get, useData } from '../../api.js';
import { useRef } from '../../ui.js';

// The server takes a sample each 15 s.
const STEP_S = 15;
// Samples that arrive while the others are read must not be missed.
const OVERLAP_S = 4 * STEP_S;

const keyOf = (labels) => JSON.stringify(labels);

async function seriesOf(name, seconds, signal) {
  try {
    const { series } = await get(`/api/v1/metrics/history?${new URLSearchParams({ name, seconds })}`, { signal });
    return series;
  } catch (failure) {
    // A series that has just left the ring.
    if (failure.kind === 'missing') return [];
    throw failure;
  }
}

// What was known of a name, with the points of `fresh` that are newer.
function merged(known, fresh, since) {
  const series = new Map((known ?? []).map((one) => [keyOf(one.labels), one]));
  for (const { labels, points } of fresh) {
    const before = series.get(keyOf(labels))?.points ?? [];
    const last = before.length > 0 ? before[before.length - 1][0] : 0;
    series.set(keyOf(labels), { labels, points: [...before, ...points.filter(([time]) => time > last)] });
  }
  const kept = [...series.values()].map((one) => ({ ...one, points: one.points.filter(([time]) => time > since) }));
  return kept.filter((one) => one.points.length > 0);
}

function newestOf(names) {
  let newest = 0;
  for (const series of names.values()) {
    for (const { points } of series) newest = Math.max(newest, points[points.length - 1]?.[0] ?? 0);
  }
  return newest;
}

// {names: Map(name -> [{labels, points}]), newest} of the last `seconds`, as useData has it.
export function useHistory(seconds) {
  const known = useRef(null);
  return useData(
    async (signal) => {
      const before = known.current?.seconds === seconds ? known.current : null;
      const since = before ? Math.ceil((performance.now() - before.at) / 1000) + OVERLAP_S : seconds;
      const at = performance.now();
      const { names: list } = await get('/api/v1/metrics/history', { signal });
      const wanted = Math.min(since, seconds);
      const fresh = await Promise.all(list.map((name) => seriesOf(name, wanted, signal)));
      const all = new Map(list.map((name, place) => [name, fresh[place]]));
      const newest = newestOf(all);
      const names = new Map(list.map((name) => [name, merged(before?.names.get(name), all.get(name), newest - seconds)]));
      known.current = { seconds, at, names };
      return { names, newest };
    },
    [seconds],
    { every: STEP_S * 1000 },
  );
}
