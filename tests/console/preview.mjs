// For development, until the program serves the console itself: a proxy that serves crates/console/web at / and passes /api
// on to a server. Routes that the server does not have yet are answered with stand-ins.
//
//   node tests/console/preview.mjs http://127.0.0.1:6080 [PORT]
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

function send(response, status, body, headers = {}) {
  const json = typeof body === 'object' && !Buffer.isBuffer(body);
  response.writeHead(status, { 'Content-Type': json ? 'application/json' : 'text/plain; charset=utf-8', ...headers });
  response.end(json ? JSON.stringify(body) : body);
}

const EXAMPLES = {
  python: 'python/quickstart.py',
  java: 'java/src/main/java/Quickstart.java',
  go: 'go/main.go',
  node: 'node/quickstart.mjs',
  rust: 'rust/src/main.rs',
};

async function file(response, web, path) {
  const name = path === '/' ? 'index.html' : normalize(path.slice('/console/'.length));
  const example = EXAMPLES[/^examples\/(\w+)$/.exec(name)?.[1]];
  try {
    if (name.startsWith('..')) throw new Error('outside');
    const content = await readFile(example ? join(process.env.EXAMPLES ?? join(web, '../../../examples'), example) : join(web, name));
    send(response, 200, content, {
      'Content-Type': example ? TYPES['.txt'] : TYPES[extname(name)] ?? 'application/octet-stream',
      'Content-Security-Policy': CSP,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-cache',
    });
  } catch {
    send(response, 404, 'missing file');
  }
}

async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
}

// Sends a request to the server, and gives its whole answer.
function ask(upstream, method, path, headers, body) {
  return new Promise((resolve, reject) => {
    const url = new URL(path, upstream);
    const sent = httpRequest(url, { method, headers: { ...headers, host: url.host } }, (answer) => {
      bodyOf(answer).then((content) => resolve({ status: answer.statusCode, headers: answer.headers, content }), reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

// Clouds of films, one for each genre.
function standInMap(points, rows, seed) {
  let state = seed + 1;
  const chance = () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  const gauss = () => Array.from({ length: 6 }, chance).reduce((a, b) => a + b) / 3 - 1;
  const genres = [...new Set(rows.map((row) => row.genre))];
  const some = rows.slice(0, points);
  const round = (place) => Number(Math.max(-1, Math.min(1, place)).toFixed(4));
  const at = some.map(({ genre }) => {
    const cloud = genres.indexOf(genre);
    const [angle, distance] = [cloud * 2.4, 0.78 * Math.sqrt((cloud % 37) / 37)];
    return [round(Math.cos(angle) * distance + gauss() * 0.16), round(Math.sin(angle) * distance + gauss() * 0.16)];
  });
  return {
    method: 'A stand-in of the preview: a cloud for each genre.',
    points: some.length,
    rows: rows.length,
    seed,
    made_at: new Date().toISOString(),
    age_s: 0,
    seconds: 1.5,
    neighbours_kept: 0.31,
    neighbours_kept_by_pca: 0.05,
    neighbours: 10,
    x: at.map(([x]) => x),
    y: at.map(([, y]) => y),
    primary_keys: { id: some.map((row) => row.id) },
    column_values: {},
  };
}

const MAP_TASK = '00000000-0000-1000-8000-000000000000';
const MAP_MS = 1500;

export async function startPreview({ upstream, web, port = 0 }) {
  const sessions = new Map();
  const maps = new Map();

  function authorizationOf(request) {
    const id = /annulus_session_preview=(\w+)/.exec(request.headers.cookie ?? '')?.[1];
    return sessions.get(id) ?? null;
  }

  async function session(request, response) {
    const info = (authorization) =>
      ask(upstream, 'GET', '/api/v1/info', authorization ? { authorization } : {}).then((answer) => ({
        status: answer.status,
        ...(answer.status === 200 ? JSON.parse(answer.content) : {}),
      }));
    if (request.method === 'POST') {
      const given = request.headers.authorization;
      if ((await info(given)).status !== 200) return send(response, 401, 'wrong name or password');
      const id = randomBytes(16).toString('hex');
      sessions.set(id, given);
      return send(response, 200, {}, { 'Set-Cookie': `annulus_session_preview=${id}; HttpOnly; SameSite=Strict; Path=/` });
    }
    if (request.method === 'DELETE') {
      return send(response, 200, {}, { 'Set-Cookie': 'annulus_session_preview=; Max-Age=0; Path=/' });
    }
    const free = await info(null);
    const authorization = authorizationOf(request);
    const mine = authorization ? await info(authorization) : free;
    const login = free.status === 401 ? 'password' : 'none';
    const loggedIn = login === 'password' && mine.status === 200;
    const role = loggedIn ? Buffer.from(authorization.split(' ')[1], 'base64').toString().split(':')[0] : null;
    const all = { cql: true, tables: true, search: true, indexes: true, embeddings: true, sample: true };
    return send(response, 200, {
      program: 'serve',
      version: free.version ?? mine.version ?? '0.1.0',
      login,
      logged_in: loggedIn,
      role,
      superuser: role ? role === 'admin' : null,
      features: { ...all, backups: true, tasks: true, metrics: true, settings: true },
      cql: '127.0.0.1:9042',
      http: new URL(upstream).host,
    });
  }

  async function settings(request, response, headers) {
    const query = { query: 'SELECT name, value FROM system_views.settings', page_size: 1000 };
    const sent = { ...headers, 'content-type': 'application/json', 'x-requested-with': 'annulus' };
    const answer = await ask(upstream, 'POST', '/api/v1/cql', sent, JSON.stringify(query));
    if (answer.status !== 200) return send(response, answer.status, answer.content);
    const rows = JSON.parse(answer.content).rows.map((row) => ({ ...row, source: 'default' }));
    return send(response, 200, { settings: rows });
  }

  function embed(body, response) {
    const { texts } = JSON.parse(body);
    const vectors = texts.map((text) => Array.from({ length: 384 }, (_, i) => Math.sin(i * 7 + text.length)));
    send(response, 200, { model: 'stand-in', dimensions: 384, vectors });
  }

  function taskOf(one) {
    const share = one.aborted ? 0.5 : Math.min(1, 1 - (one.at - Date.now()) / MAP_MS);
    return {
      id: MAP_TASK,
      sequence_number: 1000000,
      children_ids: [],
      kind: 'map',
      scope: 'index',
      state: one.aborted ? 'aborted' : share < 1 ? 'running' : 'done',
      is_abortable: true,
      abort_requested: false,
      start_time: new Date(one.at - MAP_MS).toISOString(),
      progress_units: 'rounds',
      progress_completed: Math.round(200 * share),
      progress_total: 200,
    };
  }

  async function map(request, path, body, response, headers) {
    const before = maps.get(path);
    if (request.method === 'GET') {
      const last = before && taskOf(before);
      if (last?.state === 'done') return send(response, 200, before.made);
      if (before?.held) return send(response, 200, before.held);
      return last?.state === 'running' ? send(response, 202, { task: last, ready: false }) : send(response, 404, 'no map of this index');
    }
    const { points = 5000, seed = 0, fresh = false } = JSON.parse(body || '{}');
    if (before && taskOf(before).state === 'done' && !fresh && before.points === points) return send(response, 200, { task: taskOf(before), ready: true });
    const sent = { ...headers, 'content-type': 'application/json', 'x-requested-with': 'annulus' };
    delete sent['content-length'];
    const query = { query: 'SELECT id, genre FROM samples.movies', page_size: 10000 };
    const answer = await ask(upstream, 'POST', '/api/v1/cql', sent, JSON.stringify(query));
    if (answer.status !== 200) return send(response, answer.status, answer.content);
    const held = before && taskOf(before).state === 'done' ? before.made : before?.held;
    const one = { made: standInMap(points, JSON.parse(answer.content).rows, seed), points, held, at: Date.now() + MAP_MS };
    maps.set(path, one);
    return send(response, 200, { task: taskOf(one), ready: false });
  }

  function mapTask(request, response) {
    const one = [...maps.values()].at(-1);
    if (request.method === 'DELETE') one.aborted = true;
    send(response, 200, taskOf(one));
  }

  const standIn = async (request, response, path, headers, body) => {
    if (path === '/api/v1/session') return session(request, response);
    if (path === '/api/v1/settings') return settings(request, response, headers);
    if (path === '/api/v1/embed') return embed(body, response);
    if (/^\/api\/v1\/indexes\/[^/]+\/[^/]+\/map$/.test(path)) return map(request, path, body, response, headers);
    if (path.endsWith(MAP_TASK)) return mapTask(request, response);
    return send(response, 404, `unknown path: ${path}`);
  };

  const HAVE_STAND_INS = /^\/api\/v1\/(session|settings|embed|indexes\/[^/]+\/[^/]+\/map|tasks\/0{8}-0{4}-1000-8000-0{12})$/;
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://preview');
    if (pathname === '/' || pathname.startsWith('/console/')) return file(response, web, pathname);
    const body = await bodyOf(request);
    const headers = { ...request.headers };
    delete headers.origin;
    delete headers.cookie;
    const authorization = authorizationOf(request);
    if (authorization && headers['x-requested-with'] && !headers.authorization) headers.authorization = authorization;
    try {
      if (HAVE_STAND_INS.test(pathname)) return await standIn(request, response, pathname, headers, body);
      const answer = await ask(upstream, request.method, request.url, headers, body);
      if (pathname === '/api/v1/tasks' && answer.status === 200) {
        const made = [...maps].map(([path, one]) => ({ ...taskOf(one), keyspace: path.split('/')[4], index: path.split('/')[5] }));
        answer.content = JSON.stringify([...JSON.parse(answer.content), ...made]);
        delete answer.headers['content-length'];
      }
      if (headers['x-requested-with']) delete answer.headers['www-authenticate'];
      response.writeHead(answer.status, answer.headers);
      response.end(answer.content);
    } catch {
      response.destroy();
    }
    return undefined;
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [upstream = 'http://127.0.0.1:6080', port = '0'] = process.argv.slice(2);
  const web = fileURLToPath(new URL('../../crates/console/web', import.meta.url));
  const { url } = await startPreview({ upstream, web, port: Number(port) });
  console.log(`the console is at ${url}`);
}
