// The view of the connections.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { axe, inAllForms, settled, withPage } from './browser.mjs';

// The frame of a STARTUP, version 4 of the protocol, with these options.
function startup(options) {
  const text = (value) => {
    const bytes = Buffer.from(value);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const pairs = Object.entries(options);
  const count = Buffer.alloc(2);
  count.writeUInt16BE(pairs.length);
  const body = Buffer.concat([count, ...pairs.flatMap(([name, value]) => [text(name), text(value)])]);
  const head = Buffer.from([4, 0, 0, 0, 1, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 5);
  return Buffer.concat([head, body]);
}

async function withClient({ cqlAddress }, options, use) {
  const [, host, port] = /^(.*):(\d+)$/.exec(cqlAddress);
  const socket = connect(Number(port), host);
  try {
    await once(socket, 'connect');
    socket.write(startup({ CQL_VERSION: '3.0.0', ...options }));
    await once(socket, 'data');
    await use(socket);
  } finally {
    socket.destroy();
  }
}

test('the connections are shown in all forms', async () => {
  await inAllForms({ path: '#/connections' }, 'connections', async ({ page }) => {
    await page.getByRole('cell').getByText('HTTP', { exact: true }).first().waitFor();
  });
});

test('a client appears by itself, with what its driver says of itself as text', async () => {
  const name = '<b>driver</b>';
  await withPage({ path: '#/connections' }, async ({ page, server }) => {
    await settled(page);
    await withClient(server, { DRIVER_NAME: name, DRIVER_VERSION: '9.9', APPLICATION_NAME: '<i>app</i>' }, async (socket) => {
      const row = page.getByRole('row', { name: `127.0.0.1:${socket.localPort}` });
      await row.getByText(`${name} 9.9`).waitFor();
      await row.getByRole('button').click();
      const dialog = page.getByRole('dialog', { name: `127.0.0.1:${socket.localPort}` });
      await dialog.getByText('<i>app</i>').waitFor();
      await axe(page);
      await page.keyboard.press('Escape');
    });
    await page.getByText(`${name} 9.9`).waitFor({ state: 'detached' });
    assert.equal(await page.locator('main b, main i').count(), 0);
  });
});
