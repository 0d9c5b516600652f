import { html, useEffect, useState, useUniqueId } from './html.js';
import { count } from '../format.js';
import { Field, Input, Select, wordsOf } from './controls.js';

// Of more than a list is good for, one is picked by typing, and so many are offered.
const LIST_MAX = 40;
const OFFERED_MAX = 50;

// A choice of one of many by its name. `options`: {value, label}, whose values are names. `of`: the
// word for many of them.
export function Pick({ label, of, options, value, onChange }) {
  const [typed, setTyped] = useState(value);
  const list = useUniqueId('offered');
  useEffect(() => setTyped(value), [value]);
  if (options.length <= LIST_MAX) {
    const isKnown = options.some((one) => one.value === value);
    const all = isKnown ? options : [{ value: '', label: 'Pick one' }, ...options];
    const choose = (event) => event.target.value !== '' && onChange(event.target.value);
    return html`<${Field} label=${label}><${Select} value=${isKnown ? value : ''} options=${all} onChange=${choose} /><//>`;
  }
  const matches = wordsOf(typed);
  const offered = options.filter((one) => matches(one.value)).slice(0, OFFERED_MAX);
  const write = (event) => {
    const text = event.target.value;
    setTyped(text);
    if (options.some((one) => one.value === text)) onChange(text);
  };
  return html`<${Field} label=${label} hint=${`${count(options.length)} ${of}: type a part of a name`}>
      <${Input} value=${typed} list=${list} spellcheck=${false} onInput=${write} />
    <//>
    <datalist id=${list}>${offered.map((one) => html`<option key=${one.value} value=${one.value}>${one.label}</option>`)}</datalist>`;
}
