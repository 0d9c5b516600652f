// The view of the roles.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inAllForms, serverFor, settled, withPage } from './browser.mjs';

const HOSTILE = '<img src=x onerror="document.title=1">\'"';

test('without logins the view says how to have them', async () => {
  await withPage({ path: '#/roles' }, async ({ page }) => {
    await page.getByText('This server has no logins').waitFor();
  });
});

test('a role is shown in all forms', async () => {
  const server = await serverFor({ login: true });
  await server.cql('CREATE ROLE IF NOT EXISTS shown_readers');
  await server.cql('CREATE ROLE IF NOT EXISTS shown WITH LOGIN = true');
  await server.cql('GRANT SELECT ON KEYSPACE samples TO shown_readers');
  await server.cql('GRANT MODIFY ON samples.movies TO shown');
  await server.cql('GRANT shown_readers TO shown');
  await inAllForms({ login: true, path: '#/roles/shown' }, 'role', async ({ page }) => {
    await page.getByText('keyspace samples').waitFor();
  });
});

test('a role is created, granted to, and dropped', async () => {
  await withPage({ login: true, path: '#/roles' }, async ({ page, server }) => {
    await settled(page);
    await page.getByRole('button', { name: 'New role' }).click();
    const creating = page.getByRole('dialog', { name: 'New role' });
    await creating.getByLabel('Name').fill('Made here');
    await creating.getByLabel('Password').fill("It's-a-Pass-word-1");
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Made here' }).click();

    await page.getByText('Nothing is granted').waitFor();
    await page.getByRole('button', { name: 'Grant', exact: true }).click();
    const granting = page.getByRole('dialog', { name: 'Grant to Made here' });
    await granting.getByLabel('On', { exact: true }).selectOption('One table');
    await granting.getByLabel('Keyspace').fill('samples');
    await granting.getByLabel('Table').fill('movies');
    await granting.getByRole('button', { name: 'Grant' }).click();
    await page.getByRole('cell', { name: 'table samples.movies', exact: true }).waitFor();
    const rows = async () => (await server.cql('LIST ALL PERMISSIONS OF "Made here"')).rows.map((row) => row.permission);
    assert.deepEqual(await rows(), ['SELECT']);

    await page.getByRole('button', { name: 'Revoke SELECT on table samples.movies' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('Nothing is granted').waitFor();
    assert.deepEqual(await rows(), []);

    await page.getByRole('button', { name: 'Drop' }).click();
    const dropping = page.getByRole('dialog', { name: 'Drop Made here?' });
    assert.ok(await dropping.getByRole('button', { name: 'Drop the role' }).isDisabled());
    await dropping.getByLabel('Type Made here to go on').fill('Made here');
    await dropping.getByRole('button', { name: 'Drop the role' }).click();
    await page.getByRole('heading', { level: 1, name: 'Roles' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Made here' }).count(), 0);
  });
});

test('what the server refuses is said in the dialog', async () => {
  await withPage({ login: true, path: '#/roles/admin', allow: [/40\d/] }, async ({ page }) => {
    await settled(page);
    await page.getByRole('button', { name: 'Give a role' }).click();
    await page.getByRole('textbox', { name: 'Role' }).fill('nonesuch');
    await page.getByRole('button', { name: 'Give the role' }).click();
    const said = await page.getByRole('dialog').getByRole('alert').textContent();
    assert.match(said, /nonesuch/);
  });
});

test('the name of a role is text, whatever is in it', async () => {
  const server = await serverFor({ login: true });
  await server.cql(`CREATE ROLE IF NOT EXISTS "${HOSTILE.replaceAll('"', '""')}"`);
  await withPage({ login: true, path: '#/roles' }, async ({ page }) => {
    await page.getByRole('link', { name: HOSTILE }).click();
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    assert.equal(await page.locator('main img').count(), 0);
    assert.equal(await page.title(), `${HOSTILE} · Annulus`);
    await page.getByRole('button', { name: 'Grant', exact: true }).click();
    await page.getByLabel('Keyspace').fill('samples');
    await page.getByRole('dialog').getByRole('button', { name: 'Grant' }).click();
    await page.getByRole('cell', { name: 'keyspace samples', exact: true }).waitFor();
  });
});
