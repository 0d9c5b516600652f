import { html, useEffect } from './html.js';
import { Button } from './controls.js';
import { Icon } from './icons.js';

// A view: its heading, a sentence about it, buttons, and what it shows. `back`: {href, label} of the list that it is from.
export function Page({ title, lead, actions, back, children }) {
  useEffect(() => {
    document.title = `${title} · Annulus`;
  }, [title]);
  return html`<div class="page">
    <header class="page-head">
      <div>
        ${back && html`<a class="page-back" href=${back.href}>${back.label}</a>`}
        <h1>${title}</h1>
        ${lead && html`<p class="page-lead">${lead}</p>`}
      </div>
      ${actions && html`<div class="row">${actions}</div>`}
    </header>
    <div class="page-body">${children}</div>
  </div>`;
}

// `flush`: what is inside reaches the border, as a table does.
export function Card({ title, actions, flush, children }) {
  return html`<section class=${flush ? 'card flush' : 'card'} aria-label=${title}>
    ${(title || actions) &&
    html`<header class="card-head">
      ${title && html`<h2>${title}</h2>`}
      ${actions && html`<div class="row">${actions}</div>`}
    </header>`}
    ${children}
  </section>`;
}

export function Loading({ label = 'Loading' }) {
  return html`<div class="loading" role="status">
    <span class="spinner" aria-hidden="true"></span>
    <span>${label}</span>
  </div>`;
}

export function Empty({ title, children, action }) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${children && html`<div class="soft">${children}</div>`}
    ${action && html`<div class="row">${action}</div>`}
  </div>`;
}

const TITLES = {
  missing: 'This is not there',
  busy: 'The server has too much to do',
  away: 'The server does not answer',
  wrong: 'The server refused this request',
  failed: 'The server could not do this',
};

function titleOf(failure) {
  if (failure.kind === 'refused') {
    return failure.status === 401 ? 'Log in to see this' : 'You have no right to this';
  }
  return TITLES[failure.kind] ?? 'Something went wrong';
}

// Hints of the server begin with a small letter, as its log does.
function sentenceOf(hint) {
  const text = hint[0].toUpperCase() + hint.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

// Why something is not shown, and what to do. `retry`: a function.
export function Failure({ failure, retry }) {
  return html`<div class="failure" role="alert">
    <${Icon} name=${failure.kind === 'refused' ? 'key' : 'warning'} size="20" />
    <div class="stack tight">
      <p class="failure-title">${titleOf(failure)}</p>
      <p class="failure-text">${failure.message}</p>
      ${failure.hint && html`<p class="soft failure-text">${sentenceOf(failure.hint)}</p>`}
      ${failure.kind === 'failed' &&
      failure.requestId &&
      html`<p class="soft">The log has more under request <code>${failure.requestId}</code>.</p>`}
      ${retry &&
      failure.kind !== 'refused' &&
      html`<div><${Button} kind="quiet" onClick=${retry}>Try again<//></div>`}
    </div>
  </div>`;
}

function isEmptyData(data) {
  return data === null || data === undefined || (Array.isArray(data) && data.length === 0);
}

// Shows what useData has: that it loads, why it failed, that there is nothing, or children(data). `empty` is what to show
// for an empty list, or a function of the data that returns it, or false.
export function Async({ of, children, empty, label }) {
  const { data, failure, loading, reload } = of;
  const draw = Array.isArray(children) ? children.find((child) => typeof child === 'function') : children;
  if (data === undefined && failure) return html`<${Failure} failure=${failure} retry=${reload} />`;
  if (data === undefined && loading) return html`<${Loading} label=${label} />`;
  const nothing = typeof empty === 'function' ? empty(data) : empty && isEmptyData(data) && empty;
  return html`${failure && html`<${Failure} failure=${failure} retry=${reload} />`}${nothing || draw(data)}`;
}
