// One row: all its values, and the forms to edit, insert and delete it.
import { ApiFailure, del, path, put } from '../../api.js';
import { Button, Copy, Dialog, Failure, html, toast, useEffect, useState } from '../../ui.js';
import { keyColumns, keyOfRow, orderedColumns, typeOf, valueOf } from './definition.js';
import { RowForm, rowOfForm } from './row-form.js';
import { Cell, shownText, textOf } from './values.js';

function Values({ definition, row }) {
  return html`<dl class="row-values">
    ${orderedColumns(definition).map(({ name, type }) => {
      const value = valueOf(row, name);
      return html`<div key=${name}>
        <dt><code>${name}</code> <span class="soft small">${type}</span></dt>
        <dd>
          <${Cell} value=${value} type=${type} whole />
          ${value !== null && html`<${Copy} text=${textOf(value)} label=${`Copy ${name}`} />`}
        </dd>
      </div>`;
    })}
  </dl>`;
}

function sameKeyText(definition, row) {
  return keyColumns(definition)
    .map((name) => `${name} = ${shownText(valueOf(row, name), typeOf(definition, name))}`)
    .join(', ');
}

async function deleteRow({ keyspace, table, definition, row }) {
  const key = keyColumns(definition).map((name) => [name, textOf(valueOf(row, name))]);
  await del(`${path('/api/v1/tables', keyspace, table, 'rows')}?${new URLSearchParams(key)}`);
}

const TITLES = { view: 'Row', edit: 'Edit the row', insert: 'Insert a row', delete: 'Delete this row?' };

// What the buttons of the dialog do: `mode` is view, edit, insert or delete.
function useRowWork({ keyspace, table, definition, shown, onChanged }) {
  const [mode, setMode] = useState('view');
  const [texts, setTexts] = useState({});
  const [errors, setErrors] = useState({});
  const [state, setState] = useState({ busy: false, failure: null });
  const row = shown?.row ?? null;
  const begin = (next) => {
    setMode(next);
    setErrors({});
    setTexts({});
    setState({ busy: false, failure: null });
  };
  useEffect(() => begin(row === null ? 'insert' : 'view'), [shown]);
  const run = async (work, done) => {
    setState({ busy: true, failure: null });
    try {
      await work();
      setState({ busy: false, failure: null });
      toast(done, 'good');
      onChanged();
    } catch (failure) {
      setState({ busy: false, failure });
    }
  };
  const save = () => {
    const { row: changes, errors: found } = rowOfForm(definition, row, texts);
    setErrors(found);
    if (Object.keys(found).length > 0) return undefined;
    const rows = [row === null ? changes : { ...keyOfRow(definition, row), ...changes }];
    const options = { rows, if_not_exists: row === null ? true : undefined };
    return run(async () => {
      const answer = await put(path('/api/v1/tables', keyspace, table, 'rows'), options);
      if (answer.applied?.[0] === false) throw new ApiFailure('wrong', 'A row with this key is there already. Edit that one, or choose another key.');
    }, row === null ? 'The row is inserted.' : 'The row is saved.');
  };
  const remove = () => run(() => deleteRow({ keyspace, table, definition, row }), 'The row is deleted.');
  return { mode, begin, texts, setTexts, errors, ...state, save, remove, row };
}

function Actions({ work, definition, onClose }) {
  const { mode, begin, busy, row } = work;
  const hasCounters = definition.columns.some(({ type }) => type === 'counter');
  if (mode === 'view') {
    return html`<${Button} kind="danger" icon="trash" onClick=${() => begin('delete')}>Delete<//>
      <${Button} icon="edit" disabled=${hasCounters} onClick=${() => begin('edit')}>Edit<//>
      <${Button} kind="primary" onClick=${onClose}>Close<//>`;
  }
  if (mode === 'delete') {
    return html`<${Button} onClick=${() => begin('view')}>Cancel<//>
      <${Button} kind="danger" busy=${busy} onClick=${work.remove}>Delete the row<//>`;
  }
  return html`<${Button} onClick=${() => (row === null ? onClose() : begin('view'))}>Cancel<//>
    <${Button} kind="primary" busy=${busy} onClick=${work.save}>${row === null ? 'Insert' : 'Save'}<//>`;
}

// `shown`: null, {row}, or {row: null} for a new one.
export function RowDialog({ keyspace, table, definition, shown, onClose, onChanged }) {
  const work = useRowWork({ keyspace, table, definition, shown, onChanged });
  const { mode, row } = work;
  // The mode follows what is shown one redraw later.
  const ready = shown !== null && (row !== null || mode === 'insert');
  return html`<${Dialog} title=${TITLES[mode]} open=${ready} wide=${mode !== 'delete'} onClose=${onClose} actions=${html`<${Actions} work=${work} definition=${definition} onClose=${onClose} />`}>
    <div class="stack">
      ${mode === 'view' && row && html`<${Values} definition=${definition} row=${row} />`}
      ${mode === 'delete' && row && html`<p>The row with <code>${sameKeyText(definition, row)}</code> goes from <code>${keyspace}.${table}</code>, and from its indexes.</p>`}
      ${(mode === 'edit' || mode === 'insert') &&
      html`<${RowForm} definition=${definition} row=${row} texts=${work.texts} errors=${work.errors} onChange=${work.setTexts} onSubmit=${work.save} />`}
      ${work.failure && html`<${Failure} failure=${work.failure} />`}
    </div>
  <//>`;
}

