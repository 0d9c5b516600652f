// Runs statements one after the other, and holds what they answered.

import { cql } from '../../api.js';
import { parseJson } from '../../json.js';
import { errorPlace, holdsSecret, isRead, markersOf, usedKeyspace } from './text.js';

// The outcome of a statement: {statement, ok, pages, at, columns, warnings, traceIds, milliseconds,
// failure, place}. `pages` are [{rows, next}], and `at` is the one that is shown.
export async function runStatement(statement, { keyspace, values, pageSize, isReadOnly, trace, signal }) {
  if (isReadOnly && !isRead(statement))
    return refused(statement, 'Read-only mode is on: only SELECT, DESCRIBE and LIST are sent.');
  if (statement.verb === 'USE')
    return { statement, ok: true, used: usedKeyspace(statement), pages: [], columns: [], milliseconds: 0 };
  const began = performance.now();
  try {
    const parameters = parametersOf(statement.text, values);
    const answer = await cql(statement.text, { keyspace: keyspace || undefined, parameters, pageSize, trace, signal });
    return {
      statement,
      ok: true,
      columns: answer.columns,
      warnings: answer.warnings ?? [],
      traceIds: answer.traceIds ?? [],
      milliseconds: answer.milliseconds,
      pages: [{ rows: answer.rows, next: answer.pageState }],
      at: 0,
      again: { keyspace: keyspace || undefined, parameters, pageSize },
    };
  } catch (failure) {
    if (failure.name === 'AbortError')
      return { statement, ok: false, cancelled: true, milliseconds: performance.now() - began };
    const place = errorPlace(statement.text, failure.message);
    return { statement, ok: false, failure, place, milliseconds: performance.now() - began };
  }
}

// The next page of an outcome, which becomes the one that is shown.
export async function nextPage(outcome, signal) {
  const { next } = outcome.pages.at(-1);
  const answer = await cql(outcome.statement.text, { ...outcome.again, pageState: next, signal });
  const pages = [...outcome.pages, { rows: answer.rows, next: answer.pageState }];
  return { ...outcome, pages, at: pages.length - 1, milliseconds: answer.milliseconds };
}

function refused(statement, message) {
  const failure = Object.assign(new Error(message), {
    kind: 'wrong',
    hint: 'Switch it off above to send this statement.',
    isLocal: true,
  });
  return { statement, ok: false, failure, place: { from: 0, to: statement.verb.length }, milliseconds: 0 };
}

// The values of markers as they are sent: JSON where a text is JSON, else the text itself.
function parametersOf(text, values) {
  const markers = markersOf(text);
  if (markers.length === 0) return undefined;
  const given = markers.map((name, at) => valueOf(values[keyOfMarker(name, at)] ?? ''));
  return markers.includes(null)
    ? given
    : Object.fromEntries(markers.map((name, at) => [name.replaceAll('"', ''), given[at]]));
}

// The name under which the value of a marker is remembered.
export const keyOfMarker = (name, at) => name ?? `?${at + 1}`;

function valueOf(text) {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

// What the history has of an outcome; null for one that it must not have.
export function entryOf(outcome, keyspace) {
  const { statement, ok, pages, milliseconds, failure, cancelled } = outcome;
  if (cancelled || failure?.isLocal || holdsSecret(statement.text)) return null;
  const rows = ok ? pages.reduce((sum, page) => sum + page.rows.length, 0) : null;
  return {
    text: statement.text,
    keyspace,
    at: Date.now(),
    ok,
    milliseconds: Math.round(milliseconds),
    rows,
    error: failure?.message,
  };
}
