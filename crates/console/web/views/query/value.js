// A value of a row, as a cell of a table shows it.

import { html } from '../../ui.js';
import { shortVector } from '../../format.js';
import { jsonText } from '../../json.js';

const NUMBERS = /^(tinyint|smallint|int|bigint|varint|counter|float|double|decimal)$/;

export const isNumber = (type) => NUMBERS.test(type);

// The most characters of a cell: the rest is in the row's own window.
const CELL_MAX = 160;

export function textOf(value) {
  return typeof value === 'string' ? value : jsonText(value);
}

export function Cell({ value, type }) {
  if (value === null || value === undefined) return html`<span class="null">null</span>`;
  if (/^vector</.test(type)) return html`<code>${shortVector(value)}</code>`;
  const text = textOf(value);
  if (text === '') return html`<span class="null">empty</span>`;
  return text.length > CELL_MAX ? `${text.slice(0, CELL_MAX)}…` : text;
}

// The text of a value by which a column is sorted.
export function sortKey(value, type) {
  if (value === null || value === undefined) return null;
  return isNumber(type) ? Number(value) : textOf(value);
}
