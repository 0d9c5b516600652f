import { createContext, html, useContext, useEffect, useRef, useState, useUniqueId } from './html.js';
import { Icon } from './icons.js';

export function Button({ kind = 'quiet', busy, disabled, onClick, icon, type = 'button', label, children, ...rest }) {
  return html`<button
    ...${rest}
    type=${type}
    class=${`button ${kind}${children ? '' : ' bare'}`}
    disabled=${disabled || busy}
    aria-busy=${busy ? 'true' : undefined}
    aria-label=${label}
    title=${children ? undefined : label}
    onClick=${onClick}
  >
    ${busy ? html`<span class="spinner" aria-hidden="true"></span>` : icon && html`<${Icon} name=${icon} size="16" />`}
    ${children}
  </button>`;
}

const FieldContext = createContext(null);

// What a control inside a Field sets on its element: its id, and where hint and error are.
export function useField() {
  return useContext(FieldContext) ?? {};
}

// A label, one control, a hint, and what is wrong with the value.
export function Field({ label, hint, error, children }) {
  const id = useUniqueId('field');
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  const field = { id, 'aria-describedby': described || undefined, 'aria-invalid': error ? 'true' : undefined };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <${FieldContext.Provider} value=${field}>${children}<//>
    ${hint && html`<p class="soft small" id=${`${id}-hint`}>${hint}</p>`}
    ${error && html`<p class="field-error small" id=${`${id}-error`}>${error}</p>`}
  </div>`;
}

// onInput and onChange get the event, as those of plain elements do.
export function Input({ type = 'text', inputRef, ...rest }) {
  return html`<input class="input" autocomplete="off" ...${useField()} type=${type} ref=${inputRef} ...${rest} />`;
}

export function TextArea({ rows = 4, inputRef, ...rest }) {
  return html`<textarea class="input" ...${useField()} rows=${rows} ref=${inputRef} ...${rest}></textarea>`;
}

// `options`: texts, or {value, label}.
export function Select({ options, value, ...rest }) {
  const field = useField();
  return html`<span class="select">
    <select class="input" ...${field} value=${value} ...${rest}>
      ${options.map((option) => {
        const { value: one, label } = typeof option === 'object' ? option : { value: option, label: option };
        return html`<option key=${one} value=${one} selected=${String(one) === String(value)}>${label}</option>`;
      })}
    </select>
    <${Icon} name="down" size="14" />
  </span>`;
}

export function Checkbox({ label, checked, onChange, ...rest }) {
  return html`<label class="checkbox">
    <input type="checkbox" checked=${checked} onChange=${onChange} ...${rest} />
    <span>${label}</span>
  </label>`;
}

export function Slider({ min = 0, max = 1, step = 0.01, ...rest }) {
  return html`<input class="slider" type="range" ...${useField()} min=${min} max=${max} step=${step} ...${rest} />`;
}

// Arrow keys go between tabs, as the pattern of ARIA has it. `controls`: the id of what the tabs change.
export function Tabs({ tabs, value, onChange, label, controls }) {
  const list = useRef(null);
  const onKeyDown = (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const here = tabs.findIndex((tab) => tab.id === value);
    const next = Number.isFinite(step) ? (here + step + tabs.length) % tabs.length : step < 0 ? 0 : tabs.length - 1;
    onChange(tabs[next].id);
    list.current.children[next].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${onKeyDown}>
    ${tabs.map(
      (tab) => html`<button
        key=${tab.id}
        type="button"
        role="tab"
        class="tab"
        aria-selected=${tab.id === value ? 'true' : 'false'}
        aria-controls=${controls}
        tabindex=${tab.id === value ? 0 : -1}
        onClick=${() => onChange(tab.id)}
      >
        ${tab.label}
      </button>`,
    )}
  </div>`;
}

// The box above a list. The key "/" goes to it.
export function Filter({ value, onChange, placeholder = 'Filter' }) {
  return html`<span class="filter">
    <${Icon} name="search" size="16" />
    <input
      class="input"
      type="search"
      data-filter
      autocomplete="off"
      spellcheck=${false}
      aria-label=${placeholder}
      placeholder=${placeholder}
      value=${value}
      onInput=${(event) => onChange(event.target.value)}
      onKeyDown=${(event) => {
        if (event.key !== 'Escape') return;
        if (value) onChange('');
        else event.target.blur();
      }}
    />
    <kbd aria-hidden="true">/</kbd>
  </span>`;
}

// What keeps rows by the box above a list: a test whether a text has all of its words.
export function wordsOf(filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}

const COPIED = { yes: 'Copied', no: 'Not copied: select the text' };

// Puts a text into the clipboard, and says so. A page without TLS has no clipboard beyond loopback:
// it then selects.
export function Copy({ text, label = 'Copy' }) {
  const [outcome, setOutcome] = useState(null);
  useEffect(() => {
    if (!outcome) return undefined;
    const timer = setTimeout(() => setOutcome(null), 1500);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      setOutcome('yes');
    } catch {
      setOutcome(copyBySelection(text, button) ? 'yes' : 'no');
    }
  };
  const icon = outcome === 'no' ? 'warning' : outcome ? 'check' : 'copy';
  return html`<${Button} icon=${icon} label=${outcome ? COPIED[outcome] : label} onClick=${copy} />
    <span class="hidden" role="status">${outcome ? COPIED[outcome] : ''}</span>`;
}

// What is outside of an open dialog can't be selected.
function copyBySelection(text, button) {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  (button.closest('dialog') ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  button.focus();
  return isCopied;
}
