// The list of all tables for views that look again and again: of 5,000 tables it is long.
import { get } from '../../api.js';
import { useRef } from '../../ui.js';

const OLD_MS = 60000;

// A function load(signal, sign) that answers the tables. They are read again after a minute, or when
// `sign` is another one: a text that changes with what may have changed them.
export function useTables() {
  const known = useRef({ at: -Infinity, sign: null, tables: [] });
  return async (signal, sign) => {
    const now = performance.now();
    if (known.current.sign !== sign || now - known.current.at > OLD_MS) {
      known.current = { at: now, sign, tables: await get('/api/v1/tables', { signal }) };
    }
    return known.current.tables;
  };
}
