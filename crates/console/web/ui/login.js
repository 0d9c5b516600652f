import { session } from '../api.js';
import { html, useEffect, useRef, useState } from './html.js';
import { Button, Field, Input } from './controls.js';
import { Mark } from './icons.js';

function sentence(failure, byToken) {
  if (failure.status === 401) return byToken ? 'This is not a token of this server.' : 'Name or password is wrong.';
  return failure.message;
}

function lead(current, stale) {
  if (stale) return 'Your login has ended. Log in again.';
  const server = current.http ?? location.host;
  return current.login === 'token'
    ? `${server} takes a token: one that is in its token file.`
    : `Use the name and the password of a role of ${server}.`;
}

// The page before a login: by a role's name and password, or by a token. `stale`: there was a login, and it has ended.
export function Login({ current, stale }) {
  const [secrets, setSecrets] = useState({ name: '', password: '', token: '' });
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const first = useRef(null);
  const byToken = current.login === 'token';
  useEffect(() => {
    document.title = 'Log in · Annulus';
    first.current.focus();
  }, []);
  const set = (key) => (event) => setSecrets({ ...secrets, [key]: event.target.value });
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      await session.login(byToken ? { token: secrets.token } : secrets);
    } catch (thrown) {
      setFailure(thrown);
      setSecrets({ ...secrets, password: '', token: '' });
    }
    setBusy(false);
  };
  const ofRole = html`<${Field} label="Name">
      <${Input} inputRef=${first} value=${secrets.name} autocomplete="username" required onInput=${set('name')} />
    <//>
    <${Field} label="Password">
      <${Input} type="password" value=${secrets.password} autocomplete="current-password" required onInput=${set('password')} />
    <//>`;
  const ofToken = html`<${Field} label="Token">
    <${Input} type="password" inputRef=${first} value=${secrets.token} required onInput=${set('token')} />
  <//>`;
  return html`<main class="alone">
    <section class="card" aria-labelledby="login-title">
      <form class="stack" onSubmit=${submit}>
        <div class="stack tight">
          <span class="login-mark"><${Mark} size="32" /></span>
          <h1 id="login-title">Log in to Annulus</h1>
          <p class="soft" role=${stale ? 'status' : undefined}>${lead(current, stale)}</p>
        </div>
        ${byToken ? ofToken : ofRole} ${failure && html`<p class="field-error" role="alert">${sentence(failure, byToken)}</p>`}
        <${Button} kind="primary" type="submit" busy=${busy}>Log in<//>
      </form>
    </section>
  </main>`;
}
