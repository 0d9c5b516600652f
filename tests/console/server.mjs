// Starts an Annulus for the tests of the console, on free ports, with a directory of its own.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const program = process.env.ANNULUS ?? join(root, 'target/debug/annulus');
export const admin = { name: 'admin', password: 'Correct-horse-7' };
// A debug build on a busy machine takes its time.
const START_MS = 300000;
const FILMS = 10000;

// options: {login, sample, args, httpPort}; `args`: more flags of `annulus serve`.
export async function startServer({ login = false, sample = true, args = [], httpPort = 0 } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'annulus-console-'));
  const given = ['serve', '--data-dir', join(directory, 'data'), '--cql-port', '0', '--http-port', String(httpPort)];
  if (sample) given.push('--sample', 'movies');
  if (login) {
    const file = join(directory, 'superuser');
    await writeFile(file, `${admin.name}\n${admin.password}\n`, { mode: 0o600 });
    given.push('--login', '--superuser-file', file);
  }
  const child = spawn(program, [...given, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let log = '';
  const listening = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready after ${START_MS} ms:\n${log}`)), START_MS);
    const read = (piece) => {
      log += piece;
      // It listens before it has its first superuser and the sample.
      const found = /annulus is ready: CQL on (\S+), HTTP on (\S+)/.exec(log);
      if (!found) return;
      clearTimeout(timer);
      resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    const fail = (error) => {
      clearTimeout(timer);
      reject(error);
    };
    child.once('error', fail);
    child.once('exit', (code) => fail(new Error(`ended with ${code}:\n${log}`)));
  });
  const [, cqlAddress, http] = await listening;
  const authorization = login
    ? { Authorization: `Basic ${Buffer.from(`${admin.name}:${admin.password}`).toString('base64')}` }
    : {};
  const server = {
    cqlAddress,
    http,
    url: `http://${http}`,
    pid: child.pid,
    login,
    log: () => log,
    // Asks the HTTP API itself, as the superuser.
    async api(method, path, body) {
      const response = await fetch(`http://${http}${path}`, {
        method,
        headers: { 'X-Requested-With': 'annulus', 'Content-Type': 'application/json', ...authorization },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text === '' ? null : JSON.parse(text);
    },
    cql: (query, parameters) => server.api('POST', '/api/v1/cql', { query, parameters }),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
  // The first superuser is made, and the sample read, after the ports are open.
  const isReady = async () => {
    const asked = sample ? '/api/v1/indexes/samples/movies_by_plot/status' : '/api/v1/info';
    const answer = await fetch(`${server.url}${asked}`, { headers: authorization });
    if (!answer.ok) return false;
    const state = await answer.json();
    return !sample || (state.status === 'SERVING' && state.count === FILMS);
  };
  const bound = Date.now() + START_MS;
  while (!(await isReady())) {
    if (Date.now() > bound) throw new Error(`not ready after ${START_MS} ms:\n${log}`);
    await pause(50);
  }
  return server;
}
