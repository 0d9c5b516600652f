// CQL for the editor: its colours, and what can be completed where.

import { HighlightStyle, StreamLanguage, tags } from '../../vendor/codemirror.js';
import { cqlName } from '../../format.js';
import { isLog } from '../tables/definition.js';
import { tokens, unquoted } from './text.js';

const words = (text) => text.trim().split(/\s+/);

export const KEYWORDS = words(`
  ADD AGGREGATE ALL ALLOW ALTER AND ANN APPLY AS ASC BATCH BEGIN BY BYPASS CACHE CAST CLUSTER
  CLUSTERING COLUMNFAMILY CONTAINS COUNTER CREATE CUSTOM DEFAULT DELETE DESC DESCRIBE DISTINCT DROP
  ENTRIES EXECUTE EXISTS FILTERING FROM FULL FUNCTION GRANT GROUP HASHED IDENTITY IF IN INDEX INSERT
  INTERNALS INTO IS JSON KEY KEYS KEYSPACE KEYSPACES LIKE LIMIT LIST LOGIN MATERIALIZED MODIFY
  NORECURSIVE NOSUPERUSER NOT OF ON OPTIONS OR ORDER PARTITION PASSWORD PER PERMISSION PERMISSIONS
  PRIMARY RENAME REPLACE REVOKE ROLE ROLES SCHEMA SELECT SET STATIC STORAGE SUPERUSER TABLE TABLES
  TIMEOUT TIMESTAMP TO TOKEN TRUNCATE TTL TYPE TYPES UNLOGGED UNSET UPDATE USE USER USERS USING
  VALUES VIEW WHERE WITH`);

const ATOMS = words('true false null NaN Infinity');

const TYPES = words(`
  ascii bigint blob boolean counter date decimal double duration float frozen inet int list map set
  smallint text time timestamp timeuuid tinyint tuple uuid varchar varint vector`);

// Functions with what completion shows next to them.
export const FUNCTIONS = {
  ANN: 'score and rank of a vector search',
  ANN_SCORE: 'score of a vector search, higher is nearer',
  ANN_RANK: 'place in a vector search, from 1',
  BM25: 'a search for words; > 0 in WHERE',
  BM25_SCORE: 'score of a search for words',
  BM25_RANK: 'place in a search for words, from 1',
  BM25_HIGHLIGHT: 'an excerpt with the words that were found',
  bm25_words: 'a text as words, without operators',
  RRF: 'one order of several searches, by ranks',
  similarity_cosine: 'of two vectors, 0 to 1',
  similarity_euclidean: 'of two vectors',
  similarity_dot_product: 'of two vectors',
  count: 'aggregate',
  min: 'aggregate',
  max: 'aggregate',
  sum: 'aggregate',
  avg: 'aggregate',
  writetime: 'when a value was written, in microseconds',
  maxwritetime: 'when the newest part of a value was written',
  ttl: 'seconds until a value expires',
  token: 'of the partition key',
  cast: 'cast(x AS type)',
  now: 'a new timeuuid',
  uuid: 'a random uuid',
  current_date: '',
  current_time: '',
  current_timestamp: '',
  current_timeuuid: '',
  min_timeuuid: 'of a timestamp',
  max_timeuuid: 'of a timestamp',
  to_date: '',
  to_timestamp: '',
  to_unix_timestamp: '',
  to_json: '',
  from_json: '',
  abs: '',
  exp: '',
  log: '',
  log10: '',
  round: '',
  floor: 'of a time, by a duration',
  map_keys: '',
  map_values: '',
  collection_count: '',
  collection_min: '',
  collection_max: '',
  collection_sum: '',
  collection_avg: '',
  mask_null: '',
  mask_default: '',
  mask_replace: '',
  mask_inner: '',
  mask_outer: '',
  mask_hash: '',
};

const KEYWORD_SET = new Set(KEYWORDS);
const ATOM_SET = new Set(ATOMS.map((word) => word.toLowerCase()));
const TYPE_SET = new Set(TYPES);
const FUNCTION_SET = new Set(Object.keys(FUNCTIONS).map((name) => name.toLowerCase()));

// The stream of one line goes through this. `state.open` is the end of a string or comment that
// goes on from line to line.
export const cql = StreamLanguage.define({
  name: 'cql',
  startState: () => ({ open: null }),
  token(stream, state) {
    if (state.open) return within(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match('--') || stream.match('//')) {
      stream.skipToEnd();
      return 'lineComment';
    }
    if (stream.match('/*')) return open(stream, state, '*/', 'blockComment');
    if (stream.match('$$')) return open(stream, state, '$$', 'string');
    if (stream.match("'")) return open(stream, state, "'", 'string');
    if (stream.match(/^"(?:[^"]|"")*"?/)) return 'variableName';
    if (stream.match(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i)) return 'number';
    if (stream.match(/^(?:0x[0-9a-f]*|[0-9]+(?:\.(?!\.)[0-9]*)?(?:e[+-]?[0-9]+)?[a-zµ0-9]*)/i)) return 'number';
    if (stream.match('?') || stream.match(/^:(?=[A-Za-z_"])[\w$]*/)) return 'special';
    if (stream.match(/^[A-Za-z_][\w$]*/)) return wordStyle(stream);
    stream.next();
    return null;
  },
  languageData: {
    commentTokens: { line: '--', block: { open: '/*', close: '*/' } },
    closeBrackets: { brackets: ['(', '[', '{', "'", '"'] },
  },
  tokenTable: { special: tags.special(tags.variableName) },
});

function open(stream, state, end, style) {
  state.open = { end, style };
  return within(stream, state);
}

function within(stream, state) {
  const { end, style } = state.open;
  while (!stream.eol()) {
    if (!stream.match(end)) {
      stream.next();
    } else if (end === "'" && stream.peek() === "'") {
      stream.next();
    } else {
      state.open = null;
      break;
    }
  }
  return style;
}

function wordStyle(stream) {
  const word = stream.current();
  const lower = word.toLowerCase();
  const isCall = stream.match(/^\s*\(/, false);
  if (isCall && FUNCTION_SET.has(lower)) return 'propertyName';
  if (KEYWORD_SET.has(word.toUpperCase())) return 'keyword';
  if (ATOM_SET.has(lower)) return 'atom';
  return TYPE_SET.has(lower) ? 'typeName' : 'variableName';
}

// Colours are variables of the style sheet, so that they follow the theme.
export const cqlColours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--code-keyword)', fontWeight: '600' },
  { tag: tags.typeName, color: 'var(--code-type)' },
  { tag: tags.propertyName, color: 'var(--code-function)' },
  { tag: tags.string, color: 'var(--code-string)' },
  { tag: [tags.number, tags.atom], color: 'var(--code-number)' },
  { tag: [tags.lineComment, tags.blockComment], color: 'var(--code-comment)', fontStyle: 'italic' },
  { tag: tags.special(tags.variableName), color: 'var(--code-number)', fontWeight: '600' },
]);

// The most completions of a list; what is typed narrows it.
const SHOWN_MAX = 300;

// The source of completions. `schema()` is a value of ./schema.js, `keyspace()` the one in use.
export function completionsOf(schema, keyspace) {
  return (context) => {
    const text = context.state.doc.toString();
    const word = context.matchBefore(/"?[\w$]*/);
    if (!context.explicit && word.from === word.to && text[word.from - 1] !== '.') return null;
    const before = [...tokens(text.slice(0, word.from))];
    const last = before.at(-1);
    if (last?.kind === 'comment' && !text.slice(last.from, word.from).includes('\n')) return null;
    if (last?.kind === 'string' && isOpen(last.text)) return null;
    const statement = sinceSemicolon(before);
    const after = sinceSemicolon([...tokens(text.slice(word.from))], true);
    const options = optionsFor(statement, after, schema(), keyspace());
    return { from: word.from, options: options.slice(0, SHOWN_MAX), validFor: /^"?[\w$]*"?$/ };
  };
}

function isOpen(text) {
  const quote = text.startsWith('$$') ? '$$' : "'";
  return text.length < 2 * quote.length || !text.endsWith(quote);
}

function sinceSemicolon(all, isAfter = false) {
  const places = all.map((token, at) => (token.text === ';' ? at : -1)).filter((at) => at >= 0);
  if (places.length === 0) return all;
  return isAfter ? all.slice(0, places[0]) : all.slice(places.at(-1) + 1);
}

const BEFORE_TABLE = new Set(['FROM', 'INTO', 'UPDATE', 'TABLE', 'TRUNCATE', 'ON', 'COLUMNFAMILY']);
const BEFORE_KEYSPACE = new Set(['USE', 'KEYSPACE']);

function optionsFor(statement, after, schema, keyspace) {
  const last = statement.at(-1);
  const lastWord = last?.kind === 'word' ? last.text.toUpperCase() : null;
  if (last?.text === '.') return tableOptions(schema, unquoted(statement.at(-2) ?? { kind: 'word', text: '' }));
  if (BEFORE_KEYSPACE.has(lastWord)) return keyspaceOptions(schema);
  if (BEFORE_TABLE.has(lastWord)) return [...tableOptions(schema, keyspace), ...keyspaceOptions(schema, '.')];
  const table = tableOf([...statement, ...after], schema, keyspace);
  return [...columnOptions(table), ...wordOptions(!table)];
}

// The table that a statement is about, of those that the schema has.
function tableOf(statement, schema, keyspace) {
  for (let at = 0; at + 1 < statement.length; at += 1) {
    const isBefore = statement[at].kind === 'word' && BEFORE_TABLE.has(statement[at].text.toUpperCase());
    if (!isBefore) continue;
    const first = unquoted(statement[at + 1]);
    const isQualified = statement[at + 2]?.text === '.' && statement[at + 3];
    const found = isQualified ? schema.table(first, unquoted(statement[at + 3])) : schema.table(keyspace, first);
    if (found) return found;
  }
  return null;
}

const option = (label, type, detail, boost = 0, apply = cqlName(label)) => ({ label, type, detail, boost, apply });

function keyspaceOptions(schema, end = '') {
  return schema.keyspaces().map((name) => option(name, 'namespace', 'keyspace', 0, cqlName(name) + end));
}

function tableOptions(schema, keyspace) {
  // A change log comes after the tables that people write to.
  return schema.tables(keyspace).map((name) => option(name, 'class', 'table', isLog(name) ? 0 : 2));
}

function columnOptions(table) {
  return (table?.columns ?? []).map(({ name, type }) => option(name, 'property', type, 3));
}

function wordOptions(isBare) {
  const keywords = KEYWORDS.map((word) => option(word, 'keyword', undefined, isBare ? 1 : 0, word));
  const types = TYPES.map((word) => option(word, 'type', 'type', -2, word));
  const functions = Object.entries(FUNCTIONS).map(([name, detail]) =>
    option(name, 'function', detail, 0, (view, _, from, to) => {
      // The cursor goes between the parentheses.
      view.dispatch({ changes: { from, to, insert: `${name}()` }, selection: { anchor: from + name.length + 1 } });
    }),
  );
  return [...keywords, ...functions, ...types];
}
