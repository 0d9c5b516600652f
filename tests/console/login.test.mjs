// Login, logout, a login that has ended, and rights.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admin, axe, fits, picture, serverFor, settled, themes, widths, withPage } from './browser.mjs';

async function fillIn(page, { name, password }) {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

// A role of its own for a test, with a password.
async function makeRole(name) {
  const server = await serverFor({ login: true });
  const role = { name, password: `Pass-word-of-${name}-1` };
  await server.cql(`CREATE ROLE IF NOT EXISTS ${name} WITH LOGIN = true AND PASSWORD = '${role.password}'`);
  return { server, role };
}

test('the page of the login is whole in all forms', async () => {
  for (const theme of themes) {
    for (const [form, width] of Object.entries(widths)) {
      await withPage({ login: true, loggedIn: false, theme, width, path: '' }, async ({ page }) => {
        await page.goto('/');
        await page.getByLabel('Name').waitFor();
        assert.equal(await page.title(), 'Log in · Annulus');
        await picture(page, `login-${form}-${theme}`);
        await fits(page);
        await axe(page);
      });
    }
  }
});

test('a wrong password is refused in words, the right one is taken, by keyboard alone', async () => {
  await withPage({ login: true, loggedIn: false, path: '#/settings', allow: [/401/] }, async ({ page, context }) => {
    // The focus is in the first field.
    await page.keyboard.type(admin.name);
    await page.keyboard.press('Tab');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Name or password is wrong.').waitFor();
    assert.equal(await page.getByLabel('Password').inputValue(), '');
    await page.getByLabel('Password').focus();
    await page.keyboard.type(admin.password);
    await page.keyboard.press('Enter');
    // The address that was asked for is shown.
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    await page.getByText(admin.name, { exact: true }).waitFor();
    const cookies = await context.cookies();
    assert.ok(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict', JSON.stringify(cookies));
    assert.doesNotMatch(JSON.stringify(cookies), new RegExp(admin.password));
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    assert.doesNotMatch(stored, new RegExp(admin.password));
  });
});

test('a login holds after the page is loaded again, and ends with a logout', async () => {
  await withPage({ login: true, path: '#/settings' }, async ({ page }) => {
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Log in to Annulus' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Log in to Annulus' }).waitFor();
  });
});

test('a logout that the server does not hear of is said', async () => {
  await withPage({ login: true, path: '#/settings', allow: [/ERR_FAILED/] }, async ({ page, context }) => {
    await context.route('**/api/v1/session', (route) => route.abort());
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText(/You are still logged in: No answer came/).waitFor();
    await context.unroute('**/api/v1/session');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Log in to Annulus' }).waitFor();
  });
});

test('a login whose password has changed leads to the login page, which says why', async () => {
  const { server, role } = await makeRole('stale_one');
  await withPage({ login: true, loggedIn: role, server, path: '#/connections', allow: [/401|403/] }, async ({ page }) => {
    await settled(page);
    await server.cql(`ALTER ROLE ${role.name} WITH PASSWORD = 'Another-pass-word-2'`);
    // The view looks again by itself.
    await page.getByText('Your login has ended. Log in again.').waitFor();
    await fillIn(page, { name: role.name, password: 'Another-pass-word-2' });
    await page.getByRole('heading', { level: 1, name: 'Connections' }).waitFor();
    // After a logout no login has ended by itself.
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('Use the name and the password of a role').waitFor();
  });
});

test('a login whose role is dropped leads to the login page', async () => {
  const { server, role } = await makeRole('dropped_one');
  await withPage({ login: true, loggedIn: role, server, path: '#/connections', allow: [/401|403/] }, async ({ page }) => {
    await settled(page);
    await server.cql(`DROP ROLE ${role.name}`);
    await page.getByText('Your login has ended. Log in again.').waitFor();
  });
});

test('a role without a right reads which one it lacks', async () => {
  const { server, role } = await makeRole('poor_one');
  await withPage({ login: true, loggedIn: role, server, path: '#/slow', allow: [/403/] }, async ({ page }) => {
    const alert = page.getByRole('alert');
    await alert.getByText('You have no right to this').waitFor();
    assert.match(await alert.textContent(), /has no SELECT permission on <table system_views\.slow_queries>/);
    await axe(page);
  });
});
