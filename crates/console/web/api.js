// Requests to the server that served this page. Nothing goes anywhere else.
import { parseJson, toJson } from './json.js';
import { pause } from './polling.js';
import { useCallback, useEffect, useRef, useState } from './vendor/preact-htm.js';

// Why a request was not answered. kind: 'refused' (401, 403), 'missing' (404), 'busy' (429, 503), 'away' (no connection),
// 'wrong' (another 4xx), 'failed' (5xx).
export class ApiFailure extends Error {
  constructor(kind, message, { status = 0, hint = null, requestId = null, body = null } = {}) {
    super(message);
    this.name = 'ApiFailure';
    this.kind = kind;
    this.status = status;
    this.hint = hint;
    this.requestId = requestId;
    this.body = body;
  }
}

function kindOf(status) {
  if (status === 401 || status === 403) return 'refused';
  if (status === 404) return 'missing';
  if (status === 429 || status === 503) return 'busy';
  return status >= 500 ? 'failed' : 'wrong';
}

// An error's body is a text, or JSON with `error` and `hint`, or with `reason` and `message`.
function failureOf(response, text) {
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // A text it is.
  }
  const said = body && typeof body === 'object' ? (body.error ?? body.message ?? body.reason) : text.trim();
  return new ApiFailure(kindOf(response.status), said || `The server answered with the status ${response.status}.`, {
    status: response.status,
    hint: body?.hint ?? null,
    requestId: response.headers.get('x-request-id'),
    body,
  });
}

// What only reads is answered soon. A server that hangs must not leave a view that waits without a word.
const READ_WITHIN_MS = 30000;
// The server bounds a statement by 30 s itself.
const STATEMENT_WITHIN_MS = 60000;

// A signal that ends a request once `signal` does, or after `ms` milliseconds; and what stops that clock.
function bounded(signal, ms) {
  if (!ms) return { signal, stop: () => {} };
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException('no answer in time', 'TimeoutError')), ms);
  return { signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal, stop: () => clearTimeout(timer) };
}

// Why nothing came: the page gave the request up, it took too long, or the connection ended.
function unanswered(signal) {
  if (signal?.aborted && signal.reason.name !== 'TimeoutError') return signal.reason;
  if (signal?.aborted) return new ApiFailure('away', 'No answer came in time. The server may hang, or the network is slow.');
  return new ApiFailure('away', 'No answer came. The server may have stopped, or the network is down.');
}

// Sends a request, and returns the answer with its text. `body` goes as JSON. Without an answer within so many milliseconds it
// fails; 0 waits.
async function exchange(method, path, { body, signal: given, headers, within = method === 'GET' ? READ_WITHIN_MS : 0 }) {
  const text = body === undefined ? undefined : toJson(body);
  const { signal, stop } = bounded(given, within);
  try {
    const response = await fetch(path, {
      method,
      signal,
      credentials: 'same-origin',
      cache: 'no-store',
      headers: {
        // No page of another origin can send it: the server takes changes and the cookie of a login only with it.
        'X-Requested-With': 'annulus',
        // The login is that of the session alone, and a refusal of it brings no dialog of the browser.
        'X-Annulus-Console': '1',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: text,
    });
    return { response, text: await response.text() };
  } catch {
    throw unanswered(signal);
  } finally {
    stop();
  }
}

// Sends a request. The answer is parsed JSON or a text; with `raw` it is {headers, data}.
export async function request(method, path, { raw, ...options } = {}) {
  const { response, text } = await exchange(method, path, options);
  if (!response.ok) {
    if (response.status === 401) window.dispatchEvent(new Event('annulus:login'));
    throw failureOf(response, text);
  }
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  const data = text === '' ? null : isJson ? parseJson(text) : text;
  return raw ? { headers: response.headers, data } : data;
}

export const get = (path, options) => request('GET', path, options);
export const post = (path, body, options) => request('POST', path, { ...options, body });
export const put = (path, body, options) => request('PUT', path, { ...options, body });
export const patch = (path, body, options) => request('PATCH', path, { ...options, body });
export const del = (path, options) => request('DELETE', path, options);

// Joins a path and encoded parts: path('/api/v1/indexes', keyspace, name).
export const path = (first, ...parts) => [first, ...parts.map((part) => encodeURIComponent(part))].join('/');

// Runs a CQL statement: {columns: [{name, type}], rows, pageState, warnings, traceIds, milliseconds}. A pageState requests
// the next page.
export async function cql(query, { parameters, keyspace, pageSize = 100, pageState, signal, trace } = {}) {
  const started = performance.now();
  const { headers, data: answer } = await request('POST', '/api/v1/cql', {
    signal,
    raw: true,
    within: STATEMENT_WITHIN_MS,
    headers: trace ? { 'X-Annulus-Trace': '1' } : {},
    body: { query, parameters, keyspace, page_size: pageSize, page_state: pageState ?? undefined },
  });
  return {
    columns: answer.columns ?? [],
    rows: answer.rows ?? [],
    pageState: answer.page_state ?? null,
    warnings: answer.warnings ?? [],
    traceIds: (headers.get('x-annulus-trace') ?? '').split(/[\s,]+/).filter(Boolean),
    milliseconds: performance.now() - started,
  };
}

// What load(signal) answers, as {data, failure, loading, reload}. It loads again when a dependency
// changes, and `every` so many milliseconds after an answer while the page is seen. What is under
// way ends when the view goes. A failure keeps the last data.
export function useData(load, dependencies = [], { every } = {}) {
  const [state, setState] = useState({ data: undefined, failure: null, loading: true });
  const current = useRef(null);
  const latest = useRef(load);
  latest.current = load;
  const run = useCallback(async () => {
    current.current?.abort();
    const controller = new AbortController();
    current.current = controller;
    try {
      const data = await latest.current(controller.signal);
      if (controller.signal.aborted) return;
      current.current = null;
      setState({ data, failure: null, loading: false });
    } catch (failure) {
      if (controller.signal.aborted) return;
      current.current = null;
      if (!(failure instanceof ApiFailure)) console.error(failure);
      setState((before) => ({ data: before.data, failure, loading: false }));
    }
  }, []);
  const reload = useCallback(() => {
    setState((before) => ({ ...before, loading: true }));
    return run();
  }, []);
  useEffect(() => {
    setState({ data: undefined, failure: null, loading: true });
    run();
    return () => {
      current.current?.abort();
      current.current = null;
    };
  }, dependencies);
  useEffect(() => {
    if (!every) return undefined;
    const controller = new AbortController();
    const poll = async () => {
      while (!controller.signal.aborted) {
        await pause(every, controller.signal);
        if (!current.current) await run();
      }
    };
    poll().catch((thrown) => {
      if (!controller.signal.aborted) console.error(thrown);
    });
    return () => controller.abort();
  }, [every]);
  return { ...state, reload };
}

// What GET /api/v1/session answered last: program, version, login, logged_in, role, superuser, features, cql, http.
export const session = {
  current: null,
  failure: null,
  listeners: new Set(),

  async load() {
    try {
      this.current = await get('/api/v1/session');
      this.failure = null;
    } catch (failure) {
      this.failure = failure;
    }
    this.tell();
    return this.current;
  },

  // By {name, password} or by {token}.
  async login({ name, password, token }) {
    const authorization = !token ? `Basic ${base64(`${name}:${password}`)}` : `Bearer ${token}`;
    await request('POST', '/api/v1/session', { headers: { Authorization: authorization } });
    await this.load();
    if (this.failure) throw this.failure;
  },

  // Ends the login on the server, too: the cookie is of no use to anyone afterwards.
  async logout() {
    await del('/api/v1/session');
    return this.load();
  },

  tell() {
    for (const listener of this.listeners) listener();
  },
};

const PROGRAMS = { serve: 'annulus serve', store: 'annulus store', gateway: 'annulus gateway' };

// The command that runs, with its version.
export const programName = ({ program, version }) => `${PROGRAMS[program] ?? program} ${version}`;

// Whether the login may do what only a superuser may. A token may do all, and without logins everyone.
export const mayOperate = () => session.current?.superuser !== false;

// btoa takes only bytes.
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

// The session, and a redraw when it changes.
export function useSession() {
  const [, setCount] = useState(0);
  useEffect(() => {
    const listener = () => setCount((count) => count + 1);
    session.listeners.add(listener);
    return () => session.listeners.delete(listener);
  }, []);
  return session.current;
}
