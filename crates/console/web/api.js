// Requests to the server that served this page. Nothing goes anywhere else.
import { parseJson, toJson } from './json.js';
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
async function failureOf(response) {
  const text = await response.text().catch(() => '');
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

// Sends a request. `body` goes as JSON. The answer is parsed JSON, or the response itself with `raw`.
export async function request(method, path, { body, signal, headers, raw } = {}) {
  let response;
  try {
    response = await fetch(path, {
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
      body: body === undefined ? undefined : toJson(body),
    });
  } catch (thrown) {
    if (thrown.name === 'AbortError') throw thrown;
    throw new ApiFailure('away', 'No answer came. The server may have stopped, or the network is down.');
  }
  if (!response.ok) {
    const failure = await failureOf(response);
    if (response.status === 401) window.dispatchEvent(new Event('annulus:login'));
    throw failure;
  }
  if (raw) return response;
  const text = await response.text();
  if (text === '') return null;
  return (response.headers.get('content-type') ?? '').includes('json') ? parseJson(text) : text;
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
  const response = await request('POST', '/api/v1/cql', {
    signal,
    raw: true,
    headers: trace ? { 'X-Annulus-Trace': '1' } : {},
    body: { query, parameters, keyspace, page_size: pageSize, page_state: pageState ?? undefined },
  });
  const answer = parseJson(await response.text());
  return {
    columns: answer.columns ?? [],
    rows: answer.rows ?? [],
    pageState: answer.page_state ?? null,
    warnings: answer.warnings ?? [],
    traceIds: (response.headers.get('x-annulus-trace') ?? '').split(/[\s,]+/).filter(Boolean),
    milliseconds: performance.now() - started,
  };
}

// What load(signal) answers, as {data, failure, loading, reload}. It loads again when a dependency changes, and each `every`
// milliseconds while the page is seen. What is under way ends when the view goes. A failure keeps the last data.
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
    const timer = setInterval(() => {
      // An answer that takes longer than the period is waited for.
      if (document.visibilityState === 'visible' && !current.current) run();
    }, every);
    return () => clearInterval(timer);
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
    return this.load();
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
