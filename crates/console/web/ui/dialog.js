import { html, useEffect, useRef, useState, useUniqueId } from './html.js';
import { Button, Field, Input } from './controls.js';
import { Icon } from './icons.js';

// A dialog of the browser's own: it holds the focus, and Escape closes it.
export function Dialog({ title, open, onClose, children, actions, wide }) {
  const element = useRef(null);
  const heading = useUniqueId('dialog');
  useEffect(() => {
    const dialog = element.current;
    if (open && !dialog.open) {
      dialog.showModal();
      // A form is ready to be filled in. Without one, the button that closes has the focus.
      dialog.querySelector('.dialog-body :is(input, select, textarea)')?.focus();
    }
    if (!open && dialog.open) dialog.close();
  }, [open]);
  const onCancel = (event) => {
    event.preventDefault();
    onClose();
  };
  const onClick = (event) => {
    if (event.target === element.current) onClose();
  };
  return html`<dialog
    ref=${element}
    class=${wide ? 'dialog wide' : 'dialog'}
    aria-labelledby=${heading}
    onCancel=${onCancel}
    onClick=${onClick}
  >
    ${open &&
    html`<div class="dialog-inner">
      <header class="row spread">
        <h2 id=${heading}>${title}</h2>
        <${Button} icon="close" label="Close" onClick=${onClose} />
      </header>
      <div class="dialog-body">${children}</div>
      ${actions && html`<footer class="row">${actions}</footer>`}
    </div>`}
  </dialog>`;
}

// Says what will happen before it does. `typed`: a name that has to be written first. onConfirm may return a promise: the
// button waits for it, and what it throws is shown.
export function Confirm({ title, open, onClose, onConfirm, confirmLabel = 'Go on', danger, typed, children }) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const [written, setWritten] = useState('');
  useEffect(() => {
    setFailure(null);
    setWritten('');
  }, [open]);
  const confirm = async () => {
    setBusy(true);
    setFailure(null);
    try {
      await onConfirm();
      onClose();
    } catch (thrown) {
      setFailure(thrown);
    }
    setBusy(false);
  };
  const actions = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button}
      kind=${danger ? 'danger' : 'primary'}
      busy=${busy}
      disabled=${typed !== undefined && written !== typed}
      onClick=${confirm}
      >${confirmLabel}<//
    >`;
  return html`<${Dialog} title=${title} open=${open} onClose=${onClose} actions=${actions}>
    <div class="stack">
      <div>${children}</div>
      ${typed !== undefined &&
      html`<${Field} label=${`Type ${typed} to go on`}>
        <${Input} value=${written} onInput=${(event) => setWritten(event.target.value)} />
      <//>`}
      ${failure && html`<p class="field-error" role="alert">${failure.message}</p>`}
    </div>
  <//>`;
}

const toasts = [];
let redrawToasts = () => {};
let lastToast = 0;

// Says a sentence at the edge of the page for some seconds. `tone`: good, warn, bad.
export function toast(text, tone = 'quiet') {
  const one = { id: (lastToast += 1), text, tone };
  toasts.push(one);
  redrawToasts();
  setTimeout(() => dismiss(one), tone === 'bad' ? 12000 : 5000);
}

function dismiss(one) {
  const place = toasts.indexOf(one);
  if (place >= 0) toasts.splice(place, 1);
  redrawToasts();
}

// Where toasts appear: once in the page.
export function Toasts() {
  const [, setCount] = useState(0);
  useEffect(() => {
    redrawToasts = () => setCount((count) => count + 1);
    return () => {
      redrawToasts = () => {};
    };
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.map(
      (one) => html`<div key=${one.id} class=${`toast ${one.tone}`}>
        <${Icon} name=${one.tone === 'good' ? 'check' : one.tone === 'quiet' ? 'right' : 'warning'} size="16" />
        <span>${one.text}</span>
        <${Button} icon="close" label="Dismiss" onClick=${() => dismiss(one)} />
      </div>`,
    )}
  </div>`;
}
