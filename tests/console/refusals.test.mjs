// What the page must not do, and what others must not do to it.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import { admin, logIn, serverFor, settled, withPage } from './browser.mjs';
import { guard, statusOf } from './requests.mjs';
import { startServer } from './server.mjs';

test('the page is served with a policy that takes no script but its own', async () => {
  const server = await serverFor({ login: false });
  for (const path of ['/', '/console/app.js', '/console/style.css']) {
    const response = await fetch(server.url + path);
    assert.equal(response.status, 200, path);
    const policy = response.headers.get('content-security-policy');
    for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      assert.ok(policy.includes(rule), `${path}: ${policy}`);
    }
    assert.doesNotMatch(policy, /unsafe/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
  }
  assert.equal((await fetch(`${server.url}/console/nonesuch.js`)).status, 404);
});

test('a script that gets into the page does not run', async () => {
  await withPage({ path: '#/settings', allow: [/Content Security Policy/] }, async ({ page, errors }) => {
    await settled(page);
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.bad = 1';
      document.body.append(script);
      const image = document.createElement('img');
      image.setAttribute('onerror', 'window.bad = 1');
      image.src = 'data:,';
      document.body.append(image);
    });
    await page.waitForFunction(() => document.images[0].complete);
    assert.equal(await page.evaluate(() => window.bad), undefined);
    assert.ok(errors.some((error) => /Content Security Policy/.test(error)), 'the browser refused it');
  });
});

test('a request with a foreign Origin, or under another name, is refused', async () => {
  const server = await serverFor({ login: false });
  for (const path of ['/', '/console/app.js', '/api/v1/session', '/api/v1/indexes']) {
    assert.equal(await statusOf(server.url + path, guard), 200, path);
    assert.equal(await statusOf(server.url + path, { ...guard, Origin: 'http://evil.example' }), 403, path);
    assert.equal(await statusOf(server.url + path, { ...guard, Host: `evil.example:${new URL(server.url).port}` }), 403, path);
  }
});

test('a page of another origin can neither read nor log in, nor use a login', async () => {
  const server = await serverFor({ login: true });
  const other = createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' });
    response.end('<!doctype html><title>Other</title><h1>Other</h1>');
  });
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  try {
    await withPage({ server, loggedIn: false, login: true, allow: [/./] }, async ({ page, context }) => {
      await logIn(context, admin);
      await page.goto(`http://localhost:${other.address().port}/`);
      const outcomes = await page.evaluate(async (target) => {
        const tries = [
          [`${target}/api/v1/session`, { credentials: 'include' }],
          [`${target}/api/v1/indexes`, { credentials: 'include', headers: { 'X-Requested-With': 'annulus' } }],
          [`${target}/api/v1/cql`, { method: 'POST', credentials: 'include', body: '{"query": "DROP KEYSPACE samples"}' }],
        ];
        return Promise.all(tries.map(([url, options]) => fetch(url, options).then(() => 'read', () => 'refused')));
      }, server.url);
      assert.deepEqual(outcomes, ['refused', 'refused', 'refused']);
      // A simple request goes out without a preflight. The server refuses it by its Origin, and for want of the header.
      const simple = { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"query": "DROP KEYSPACE samples"}' };
      await page.evaluate(([target, options]) => fetch(target, options).catch(() => {}), [`${server.url}/api/v1/cql`, simple]);
      const left = await server.cql('SELECT title FROM samples.movies WHERE id = 2263');
      assert.equal(left.rows.length, 1);
      const framed = await page.evaluate(
        (target) =>
          new Promise((resolve) => {
            const frame = document.createElement('iframe');
            frame.src = target;
            frame.onload = () => resolve(frame.contentDocument === null ? 'shut' : 'open');
            document.body.append(frame);
          }),
        server.url,
      );
      assert.equal(framed, 'shut');
    });
  } finally {
    other.close();
  }
});

test('the cookie of a login is of no use without the header of the console', async () => {
  await withPage({ login: true, path: '#/settings' }, async ({ context, server }) => {
    const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    assert.equal(await statusOf(`${server.url}/api/v1/indexes`, { ...guard, Cookie: cookies }), 200);
    assert.equal(await statusOf(`${server.url}/api/v1/indexes`, { Cookie: cookies }), 401);
    assert.equal(await statusOf(`${server.url}/api/v1/indexes`, { ...guard, Cookie: cookies.replace(/=./, '=!') }), 401);
  });
});

test('a server that stops is named as such, and the page goes on once it is back', async () => {
  let server = await startServer({ sample: false });
  const port = Number(new URL(server.url).port);
  try {
    await withPage({ server, path: '#/connections', allow: [/ERR_CONNECTION|ERR_EMPTY/] }, async ({ page, open }) => {
      await settled(page);
      await server.stop();
      const alert = page.getByRole('alert');
      await alert.getByText('The server does not answer').waitFor();
      // What was there is still shown.
      await page.getByRole('table').waitFor();
      server = await startServer({ sample: false, httpPort: port });
      await alert.waitFor({ state: 'detached' });
      await open('#/settings');
    });
  } finally {
    await server.stop();
  }
});

test('a server that hangs is named as such, and the page goes on once it answers again', async () => {
  const server = await startServer({ sample: false });
  try {
    await withPage({ server }, async ({ page, open }) => {
      await page.clock.install();
      await open('#/tasks');
      await settled(page);
      server.signal('SIGSTOP');
      const sent = page.waitForRequest('**/api/v1/tasks');
      await page.clock.runFor(6000);
      await sent;
      // One request waits, however long: none is sent behind it.
      let more = 0;
      page.on('request', () => (more += 1));
      await page.clock.runFor(20000);
      assert.equal(more, 0);
      await page.clock.runFor(11000);
      await page.getByRole('alert').getByText('No answer came in time').waitFor();
      server.signal('SIGCONT');
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('alert').waitFor({ state: 'detached' });
    });
  } finally {
    server.signal('SIGCONT');
    await server.stop();
  }
});

test('a page in a hidden tab requests nothing, and looks again once it is seen', async () => {
  await withPage({}, async ({ page, open }) => {
    await page.clock.install();
    await page.addInitScript(() => {
      let seen = true;
      Object.defineProperty(document, 'visibilityState', { get: () => (seen ? 'visible' : 'hidden') });
      window.setSeen = (now) => {
        seen = now;
        document.dispatchEvent(new Event('visibilitychange'));
      };
    });
    for (const view of ['start', 'tasks', 'indexes', 'connections', 'metrics', 'backups', 'indexes/samples/movies_by_plot']) {
      await page.goto('about:blank');
      await open(`#/${view}`);
      await settled(page);
      await page.waitForLoadState('networkidle');
      await page.evaluate(() => window.setSeen(false));
      const sent = [];
      const note = (request) => sent.push(request.url());
      page.on('request', note);
      await page.clock.runFor(120000);
      assert.deepEqual(sent, [], view);
      const again = page.waitForRequest('**/api/**');
      await page.evaluate(() => window.setSeen(true));
      await again;
      page.off('request', note);
    }
  });
});

test('a page whose server is away at first waits for it', async () => {
  await withPage({ allow: [/ERR_FAILED/] }, async ({ page, context }) => {
    await context.route('**/api/v1/session', (route) => route.abort());
    await page.goto('/#/settings');
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await context.unroute('**/api/v1/session');
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
  });
});

test('a server that starts says so', async () => {
  await withPage({ allow: [/503/] }, async ({ page, context }) => {
    await context.route('**/api/v1/session', (route) => route.fulfill({ status: 503, body: 'the storage opens' }));
    await page.goto('/#/settings');
    await page.getByText('The server starts').waitFor();
    await context.unroute('**/api/v1/session');
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
  });
});

test('a fault of a view leaves the navigation, and says that it is one', async () => {
  await withPage({ allow: [/TypeError/] }, async ({ page, context, open }) => {
    await context.route('**/api/v1/settings', (route) => route.fulfill({ json: { settings: [null] } }));
    await open('#/settings');
    await page.getByRole('alert').getByText('This is a fault of the console').waitFor();
    await page.getByRole('link', { name: 'Start' }).click();
    await page.getByRole('heading', { level: 1, name: 'Start' }).waitFor();
  });
});

test('each failure of the server is said in words', async () => {
  const cases = [
    [403, { error: 'no right', hint: 'have it granted' }, 'You have no right to this', 'Have it granted.'],
    [404, 'unknown path', 'This is not there', 'unknown path'],
    [503, { reason: 'INDEX_BUILDING', message: 'it is built' }, 'The server has too much to do', 'it is built'],
    [400, 'wrong', 'The server refused this request', 'wrong'],
    [500, 'a fault', 'The server could not do this', 'request-7'],
  ];
  await withPage({ allow: [/status of/] }, async ({ page, open }) => {
    let answer;
    await page.route('**/api/v1/settings', (route) =>
      route.fulfill({
        status: answer[0],
        headers: { 'X-Request-Id': 'request-7', 'Content-Type': typeof answer[1] === 'string' ? 'text/plain' : 'application/json' },
        body: typeof answer[1] === 'string' ? answer[1] : JSON.stringify(answer[1]),
      }),
    );
    for (answer of cases) {
      await open('#/start');
      await open('#/settings');
      const alert = page.getByRole('alert');
      await alert.getByText(answer[2]).waitFor();
      assert.ok((await alert.textContent()).includes(answer[3]), await alert.textContent());
    }
  });
});
