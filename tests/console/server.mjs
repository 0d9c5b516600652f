// Starts the programs for the tests of the console, on free ports, each with a directory of its own.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from './waiting.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = process.env.ANNULUS ?? join(root, 'target/debug/annulus');
export const admin = { name: 'admin', password: 'Correct-horse-7' };
export const token = 'a-token-of-the-console-0001';
// A debug build on a busy machine takes its time.
const START_MS = 300000;
const FILMS = 10000;

const basic = ({ name, password }) => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

// A program that runs: its process, its log, requests to its HTTP API with a login, and its end.
class Program {
  constructor(child, directory, authorization) {
    this.child = child;
    this.pid = child.pid;
    this.directory = directory;
    this.headers = authorization ? { Authorization: authorization } : {};
    this.output = '';
    this.ended = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
    const read = (piece) => {
      this.output += piece;
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
  }

  // Waits for a line of the output, and returns what the pattern finds in it.
  async says(pattern) {
    const { child } = this;
    const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
    let look;
    const found = new Promise((resolve) => {
      look = () => pattern.test(this.output) && resolve(pattern.exec(this.output));
      child.stdout.on('data', look);
      child.stderr.on('data', look);
    });
    const answer = await Promise.race([found, this.ended]);
    clearTimeout(timer);
    child.stdout.off('data', look);
    child.stderr.off('data', look);
    if (!Array.isArray(answer)) throw new Error(`ended before it was ready (${answer}):\n${this.output}`);
    return answer;
  }

  listensOn(http) {
    this.http = http;
    this.url = `http://${http}`;
  }

  log() {
    return this.output;
  }

  // Requests something of the HTTP API itself, with the login.
  async api(method, path, body) {
    const response = await fetch(this.url + path, {
      method,
      headers: { 'X-Requested-With': 'annulus', 'Content-Type': 'application/json', ...this.headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? null : JSON.parse(text);
  }

  cql(query, parameters) {
    return this.api('POST', '/api/v1/cql', { query, parameters });
  }

  signal(name) {
    this.child.kill(name);
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGTERM');
    await this.ended;
    await rm(this.directory, { recursive: true, force: true });
  }
}

// Starts the program with these arguments in a directory of its own, and waits for the line `ready`.
// Returns it and what the pattern found. `prepare(directory)` writes files, and returns arguments.
async function start(args, { ready, prepare = async () => [], authorization }) {
  const directory = await mkdtemp(join(tmpdir(), 'annulus-console-'));
  const more = await prepare(directory);
  const child = spawn(program, [...args, ...more], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  const started = new Program(child, directory, authorization);
  try {
    return { started, found: await started.says(ready) };
  } catch (error) {
    await started.stop();
    throw error;
  }
}

// `annulus serve`. options: {login, sample, args, httpPort}; `args`: more flags.
export async function startServer({ login = false, sample = true, args = [], httpPort = 0 } = {}) {
  const given = ['serve', '--cql-port', '0', '--http-port', String(httpPort)];
  if (sample) given.push('--sample', 'movies');
  const prepare = async (directory) => {
    const data = ['--data-dir', join(directory, 'data'), ...args];
    if (!login) return data;
    const file = join(directory, 'superuser');
    await writeFile(file, `${admin.name}\n${admin.password}\n`, { mode: 0o600 });
    return [...data, '--login', '--superuser-file', file];
  };
  // It listens before it has its first superuser and the sample.
  const ready = /annulus is ready: CQL on (\S+), HTTP on (\S+)/;
  const { started, found } = await start(given, { ready, prepare, authorization: login ? basic(admin) : null });
  started.listensOn(found[2]);
  started.cqlAddress = found[1];
  started.login = login;
  // The index has its rows a moment after the table has them.
  if (sample) await serves(started, 'samples', 'movies_by_plot', FILMS);
  return started;
}

// Waits until an index of a server serves so many rows.
export function serves(server, keyspace, index, rows) {
  const looked = async () => {
    const state = await server.api('GET', `/api/v1/indexes/${keyspace}/${index}`).catch(() => null);
    return state?.status === 'SERVING' && state.count === rows && state;
  };
  return until(`${keyspace}.${index} serves ${rows} rows`, looked, START_MS);
}

// A file of tokens, and the flag or the line of settings that names it.
async function tokenFile(directory) {
  const file = join(directory, 'tokens');
  await writeFile(file, `console ${token}\n`, { mode: 0o600 });
  return file;
}

// `annulus store` whose database is at this address, a host and a port. `login`: it wants a token.
export async function startStore({ database, login = false }) {
  const given = ['store', '--scylladb-uri', database, '--uri', '127.0.0.1:0', '--index-dir', 'indexes'];
  // An index service reads the log as often as it can, so that no test waits long.
  given.push('--cdc-fine-safety-interval', '100ms', '--cdc-fine-sleep-interval', '200ms');
  const prepare = async (directory) => (login ? ['--token-file', await tokenFile(directory)] : []);
  const ready = /annulus store is ready: HTTP on (\S+)/;
  const { started, found } = await start(given, { ready, prepare, authorization: login ? `Bearer ${token}` : null });
  started.listensOn(found[1]);
  return started;
}

// `annulus gateway` before a Cassandra that is away, with an index service in its process if there is
// a `database` for that to follow, else with its console where its metrics are. `login`: it wants a
// token.
export async function startGateway({ database, login = false }) {
  const given = ['gateway', '--cassandra', '127.0.0.1:1', '--cql-port', '0', '--config', 'gateway.toml'];
  const prepare = async (directory) => {
    const tokens = login ? [`token-file = "${await tokenFile(directory)}"`] : [];
    const store = ['with-store = true', '[store]', 'uri = "127.0.0.1:0"', 'index-dir = "indexes"', `scylladb-uri = "${database}"`];
    const alone = ['metrics-listen = "127.0.0.1:0"'];
    await writeFile(join(directory, 'gateway.toml'), [...(database ? store : alone), ...tokens, ''].join('\n'));
    return [];
  };
  const ready = database ? /the index service listens.*http=\[([\d.:]+)\]/ : /metrics are at http:\/\/(\S+)\/metrics/;
  const { started, found } = await start(given, { ready, prepare, authorization: login ? `Bearer ${token}` : null });
  started.listensOn(found[1]);
  return started;
}
