// The form of one row. A form has only what was changed: what a row does not name stays as it is.
import { Checkbox, Field, Input, Select, TextArea, html } from '../../ui.js';
import { jsonName, keyColumns, orderedColumns, valueOf } from './definition.js';
import { exampleOf, isSingle, isText, read, written } from './values.js';

// The values of a form: {row, errors}. `texts` has the changed ones by column; null is a value that is taken away.
export function rowOfForm(definition, before, texts) {
  const row = {};
  const errors = {};
  const key = keyColumns(definition);
  for (const { name, type } of definition.columns) {
    const text = texts[name];
    if (text === undefined) {
      if (before === null && key.includes(name)) errors[name] = 'The key needs a value.';
      continue;
    }
    const { value, error } = text === null ? { value: null } : read(text, type);
    if (error) errors[name] = error;
    else if (value === null && key.includes(name)) errors[name] = 'The key needs a value.';
    else row[jsonName(name)] = value;
  }
  return { row, errors };
}

function Control({ type, text, isNull, onText }) {
  const shared = { value: isNull ? '' : text, placeholder: isNull ? 'null' : exampleOf(type), onInput: (event) => onText(event.target.value) };
  if (type === 'boolean') {
    const options = [{ value: '', label: 'null' }, 'true', 'false'];
    return html`<${Select} value=${isNull ? '' : text} options=${options} onChange=${(event) => onText(event.target.value === '' ? null : event.target.value)} />`;
  }
  if (isText(type)) return html`<${TextArea} rows=${Math.min(6, Math.max(1, Math.ceil((text ?? '').length / 80)))} ...${shared} />`;
  if (isSingle(type)) return html`<${Input} class="input mono" ...${shared} />`;
  return html`<${TextArea} class="input mono" rows="2" spellcheck=${false} ...${shared} />`;
}

function ColumnField({ column, row, texts, error, isKey, onChange }) {
  const { name, type } = column;
  const value = row === null ? null : valueOf(row, name);
  const changed = Object.hasOwn(texts, name);
  const text = changed ? texts[name] : value === null ? null : written(value, type);
  const onText = (given) => onChange({ ...texts, [name]: given });
  const label = `${name} (${type})`;
  if (isKey && row !== null) {
    return html`<${Field} label=${label} hint="The key of a row does not change."><${Input} class="input mono" value=${text} readonly /><//>`;
  }
  return html`<div class="stack tight">
    <${Field} label=${label} error=${error}>
      <${Control} type=${type} text=${text} isNull=${text === null} onText=${onText} />
    <//>
    ${isText(type) && !isKey && html`<${Checkbox} label=${`no value in ${name}`} checked=${text === null} onChange=${(event) => onText(event.target.checked ? null : '')} />`}
  </div>`;
}

export function RowForm({ definition, row, texts, errors, onChange, onSubmit }) {
  const key = keyColumns(definition);
  const submit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return html`<form class="row-form" onSubmit=${submit}>
    ${orderedColumns(definition).map(
      (column) => html`<${ColumnField}
        key=${column.name}
        column=${column}
        row=${row}
        texts=${texts}
        error=${errors[column.name]}
        isKey=${key.includes(column.name)}
        onChange=${onChange}
      />`,
    )}
  </form>`;
}
