// What the tests of the console share: servers, a browser, pages whose log has no errors, the rules of axe.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { after } from 'node:test';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { admin, startServer, token } from './server.mjs';

const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const pictures = process.env.PICTURES;
const web = fileURLToPath(new URL('../../crates/console/web', import.meta.url));
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

export const widths = { desk: 1440, phone: 390 };
export const themes = ['light', 'dark'];
export { admin, token };

let browser;
const servers = new Map();

async function theBrowser() {
  assert.ok(existsSync(chromiumPath), `no browser at ${chromiumPath}: apt-get install chromium`);
  // The sandbox of Chromium does not work for root.
  const args = process.getuid() === 0 ? ['--no-sandbox'] : [];
  // One that crashed is started again, so that the tests after it say something.
  if (!browser?.isConnected()) browser = await chromium.launch({ executablePath: chromiumPath, args });
  return browser;
}

// A server for these options: one for all tests of a file that want the same. `start`: what starts it.
export async function serverFor(options = {}, start = startServer) {
  const given = { login: false, ...options };
  const key = `${start.name} ${JSON.stringify(given)}`;
  if (!servers.has(key)) servers.set(key, start(given));
  return servers.get(key);
}

// With the variable CONSOLE_WEB the page's files are those of crates/console/web as they are now, not those that the
// program was built with: a view is tried without a build. The policy is still the program's.
async function serveFromDisk(context) {
  await context.route(/:\d+\/(console\/(?!examples\/).*)?$/, async (route) => {
    const response = await route.fetch({ url: `${new URL(route.request().url()).origin}/` });
    const name = new URL(route.request().url()).pathname.replace(/^\/(console\/)?/, '') || 'index.html';
    const { ['etag']: _, ['content-length']: __, ...headers } = response.headers();
    await route.fulfill({ path: join(web, name), headers: { ...headers, 'content-type': TYPES[extname(name)] } });
  });
}

after(async () => {
  await browser?.close();
  const started = await Promise.allSettled(servers.values());
  await Promise.all(started.map((one) => one.value?.stop()));
});

// Opens a page and gives it to `use`: {page, server, errors, context, open}. The page's log must have no error in the end,
// but those that match one of `allow`.
// options: login (a server with one, and the browser logged in), theme, width, height, server (a server, or its options),
// allow, path ('#/start').
export async function withPage(options, use) {
  const { login = false, loggedIn = login, theme = 'light', width = widths.desk, height = 900, allow = [], path } = options;
  const server =
    typeof options.server?.stop === 'function' ? options.server : await serverFor({ login, ...options.server });
  const context = await (await theBrowser()).newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    baseURL: server.url,
    hasTouch: width < 720,
  });
  // A debug build on a busy machine takes its time.
  context.setDefaultTimeout(60000);
  if (process.env.CONSOLE_WEB) await serveFromDisk(context);
  const errors = [];
  try {
    if (loggedIn) await logIn(context, typeof loggedIn === 'object' ? loggedIn : admin);
    const page = await context.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') errors.push(`${message.text()} ${message.location().url}`);
    });
    page.on('pageerror', (error) => errors.push(String(error.stack ?? error)));
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith('http') && url.origin !== server.url) errors.push(`a request left the machine: ${url}`);
    });
    const open = async (hash) => {
      await page.goto(`/${hash}`);
      await page.locator('h1').first().waitFor();
    };
    if (path) await open(path);
    await use({ page, server, errors, context, open });
    const left = errors.filter((error) => !allow.some((pattern) => pattern.test(error)));
    assert.deepEqual(left, [], 'the log of the page has errors');
  } finally {
    await context.close();
  }
}

// Logs the browser in without the form: by {name, password}, or by {token}.
export async function logIn(context, { name, password, token: bearer }) {
  const authorization = bearer ? `Bearer ${bearer}` : `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
  const response = await context.request.post('/api/v1/session', {
    headers: { Authorization: authorization, 'X-Requested-With': 'annulus' },
  });
  assert.ok(response.ok(), `login of ${name ?? 'a token'}: ${response.status()} ${await response.text()}`);
}

// The page breaks no rule of axe: WCAG 2.2 A and AA, and what axe calls best practice.
export async function axe(page, { without = [] } = {}) {
  await page.evaluate(axeSource);
  const violations = await page.evaluate(async (rules) => {
    const result = await window.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      rules: Object.fromEntries(rules.map((rule) => [rule, { enabled: false }])),
    });
    return result.violations.map((one) => ({
      rule: one.id,
      help: one.help,
      at: one.nodes.map((node) => `${node.target.join(' ')}: ${node.failureSummary}`),
    }));
  }, without);
  assert.deepEqual(violations, [], 'rules of axe are broken');
}

// The page is not wider than the window: nothing is cut off at the right.
export async function fits(page) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `the page is ${content} pixels wide, the window ${window}`);
}

// Waits until nothing of the view loads any more.
export async function settled(page) {
  await page.waitForFunction(() => !document.querySelector('.loading, [aria-busy="true"]'));
}

// A picture of the page into the folder of the variable PICTURES; none without it.
export async function picture(page, name) {
  if (!pictures) return;
  await mkdir(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

// Sees that a view is whole in both themes and both widths: no error, nothing cut off, axe clean.
// `check({page, server})` runs in each before axe does.
export async function inAllForms(options, name, check = async () => {}) {
  for (const theme of themes) {
    for (const [form, width] of Object.entries(widths)) {
      await withPage({ ...options, theme, width }, async ({ page, server }) => {
        await settled(page);
        await check({ page, server });
        await picture(page, `${name}-${form}-${theme}`);
        await fits(page);
        await axe(page);
      });
    }
  }
}
