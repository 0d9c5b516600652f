// From counters and gauges to the lines of a chart. A line is {label, points: [[seconds, value or null]]}.

// Samples further apart than this have a gap between them: the process was paused.
const GAP_S = 60;

// The change a second between each two samples. A counter that fell began again: what it had before is not known.
export function rateOf(points) {
  return pairs(points, (from, to, seconds) => (to < from ? null : (to - from) / seconds));
}

function pairs(points, change) {
  const made = [];
  for (let place = 1; place < points.length; place += 1) {
    const [before, from] = points[place - 1];
    const [time, to] = points[place];
    const seconds = time - before;
    const known = from !== null && to !== null && seconds > 0 && seconds <= GAP_S;
    made.push([time, known ? change(from, to, seconds) : null]);
  }
  return made;
}

// The mean of what a histogram noted between each two samples; null where it noted nothing.
export function meanOf(sums, counts) {
  const rateOfCounts = new Map(rateOf(counts));
  return rateOf(sums).map(([time, sum]) => {
    const count = rateOfCounts.get(time);
    return [time, sum !== null && count > 0 ? sum / count : null];
  });
}

export function sumOf(lines, label) {
  const sums = new Map();
  for (const { points } of lines) {
    for (const [time, value] of points) {
      if (value !== null) sums.set(time, (sums.get(time) ?? 0) + value);
      else if (!sums.has(time)) sums.set(time, null);
    }
  }
  return { label, points: [...sums].sort(([left], [right]) => left - right) };
}

export function maximumOf(points) {
  return points.reduce((most, [, value]) => (value === null ? most : Math.max(most, value)), -Infinity);
}

export function minimumOf(points) {
  return points.reduce((least, [, value]) => (value === null ? least : Math.min(least, value)), Infinity);
}

export function lastOf(points) {
  for (let place = points.length - 1; place >= 0; place -= 1) {
    if (points[place][1] !== null) return points[place][1];
  }
  return null;
}

// The lines with a value above zero. Where there is none, one line says so: an empty chart would seem to lack data.
export function moving(lines) {
  const some = lines.filter((line) => maximumOf(line.points) > 0);
  return some.length > 0 || lines.length === 0 ? some : [sumOf(lines, 'all')];
}

// The few lines that matter most, by `rank`, the highest first; and how many are left out.
export function foremost(lines, most, rank) {
  const ranked = [...lines].sort((left, right) => rank(right) - rank(left) || left.label.localeCompare(right.label));
  return { lines: ranked.slice(0, most), leftOut: Math.max(0, lines.length - most) };
}

// Lines on one axis of time: {times, rows}, a row of values for each line.
export function aligned(lines) {
  const times = [...new Set(lines.flatMap(({ points }) => points.map(([time]) => time)))].sort((a, b) => a - b);
  const rows = lines.map(({ points }) => {
    const values = new Map(points);
    return times.map((time) => values.get(time) ?? null);
  });
  return { times, rows };
}

// At most `most` pieces of equal length between two times, each with its end and the mean of each row in it.
export function pieces({ times, rows }, from, to, most) {
  const length = Math.max((to - from) / most, 1);
  const found = [];
  for (let end = to; end > from && found.length < most; end -= length) {
    const inside = times.flatMap((time, place) => (time > end - length && time <= end ? [place] : []));
    if (inside.length === 0) continue;
    const means = rows.map((row) => {
      const values = inside.map((place) => row[place]).filter((value) => value !== null);
      return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
    });
    found.push({ end, means });
  }
  return found;
}
