import { html, navigate, useEffect } from './html.js';
import { Dialog } from './dialog.js';

// The letter after `g` that goes to a view.
const LETTERS = {
  start: 'h',
  query: 'q',
  search: 's',
  map: 'm',
  indexes: 'i',
  tables: 't',
  tasks: 'k',
  metrics: 'e',
  slow: 'l',
  connections: 'c',
  roles: 'r',
  settings: 'p',
  backups: 'b',
};
// So long after `g` a letter still belongs to it.
const PAIR_MS = 1500;

function isTyping(target) {
  return target.closest?.('input, textarea, select, [contenteditable="true"], .cm-editor') !== null;
}

// The keys of the page: g and a letter, / and ?. The keys that a text takes are not touched.
export function useKeys(views, { onHelp }) {
  useEffect(() => {
    let pressed = 0;
    const onKeyDown = (event) => {
      // A control inside of a shadow root shows only in the path.
      const target = event.composedPath()[0];
      if (event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element) || isTyping(target)) return;
      if (document.querySelector('dialog[open]')) return;
      const view = views.find((one) => LETTERS[one.id] === event.key);
      if (event.timeStamp - pressed < PAIR_MS && view) {
        pressed = 0;
        event.preventDefault();
        navigate(`#/${view.id}`);
        return;
      }
      pressed = event.key === 'g' ? event.timeStamp : 0;
      if (event.key === '?') onHelp();
      const filter = event.key === '/' && document.querySelector('main [data-filter]');
      if (filter) {
        event.preventDefault();
        filter.focus();
      }
    };
    window.addEventListener('keydown', onKeyDown);
    return () => window.removeEventListener('keydown', onKeyDown);
  }, [views.map((view) => view.id).join(' ')]);
}

export function Keys({ views, open, onClose }) {
  const pairs = [
    ['/', 'Go to the filter of a list'],
    ['Escape', 'Close what is open'],
    ['?', 'These keys'],
  ];
  return html`<${Dialog} title="Keys" open=${open} onClose=${onClose}>
    <dl class="keys">
      ${views
        .filter((view) => LETTERS[view.id])
        .map((view) => html`<div key=${view.id}><dt><kbd>g</kbd> <kbd>${LETTERS[view.id]}</kbd></dt><dd>${view.title}</dd></div>`)}
      ${pairs.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}
    </dl>
  <//>`;
}
