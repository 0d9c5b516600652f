// Values as people read them, and as CQL writes them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(n) {
  if (n === null || n === undefined) return 'unknown';
  let value = n;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

// A name of the API as a label: "rows_compared" as "Rows compared".
export const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');

const counts = new Intl.NumberFormat('en');

export function count(n) {
  return n === null || n === undefined ? 'unknown' : counts.format(n);
}

export function percent(x) {
  if (x === null || x === undefined) return 'unknown';
  const value = x * 100;
  // 99.97 % must not look like all.
  const rounded = value === 0 || value === 100 ? String(value) : value > 99.9 ? '> 99.9' : value.toFixed(1);
  return `${rounded} %`;
}

const withRest = (text, rest, unit) => (rest === 0 ? text : `${text} ${rest} ${unit}`);

export function duration(ms) {
  if (ms === null || ms === undefined) return 'unknown';
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.5) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return withRest(`${minutes} min`, whole % 60, 's');
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? withRest(`${hours} h`, minutes % 60, 'min') : `${Math.floor(hours / 24)} days`;
}

export function ago(date) {
  const seconds = Math.round((Date.now() - new Date(date).getTime()) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return 'now';
  const text =
    size < 60
      ? `${size} s`
      : size < 3600
        ? `${Math.floor(size / 60)} min`
        : size < 86400
          ? `${Math.floor(size / 3600)} h`
          : `${Math.floor(size / 86400)} days`;
  return seconds >= 0 ? `${text} ago` : `in ${text}`;
}

// Words that CQL does not take as a name without quotes.
const RESERVED = new Set(
  `add allow alter and apply asc authorize batch begin by columnfamily create default delete desc describe drop entries
  execute from full grant if in index infinity insert into is keyspace limit materialized mbean mbeans modify nan norecursive
  not null of on or order primary rename replace revoke schema select set table to token truncate unlogged unset update use
  using view where with`.split(/\s+/),
);

// A name as a statement writes it: in quotes where CQL needs them.
export function cqlName(name) {
  return /^[a-z][a-z0-9_]*$/.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

const UNQUOTED = new Set(
  'tinyint smallint int bigint varint counter float double decimal boolean uuid timeuuid blob duration'.split(' '),
);

// The types between the angle brackets of a type.
function innerTypes(type) {
  const inner = type.slice(type.indexOf('<') + 1, type.lastIndexOf('>'));
  const types = [];
  let depth = 0;
  let start = 0;
  for (let place = 0; place <= inner.length; place += 1) {
    const sign = inner[place];
    if (sign === '<') depth += 1;
    if (sign === '>') depth -= 1;
    if (place === inner.length || (sign === ',' && depth === 0)) {
      types.push(inner.slice(start, place).trim());
      start = place + 1;
    }
  }
  return types;
}

// A value as a statement writes it. Values are those of the HTTP API.
export function cqlLiteral(value, type = 'text') {
  if (value === null || value === undefined) return 'null';
  if (type.startsWith('frozen<')) return cqlLiteral(value, innerTypes(type)[0]);
  if (/^(list|vector)</.test(type)) {
    const [inner] = innerTypes(type);
    return `[${value.map((one) => cqlLiteral(one, inner)).join(', ')}]`;
  }
  if (type.startsWith('set<')) {
    const [inner] = innerTypes(type);
    return `{${value.map((one) => cqlLiteral(one, inner)).join(', ')}}`;
  }
  if (type.startsWith('tuple<')) {
    const inner = innerTypes(type);
    return `(${value.map((one, place) => cqlLiteral(one, inner[place])).join(', ')})`;
  }
  if (type.startsWith('map<')) {
    const [keyType, valueType] = innerTypes(type);
    const pairs = Object.entries(value).map(([key, one]) => `${cqlLiteral(key, keyType)}: ${cqlLiteral(one, valueType)}`);
    return `{${pairs.join(', ')}}`;
  }
  if (typeof value === 'object') {
    const fields = Object.entries(value).map(([name, one]) => `${cqlName(name)}: ${cqlLiteral(one, literalType(one))}`);
    return `{${fields.join(', ')}}`;
  }
  if (UNQUOTED.has(type)) return String(value);
  return `'${String(value).replaceAll("'", "''")}'`;
}

// The type of a field of a user type, whose own type is not known here.
function literalType(value) {
  if (typeof value === 'number') return 'double';
  if (typeof value === 'boolean') return 'boolean';
  if (Array.isArray(value)) return `list<${literalType(value[0])}>`;
  return typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value) ? 'uuid' : 'text';
}

// A vector as a few of its elements and its length.
export function shortVector(v) {
  if (!Array.isArray(v)) return String(v);
  const some = v.slice(0, 3).map((x) => (typeof x === 'number' ? Number(x.toPrecision(3)) : x));
  return v.length <= 3 ? `[${some.join(', ')}]` : `[${some.join(', ')}, … ${v.length}]`;
}
