// The drawing of a chart by uPlot: its axes, its colours, what its cursor does.
import UPlot from '../../vendor/uplot.js';

const HEIGHT = 176;
// Charts of one page have one cursor.
const CURSOR = { key: 'metrics', scales: ['x', null] };
// Bytes are counted by powers of two, and so are the lines of the grid.
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((first) => first * 10 ** power)).flat();
// Below this a share would seem to fall off a cliff that is none.
const SHARE_MIN = 0.9;

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colourOf = (place) => `--c${(place % 8) + 1}`;
const font = () => `12px ${token('--sans')}`;

const two = (n) => String(n).padStart(2, '0');

// The time of day; at midnight the day.
function timeText(seconds, step) {
  const date = new Date(seconds * 1000);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return step < 60 ? `${text}:${two(date.getSeconds())}` : text;
}

export const clockOf = (seconds) => timeText(seconds, 1);

// A point whose neighbours have no value is on no line: it is drawn as a dot.
function lonePoints(plot, place) {
  const values = plot.data[place];
  const lone = [];
  for (let at = 0; at < values.length; at += 1) {
    if (values[at] !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null) lone.push(at);
  }
  return lone;
}

function series(line, place, isStacked) {
  const colour = () => token(colourOf(place));
  return {
    label: line.label,
    stroke: colour,
    width: 1.5,
    fill: isStacked ? () => `color-mix(in srgb, ${token(colourOf(place))} 35%, ${token('--raised')})` : undefined,
    points: { show: true, size: 5, width: 0, fill: colour, filter: lonePoints },
  };
}

function valueScale(chart) {
  const range = (plot, least, most) => {
    if (chart.isShare) return [Math.min(SHARE_MIN, least ?? 1), 1];
    if (!(most > 0)) return [0, 1];
    return [0, most * 1.08];
  };
  return { range };
}

// Values above each other: each row is the sum of it and those after it, so that the first is drawn first, as the highest.
function stackedRows(rows) {
  const sums = rows.map((row) => [...row]);
  for (let place = sums.length - 2; place >= 0; place -= 1) {
    const below = sums[place + 1];
    sums[place] = sums[place].map((value, at) => (value === null && below[at] === null ? null : (value ?? 0) + (below[at] ?? 0)));
  }
  return sums;
}

export const dataOf = (chart, { times, rows }) => [times, ...(chart.isStacked ? stackedRows(rows) : rows)];

// `window()`: [from, to] in seconds. onMove(place or null): where the cursor is. onSelect(from, to): a stretch was drawn.
export function draw(element, { chart, lines, data, window: timeWindow, onMove, onSelect }) {
  const soft = () => token('--ink-soft');
  const grid = { stroke: () => token('--line'), width: 1 };
  const options = {
    width: Math.max(120, element.clientWidth),
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      sync: CURSOR,
      y: false,
      drag: { x: true, y: false, setScale: false },
      points: { size: 7, width: 2 },
    },
    scales: { x: { time: true, range: timeWindow }, y: valueScale(chart) },
    axes: [
      {
        stroke: soft,
        font: font(),
        size: 26,
        gap: 6,
        space: 56,
        grid: { show: false },
        ticks: { show: false },
        values: (plot, splits, axis, space, step) => splits.map((time) => timeText(time, step)),
      },
      {
        stroke: soft,
        font: font(),
        size: 62,
        gap: 6,
        space: 36,
        grid,
        ticks: { show: false },
        incrs: chart.isBytes ? POWERS_OF_TWO : chart.isWhole ? WHOLE : undefined,
        values: (plot, splits) => splits.map((value) => chart.form(value)),
      },
    ],
    series: [{}, ...lines.map((line, place) => series(line, place, chart.isStacked))],
    hooks: {
      setCursor: [(plot) => onMove(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 8) return;
          const [from, to] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          onSelect(from, to);
        },
      ],
    },
  };
  return new UPlot(options, data, element);
}
