// The figures above the charts: how it is now.
import { bytes, count, duration, percent } from '../../format.js';
import { Card, Stat, html } from '../../ui.js';
import { lastOf, meanOf, rateOf, sumOf } from './series.js';

// A single sample jumps.
const RECENT_S = 60;
const LAG_WARN_S = 10;
const MEMORY_WARN = 0.9;
const DISK_WARN = 0.1;
const DISK_BAD = 0.03;

const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

const pointsOf = (names, name) => (names.get(name) ?? []).map(({ points }) => points);
const latest = (names, name) => pointsOf(names, name).map(lastOf).filter((value) => value !== null);

function recentRate(names, name, newest) {
  const rates = pointsOf(names, name).map((points) => ({ points: rateOf(points) }));
  const recent = sumOf(rates, name).points.filter(([time, value]) => time > newest - RECENT_S && value !== null);
  return recent.length === 0 ? null : recent.reduce((sum, [, value]) => sum + value, 0) / recent.length;
}

// How often something happened in the time shown.
function timesOf(names, name) {
  const rises = pointsOf(names, name).flatMap((points) =>
    rateOf(points).map(([time, rate], place) => (rate === null ? 0 : rate * (time - points[place][0]))),
  );
  return Math.round(rises.reduce((sum, rise) => sum + rise, 0));
}

function meanOfAll(names, family) {
  const all = (name) => sumOf((names.get(name) ?? []), name).points;
  return lastOf(meanOf(all(`${family}_sum`), all(`${family}_count`)));
}

function Rate({ label, names, name, newest, mean }) {
  if (!names.has(name)) return null;
  const rate = recentRate(names, name, newest);
  const time = mean === null ? null : `${duration(mean * 1000)} each, mean`;
  return html`<${Stat} label=${label} value=${rate === null ? 'soon' : small.format(rate)} unit=${rate === null ? undefined : 'a second'} note=${time} />`;
}

function Lag({ names }) {
  const lags = latest(names, 'annulus_index_lag_seconds');
  if (lags.length === 0) return null;
  const most = Math.max(...lags);
  return html`<${Stat}
    label="Furthest behind"
    value=${most < 1 ? 'under 1 s' : duration(most * 1000)}
    tone=${most > LAG_WARN_S ? 'warn' : undefined}
    note=${`of ${count(lags.length)} ${lags.length === 1 ? 'index' : 'indexes'}`}
  />`;
}

function Memory({ names }) {
  const [used] = latest(names, 'annulus_memory_used_bytes');
  const [limit] = latest(names, 'annulus_memory_limit_bytes');
  if (used === undefined) return null;
  const share = limit > 0 ? used / limit : null;
  const note = share === null ? undefined : `${percent(share)} of ${bytes(limit)}`;
  return html`<${Stat} label="Memory" value=${bytes(used)} note=${note} tone=${share > MEMORY_WARN ? 'warn' : undefined} />`;
}

function Disk({ names }) {
  const free = latest(names, 'annulus_disk_free_bytes');
  const size = latest(names, 'annulus_disk_size_bytes');
  if (free.length === 0) return null;
  const shares = free.map((value, place) => value / (size[place] ?? NaN)).filter(Number.isFinite);
  const share = shares.length === 0 ? null : Math.min(...shares);
  const tone = share === null || share > DISK_WARN ? undefined : share > DISK_BAD ? 'warn' : 'bad';
  return html`<${Stat} label="Free on the disk" value=${bytes(Math.min(...free))} note=${share === null ? undefined : `${percent(share)} of it`} tone=${tone} />`;
}

function Refused({ names }) {
  const shed = ['annulus_cql_shed_total', 'annulus_search_shed_total'].filter((name) => names.has(name));
  if (shed.length === 0) return null;
  const times = shed.reduce((sum, name) => sum + timesOf(names, name), 0);
  return html`<${Stat} label="Refused" value=${count(times)} tone=${times > 0 ? 'warn' : undefined} note="in the time shown" />`;
}

export function Figures({ names, newest }) {
  return html`<${Card}>
    <dl class="stats">
      <${Rate} label="Searches" names=${names} name="annulus_search_requests_total" newest=${newest} mean=${meanOfAll(names, 'annulus_search_duration_seconds')} />
      <${Rate} label="CQL statements" names=${names} name="annulus_cql_requests_total" newest=${newest} mean=${meanOfAll(names, 'annulus_cql_request_duration_seconds')} />
      <${Rate} label="Through the gateway" names=${names} name="annulus_gateway_requests_total" newest=${newest} mean=${null} />
      <${Refused} names=${names} />
      <${Lag} names=${names} />
      <${Memory} names=${names} />
      <${Disk} names=${names} />
    </dl>
  <//>`;
}
