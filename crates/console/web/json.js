// JSON whose numbers may be larger than a number of JavaScript is exact: those of bigint, varint and decimal columns.

// A number with so many digits may lose some.
const MANY_DIGITS = /\d{16}/;
// No double has more digits that count.
const DIGITS_OF_A_DOUBLE = 17;

// Parses JSON. A whole number that a double can't hold becomes a BigInt, any other one the text of its digits. A browser
// that doesn't show the digits of numbers rounds them, as JSON.parse does.
export function parseJson(text) {
  return MANY_DIGITS.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_, value, context) {
  const digits = context?.source;
  if (typeof value !== 'number' || digits === undefined) return value;
  if (/^-?\d+$/.test(digits)) return Number.isSafeInteger(value) ? value : BigInt(digits);
  const counting = digits.replace(/e.*$/i, '').replace(/[-.]/g, '').replace(/^0+|0+$/g, '');
  return counting.length > DIGITS_OF_A_DOUBLE ? digits : value;
}

// The body of a request. A BigInt goes as a text, which the server takes for a number.
export function toJson(value, space) {
  return JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one), space);
}

// JSON to read and copy. A BigInt is written with all its digits.
export function jsonText(value, indent) {
  const whole = (one) => JSON.rawJSON?.(String(one)) ?? String(one);
  return JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? whole(one) : one), indent);
}
