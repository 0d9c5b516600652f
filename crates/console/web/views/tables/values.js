// Values of rows: how a cell shows them, and how a form reads and writes them.
import { html } from '../../ui.js';
import { shortVector } from '../../format.js';
import { jsonText, parseJson, toJson } from '../../json.js';
import { isVector } from './definition.js';

// The most characters of a cell. The dialog of the row has all.
const CELL_MAX = 140;
// A value of at most so many characters stays on one line: a uuid, a time, a shortened vector.
const SHORT_MAX = 40;

export const isText = (type) => /^(ascii|text|varchar)$/.test(type);

export const isNumber = (type) => /^(tinyint|smallint|int|bigint|varint|counter|float|double|decimal)$/.test(type);

// A value as one text, whole: what is copied, and sorted by.
export const textOf = (value) => (typeof value === 'string' ? value : jsonText(value));

// A value as one text to look at: a vector by a few of its elements.
export const shownText = (value, type) => (isVector(type) ? shortVector(value) : textOf(value));

// What a column of a table is sorted by.
export function sortKey(value, type) {
  if (value === null || value === undefined) return null;
  return isNumber(type) ? Number(value) : textOf(value);
}

export function Cell({ value, type, whole }) {
  if (value === null || value === undefined) return html`<span class="null">null</span>`;
  const text = shownText(value, type);
  if (text === '') return html`<span class="null">empty</span>`;
  const shown = !whole && text.length > CELL_MAX ? `${text.slice(0, CELL_MAX)}…` : text;
  if (isText(type)) return html`<span class="value-text">${shown}</span>`;
  return html`<code class=${text.length > SHORT_MAX ? 'value' : 'value short'}>${shown}</code>`;
}

// A value as a form shows it to be edited.
export function written(value, type) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'object') return toJson(value, isVector(type) ? undefined : 1).replace(/\n */g, ' ');
  return String(value);
}

// What a form's text is as a value: {value}, or {error}. Single values go as texts, which the server reads by their type.
export function read(text, type) {
  if (isText(type)) return { value: text };
  if (text.trim() === '') return { value: null };
  if (type === 'boolean') return { value: text === 'true' };
  if (!type.includes('<') && isSingle(type)) return { value: text.trim() };
  try {
    return { value: parseJson(text) };
  } catch (thrown) {
    return { error: `This is no JSON: ${thrown.message}.` };
  }
}

const SINGLE = new Set(
  'tinyint smallint int bigint varint float double decimal uuid timeuuid blob date time timestamp inet duration'.split(' '),
);

// User types are written as JSON, as collections are.
export const isSingle = (type) => SINGLE.has(type);

const EXAMPLES = {
  uuid: '123e4567-e89b-12d3-a456-426614174000',
  timeuuid: '8bade702-ad4f-11f1-947a-22772be954dc',
  date: '2026-01-31',
  time: '13:14:15.000',
  timestamp: '2026-01-31T13:14:15Z',
  blob: '0x00ff',
  inet: '127.0.0.1',
  duration: '1h30m',
};

// How a value of a type is written.
export function exampleOf(type) {
  if (EXAMPLES[type]) return EXAMPLES[type];
  if (isVector(type)) return '[0.1, 0.2, …]';
  if (/^(frozen<)?(list|set|tuple)</.test(type)) return 'JSON: ["one", "two"]';
  if (/^(frozen<)?map</.test(type)) return 'JSON: {"key": "value"}';
  return undefined;
}
