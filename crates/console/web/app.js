// The console's shell: navigation, login, and the view that the address names.
import { programName, session, useSession } from './api.js';
import { pause } from './polling.js';
import {
  Button,
  Card,
  Empty,
  Failure,
  Icon,
  Loading,
  Mark,
  Page,
  Toasts,
  html,
  render,
  toast,
  useEffect,
  useErrorBoundary,
  useMedia,
  useRef,
  useState,
} from './ui.js';
import { Keys, useKeys } from './ui/keys.js';
import { Login } from './ui/login.js';
import { useRoute } from './ui/route.js';
import { ThemeSwitch } from './ui/theme-switch.js';
import { views } from './views/index.js';

const GROUPS = ['Use', 'Data', 'Watch', 'Administer'];
// While the server is away, it is tried this often.
const RETRY_MS = 3000;

function Brand() {
  return html`<a class="brand" href="#/start">
    <${Mark} />
    Annulus
  </a>`;
}

function Account({ current }) {
  const [busy, setBusy] = useState(false);
  if (!current.logged_in) return null;
  const logout = async () => {
    setBusy(true);
    try {
      await session.logout();
    } catch (failure) {
      toast(`You are still logged in: ${failure.message}`, 'bad');
    }
    setBusy(false);
  };
  return html`<div class="row">
    <${Icon} name="key" size="16" />
    <span class="nav-role" title=${current.role ?? 'token'}>${current.role ?? 'with a token'}</span>
    <${Button} icon="logout" label="Log out" busy=${busy} onClick=${logout} />
  </div>`;
}

function Navigation({ current, shown, here, open, drawer }) {
  return html`<nav id="navigation" class=${open ? 'nav open' : 'nav'} aria-label="Views">
    <${Brand} />
    ${GROUPS.map((group) => {
      const links = shown.filter((view) => view.group === group);
      if (links.length === 0) return null;
      return html`<div key=${group}>
        <p class="nav-group" id=${`group-${group}`}>${group}</p>
        <ul aria-labelledby=${`group-${group}`}>
          ${links.map(
            (view) => html`<li key=${view.id}>
              <a class="nav-link" href=${`#/${view.id}`} aria-current=${view.id === here ? 'page' : undefined}>
                <${Icon} name=${view.icon} />${view.title}
              </a>
            </li>`,
          )}
        </ul>
      </div>`;
    })}
    <div class="nav-foot">
      <${Account} current=${current} />
      <div class="row spread">
        <span>${programName(current)}</span>
        <${ThemeSwitch} />
      </div>
      ${!drawer && html`<p>Keys: <kbd>?</kbd></p>`}
    </div>
  </nav>`;
}

// A fault in a view is shown in its place: the navigation still works.
function Guarded({ view, route }) {
  const [error, reset] = useErrorBoundary((thrown) => console.error(thrown));
  useEffect(() => {
    if (error) reset();
  }, [route.hash]);
  if (error) {
    return html`<${Page} title=${view.title}>
      <${Failure} failure=${{ kind: 'failed', message: `This is a fault of the console: ${error.message}` }} retry=${reset} />
    <//>`;
  }
  return html`<${view.View} parts=${route.parts} query=${route.query} />`;
}

function NoSuchView({ id }) {
  return html`<${Page} title="Not here">
    <${Card}>
      <${Empty} title=${`This server has no view "${id}"`} action=${html`<a href="#/start">Go to the start</a>`}>
        It may belong to a program that has tables, or the address may be cut off.
      <//>
    <//>
  <//>`;
}

function Shell({ current }) {
  const route = useRoute();
  const drawer = useMedia('(max-width: 719px)');
  const [open, setOpen] = useState(false);
  const [keysShown, setKeysShown] = useState(false);
  const main = useRef(null);
  const menu = useRef(null);
  const shown = views.filter((view) => !view.needs || view.needs(current));
  const view = shown.find((one) => one.id === route.id);
  const first = useRef(true);
  useKeys(shown, { onHelp: () => setKeysShown(true) });
  useEffect(() => {
    setOpen(false);
    // A screen reader hears of the new view, as it would of a new page.
    if (!first.current) main.current.focus({ preventScroll: true });
    first.current = false;
    window.scrollTo(0, 0);
  }, [route.id]);
  useEffect(() => {
    if (!open) return undefined;
    document.querySelector('#navigation a')?.focus();
    const close = (event) => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      menu.current?.querySelector('button').focus();
    };
    window.addEventListener('keydown', close);
    return () => window.removeEventListener('keydown', close);
  }, [open]);
  const skip = (event) => {
    event.preventDefault();
    main.current.focus();
  };
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the view</a>
    <div class="shell">
      <header class="top" ref=${menu}>
        <${Button} icon="menu" label="Views" aria-expanded=${String(open)} aria-controls="navigation" onClick=${() => setOpen(!open)} />
        <${Brand} />
      </header>
      ${drawer && open && html`<div class="shade" onClick=${() => setOpen(false)}></div>`}
      <${Navigation} current=${current} shown=${shown} here=${route.id} open=${open} drawer=${drawer} />
      <main id="main" tabindex="-1" ref=${main}>
        ${view ? html`<${Guarded} key=${view.id} view=${view} route=${route} />` : html`<${NoSuchView} id=${route.id} />`}
      </main>
    </div>
    <${Keys} views=${shown} open=${keysShown} onClose=${() => setKeysShown(false)} />`;
}

// While no session is known: the server starts, or is away.
function Waiting() {
  const failure = session.failure;
  useEffect(() => {
    if (!failure) return undefined;
    const controller = new AbortController();
    pause(RETRY_MS, controller.signal).then(
      () => session.load(),
      () => {},
    );
    return () => controller.abort();
  }, [failure]);
  if (!failure) return html`<div class="alone"><${Loading} label="Loading" /></div>`;
  if (failure.kind === 'busy') return html`<div class="alone"><${Loading} label="The server starts" /></div>`;
  return html`<div class="alone">
    <${Card}><${Failure} failure=${failure} retry=${() => session.load()} /><//>
  </div>`;
}

function needsLogin(current) {
  return current.login !== 'none' && !current.logged_in;
}

function App() {
  const current = useSession();
  const [stale, setStale] = useState(false);
  useEffect(() => {
    session.load();
    // A login has ended, or was never there. The session says which.
    const onLogin = () => {
      const before = session.current?.logged_in;
      if (before) session.load().then((now) => setStale(now !== null && !now.logged_in));
    };
    window.addEventListener('annulus:login', onLogin);
    return () => window.removeEventListener('annulus:login', onLogin);
  }, []);
  useEffect(() => {
    if (current?.logged_in) setStale(false);
  }, [current]);
  let page = html`<${Waiting} />`;
  if (current && needsLogin(current)) page = html`<${Login} current=${current} stale=${stale} />`;
  else if (current) page = html`<${Shell} key=${current.role ?? ''} current=${current} />`;
  return html`${page}<${Toasts} />`;
}

render(html`<${App} />`, document.getElementById('app'));
