import { session } from '../api.js';
import { html, useEffect, useRef, useState } from './html.js';
import { Button, Field, Input } from './controls.js';

function sentence(failure) {
  if (failure.status === 401) return 'Name or password is wrong.';
  return failure.message;
}

// The page before a login with a role's name and password. `stale`: there was one, and it has ended.
export function Login({ current, stale }) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const first = useRef(null);
  useEffect(() => {
    document.title = 'Log in · Annulus';
    first.current.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      await session.login({ name, password });
    } catch (thrown) {
      setFailure(thrown);
      setBusy(false);
      setPassword('');
    }
  };
  return html`<main class="alone">
    <section class="card" aria-labelledby="login-title">
      <form class="stack" onSubmit=${submit}>
        <div class="stack tight">
          <h1 id="login-title">Log in to Annulus</h1>
          <p class="soft">${stale ? 'Your login has ended: log in again.' : `Use the name and the password of a role on ${current.http ?? location.host}.`}</p>
        </div>
        <${Field} label="Name">
          <${Input} inputRef=${first} value=${name} autocomplete="username" required onInput=${(event) => setName(event.target.value)} />
        <//>
        <${Field} label="Password">
          <${Input} type="password" value=${password} autocomplete="current-password" required onInput=${(event) => setPassword(event.target.value)} />
        <//>
        ${failure && html`<p class="field-error" role="alert">${sentence(failure)}</p>`}
        <${Button} kind="primary" type="submit" busy=${busy}>Log in<//>
      </form>
    </section>
  </main>`;
}
