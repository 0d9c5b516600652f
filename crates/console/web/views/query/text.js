// The text of CQL: its tokens, its statements, what a statement does, its markers, and the place
// that an error of the server names. All of it is plain text work, without the page.

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])/i;
const BLOB = /^0x[0-9a-f]*/i;
const NUMBER = /^[0-9]+(\.(?!\.)[0-9]*)?(e[+-]?[0-9]+)?[0-9a-zµ]*/i;
const WORD = /^[\p{L}_][\p{L}\p{N}_$]*/u;

// The tokens of a text, as {kind, text, from, to}. `kind` is word, name (in double quotes), string,
// number, marker, symbol or comment. A string or comment that is not closed ends with the text.
export function* tokens(text) {
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const blank = /^\s+/.exec(rest);
    if (blank) {
      at += blank[0].length;
      continue;
    }
    const [kind, length] = tokenAt(rest);
    yield { kind, text: rest.slice(0, length), from: at, to: at + length };
    at += length;
  }
}

function tokenAt(rest) {
  if (rest.startsWith('--') || rest.startsWith('//')) {
    const end = rest.search(/[\r\n]/);
    return ['comment', end < 0 ? rest.length : end];
  }
  if (rest.startsWith('/*')) return ['comment', closedBy(rest, 2, '*/')];
  if (rest.startsWith('$$')) return ['string', closedBy(rest, 2, '$$')];
  if (rest[0] === "'") return ['string', quotedLength(rest, "'")];
  if (rest[0] === '"') return ['name', quotedLength(rest, '"')];
  const number = UUID.exec(rest) ?? BLOB.exec(rest) ?? NUMBER.exec(rest);
  if (number) return ['number', number[0].length];
  const word = WORD.exec(rest);
  if (word) return ['word', word[0].length];
  if (rest[0] === '?') return ['marker', 1];
  const marker = /^:([\p{L}_][\p{L}\p{N}_$]*|"(?:[^"]|"")*")/u.exec(rest);
  if (marker) return ['marker', marker[0].length];
  return ['symbol', /^(<=|>=|!=|\+=|-=|\.\.)/.exec(rest)?.[0].length ?? 1];
}

function closedBy(rest, from, end) {
  const place = rest.indexOf(end, from);
  return place < 0 ? rest.length : place + end.length;
}

function quotedLength(rest, quote) {
  let at = 1;
  for (;;) {
    const next = rest.indexOf(quote, at);
    if (next < 0) return rest.length;
    if (rest[next + 1] !== quote) return next + 1;
    at = next + 2;
  }
}

// The statements of a text, as {from, to, text, verb}. A statement ends with a semicolon, but not
// within a batch. `text` is without that semicolon, and begins at its first token.
export function statements(text) {
  const found = [];
  let open = null;
  const close = (to) => {
    if (open) found.push({ from: open.from, to, text: text.slice(open.from, open.to), verb: open.verb });
    open = null;
  };
  let before = null;
  for (const token of tokens(text)) {
    if (token.kind === 'comment') continue;
    if (token.kind === 'symbol' && token.text === ';' && !open?.inBatch) {
      close(token.to);
      continue;
    }
    const word = token.kind === 'word' ? token.text.toUpperCase() : null;
    open ??= { from: token.from, verb: word ?? '', inBatch: word === 'BEGIN' };
    if (word === 'BATCH' && before === 'APPLY') open.inBatch = false;
    open.to = token.to;
    before = word;
  }
  if (open) close(open.to);
  return found;
}

// The statement at a place of a text: the one that the place is in or directly after, else the one
// before it; null where there is none.
export function statementAt(text, place) {
  const all = statements(text);
  const within = all.find((one) => one.from <= place && place <= one.to);
  return within ?? all.findLast((one) => one.to <= place) ?? all[0] ?? null;
}

const READS = new Set(['SELECT', 'DESCRIBE', 'DESC', 'LIST', 'USE']);

// Whether a statement only reads. One that is not known counts as one that writes.
export function isRead(statement) {
  return READS.has(statement.verb);
}

// Whether a statement may hold a password, so that it must not be remembered.
export function holdsSecret(text) {
  for (const token of tokens(text)) {
    if (token.kind === 'word' && /^(PASSWORD|HASHED)$/i.test(token.text)) return true;
  }
  return false;
}

// The markers of a statement: [] of names, in which ? has the name null.
export function markersOf(text) {
  const names = [];
  let before = null;
  for (const token of tokens(text)) {
    // In {a:b} the colon is that of a map.
    const isEntry = before?.to === token.from && before.kind !== 'symbol';
    if (token.kind === 'marker' && token.text === '?') names.push(null);
    else if (token.kind === 'marker' && !isEntry) names.push(token.text.slice(1));
    before = token;
  }
  return names.includes(null) ? names : [...new Set(names)];
}

// The keyspace that a USE names.
export function usedKeyspace(statement) {
  const [, name] = [...tokens(statement.text)].filter((token) => token.kind !== 'comment');
  return name ? unquoted(name) : '';
}

// The name that a token of kind word or name writes.
export function unquoted(token) {
  if (token.kind !== 'name') return token.text.toLowerCase();
  return token.text.slice(1, token.text.endsWith('"') ? -1 : undefined).replaceAll('""', '"');
}

const NAMED = [
  /^Undefined column name "?([^\s"]+?)"? in table/,
  /^(?:table|keyspace) "?([^\s"]+?)"? does not exist/,
  /^Unknown function (\S+) called/,
  /^Unknown (?:type|property) '?"?([^\s'"]+)/,
  /^Invalid \w+ constant \((.*)\) for/s,
];

// The place within a statement that an error names, as {from, to}: by its line and column, by the
// character of a query for words, or by a name or value that it has in its text. Without any of
// these it is the whole statement.
export function errorPlace(statement, error) {
  const position = /^line (\d+):(\d+) /.exec(error);
  if (position) return tokenFrom(statement, offsetOf(statement, +position[1], +position[2]));
  const character = /, at character (\d+) of the query/.exec(error);
  const words = character && wordQuery(statement);
  if (words) {
    const from = Math.min(words.from + Number(character[1]), words.to - 1);
    return { from, to: words.to - 1 > from ? words.to - 1 : words.to };
  }
  const whole = { from: 0, to: statement.length };
  const name = NAMED.map((pattern) => pattern.exec(error)?.[1]).find(Boolean);
  if (!name) return whole;
  const names = [name, name.split('.').at(-1)];
  for (const token of tokens(statement)) {
    if (token.kind !== 'comment' && names.includes(written(token))) return { from: token.from, to: token.to };
  }
  return whole;
}

// What a token writes: a name without its quotes, a string without its own.
function written(token) {
  if (token.kind === 'string') return token.text.replace(/^'|'$/g, '').replaceAll("''", "'");
  return token.kind === 'word' || token.kind === 'name' ? unquoted(token) : token.text;
}

// The string of the one query for words of a statement; null if there are several.
function wordQuery(statement) {
  const strings = [];
  let calls = false;
  for (const token of tokens(statement)) {
    if (token.kind === 'word') calls = /^BM25/i.test(token.text) || (calls && !/^[A-Z]+$/.test(token.text));
    if (token.kind === 'string' && calls) strings.push(token);
  }
  return new Set(strings.map((one) => one.text)).size === 1 ? strings[0] : null;
}

// The offset of a column, counted from 1 in characters, of a line, counted from 1.
function offsetOf(text, line, column) {
  let from = 0;
  for (let number = 1; number < line; number += 1) {
    const next = text.indexOf('\n', from);
    if (next < 0) break;
    from = next + 1;
  }
  const characters = [...text.slice(from)].slice(0, Math.max(column - 1, 0));
  return Math.min(from + characters.join('').length, text.length);
}

// The token at an offset. At the end of a statement it is the last one, so that there is something
// to mark.
function tokenFrom(text, offset) {
  let last = { from: 0, to: text.length };
  for (const token of tokens(text)) {
    if (token.kind === 'comment') continue;
    if (token.from >= offset || token.to > offset) return { from: token.from, to: token.to };
    last = token;
  }
  return { from: last.from, to: last.to };
}
