// The statements that were run from this browser. They stay in it, and never leave the machine.

const PLACE = 'annulus.query.history';
const ENTRIES_MAX = 200;
const TEXT_MAX = 20_000;

// The entries, newest first: {text, keyspace, at, ok, milliseconds, rows, error}.
export function readHistory() {
  try {
    const entries = JSON.parse(localStorage.getItem(PLACE) ?? '[]');
    return Array.isArray(entries) ? entries.filter((entry) => typeof entry?.text === 'string') : [];
  } catch {
    return [];
  }
}

// Adds an entry. The same statement again takes the place of the one before.
export function addToHistory(entry) {
  if (entry.text.length > TEXT_MAX) return readHistory();
  const others = readHistory().filter(({ text, keyspace }) => text !== entry.text || keyspace !== entry.keyspace);
  return write([entry, ...others].slice(0, ENTRIES_MAX));
}

export const clearHistory = () => write([]);

function write(entries) {
  try {
    localStorage.setItem(PLACE, JSON.stringify(entries));
  } catch {
    // A browser without room or right for it goes on without a history.
  }
  return entries;
}

// A value that this browser remembers for the console, and the way to change it.
export function remembered(name, fallback) {
  try {
    return JSON.parse(localStorage.getItem(`annulus.${name}`) ?? 'null') ?? fallback;
  } catch {
    return fallback;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`annulus.${name}`, JSON.stringify(value));
  } catch {
    // As above.
  }
}

// A statement that another view hands over, once: it may be longer than an address.
let handedOver = null;

export function handOver(text, keyspace = '') {
  handedOver = { text, keyspace };
}

export function takeHandedOver() {
  const given = handedOver;
  handedOver = null;
  return given;
}
