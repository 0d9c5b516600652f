// "Did you mean ...": the name of the schema, or the keyword, that is nearest to one that an error
// names.

import { FUNCTIONS } from './language.js';

// The name that was meant; null if none is near enough.
export function meantBy(error, schema) {
  const column = /^Undefined column name "?([^\s"]+?)"? in table "?([^\s".]+)"?\."?([^\s"]+?)"?$/.exec(error);
  if (column)
    return nearest(
      column[1],
      (schema?.table(column[2], column[3])?.columns ?? []).map(({ name }) => name),
    );
  const table = /^table "?([^\s"]+?)"? does not exist/.exec(error);
  if (table)
    return nearest(
      table[1],
      (schema?.keyspaces() ?? []).flatMap((keyspace) => schema.tables(keyspace)),
    );
  const keyspace = /^keyspace "?([^\s"]+?)"? does not exist/.exec(error);
  if (keyspace) return nearest(keyspace[1], schema?.keyspaces() ?? []);
  const called = /^Unknown function (?:\w+\.)?(\S+) called/.exec(error);
  if (called) return nearest(called[1], Object.keys(FUNCTIONS));
  const expected = /expected (.*), found '(\w+)'/.exec(error);
  return expected ? nearest(expected[2], expected[1].match(/\b[A-Z]{2,}\b/g) ?? []) : null;
}

// The nearest of some names: at most a third of the letters may differ.
export function nearest(name, names) {
  const wanted = name.toLowerCase();
  let best = null;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const one of names) {
    const edits = editsBetween(wanted, one.toLowerCase(), least);
    if (edits < least && edits > 0) [best, least] = [one, edits];
  }
  return best;
}

// The letters more, less or another, and neighbours that changed places, between two words. It
// stops counting at `bound`.
function editsBetween(one, other, bound) {
  if (Math.abs(one.length - other.length) >= bound) return bound;
  let before = null;
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + same);
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return row[other.length];
}
