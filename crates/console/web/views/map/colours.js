// The colours of points by the values of a column.
import { count } from '../../format.js';
import { isNumber, textOf } from '../tables/values.js';

// As many categories have a colour of their own; the eighth colour is that of all others.
const CATEGORIES = 7;
const RAMP_STEPS = 20;
const OTHERS = '--c8';
const NONE = '--map-none';
// So many different numbers are categories.
const FEW_NUMBERS = 7;

const isTime = (type) => /^(date|timestamp)$/.test(type);

const numberOf = (value, type) => (value === null || value === undefined ? NaN : isTime(type) ? Date.parse(String(value).replace(' ', 'T')) : Number(value));

// {groups, colours, legend}: the colour of each point, and what the legend shows. legend.kind is none, categories or ramp.
export function colouring(column) {
  if (!column) return { groups: null, colours: ['--accent'], legend: { kind: 'none' } };
  const { values, type } = column;
  const isAmount = isNumber(type) || isTime(type) || (type === undefined && values.some((value) => typeof value === 'number'));
  if (isAmount) {
    const numbers = values.map((value) => numberOf(value, type));
    if (new Set(numbers).size > FEW_NUMBERS) return ramp(numbers, type);
  }
  return categories(values);
}

// The outermost hundredth at each end has the colour of the end: one far value would else leave one colour to all others.
function ramp(numbers, type) {
  const known = numbers.filter((number) => !Number.isNaN(number)).sort((one, other) => one - other);
  const low = known[Math.floor(known.length * 0.01)];
  const high = known[Math.ceil(known.length * 0.99) - 1];
  const step = (number) => Math.min(RAMP_STEPS - 1, Math.max(0, Math.floor(((number - low) / (high - low || 1)) * RAMP_STEPS)));
  const groups = Uint16Array.from(numbers, (number) => (Number.isNaN(number) ? RAMP_STEPS : step(number)));
  const missing = numbers.length - known.length;
  const show = (number) => (isTime(type) ? new Date(number).toISOString().slice(0, 10) : String(Number(number.toPrecision(4))));
  return {
    groups,
    colours: [...Array.from({ length: RAMP_STEPS }, (_, at) => `ramp ${at / (RAMP_STEPS - 1)}`), NONE],
    legend: { kind: 'ramp', low: show(low), high: show(high), missing },
  };
}

function categories(values) {
  const counts = new Map();
  for (const value of values) {
    const name = nameOf(value);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const missing = counts.get(null) ?? 0;
  counts.delete(null);
  const sorted = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  // One more category needs no group of others.
  const own = sorted.length === CATEGORIES + 1 ? CATEGORIES + 1 : CATEGORIES;
  const place = new Map(sorted.slice(0, own).map(([name], at) => [name, at]));
  const groups = Uint16Array.from(values, (value) => {
    const name = nameOf(value);
    return name === null ? own + 1 : (place.get(name) ?? own);
  });
  const items = sorted.slice(0, own).map(([label, points], at) => ({ label, points, group: at, colour: `--c${at + 1}` }));
  const others = sorted.slice(own).reduce((sum, [, points]) => sum + points, 0);
  if (others > 0) items.push({ label: `${count(sorted.length - own)} others`, points: others, group: own, colour: OTHERS });
  if (missing > 0) items.push({ label: 'no value', points: missing, group: own + 1, colour: NONE });
  const colours = [...Array.from({ length: own }, (_, at) => `--c${at + 1}`), OTHERS, NONE];
  return { groups, colours, legend: { kind: 'categories', items } };
}

function nameOf(value) {
  if (value === null || value === undefined || value === '') return null;
  return textOf(value);
}

// Turns `ramp 0.3` into a colour between the stops --ramp-1 to --ramp-5 of the theme.
export function resolved(colours, variable) {
  const stops = [1, 2, 3, 4, 5].map((at) => channels(variable(`--ramp-${at}`)));
  return colours.map((colour) => {
    if (!colour.startsWith('ramp ')) return colour;
    const along = Number(colour.slice(5)) * (stops.length - 1);
    const at = Math.min(stops.length - 2, Math.floor(along));
    const mixed = stops[at].map((channel, i) => Math.round(channel + (stops[at + 1][i] - channel) * (along - at)));
    return `rgb(${mixed.join(' ')})`;
  });
}

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
