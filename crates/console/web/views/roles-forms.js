// Dialogs that change roles. Each runs one statement, with the rights of who is logged in.
import { cql } from '../api.js';
import { cqlLiteral, cqlName } from '../format.js';
import { Button, Checkbox, Dialog, Field, Input, Select, html, toast, useEffect, useState, useUniqueId } from '../ui.js';

const PERMISSIONS = ['SELECT', 'MODIFY', 'CREATE', 'ALTER', 'DROP', 'AUTHORIZE', 'DESCRIBE', 'EXECUTE', 'UNMASK', 'SELECT_MASKED', 'ALL'];

// A dialog with a form. statement(values) is what it runs; `first`: the values that it begins with.
function StatementDialog({ title, open, onClose, onDone, first, fields, statement, said, label }) {
  const [values, setValues] = useState(first);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const form = useUniqueId('form');
  useEffect(() => {
    setValues(first);
    setFailure(null);
  }, [open]);
  const set = (key) => (event) =>
    setValues({ ...values, [key]: event.target.type === 'checkbox' ? event.target.checked : event.target.value });
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      await cql(statement(values));
      onClose();
      onDone(said(values));
    } catch (thrown) {
      setFailure(thrown);
    }
    setBusy(false);
  };
  const actions = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form=${form} busy=${busy}>${label}<//>`;
  return html`<${Dialog} title=${title} open=${open} onClose=${onClose} actions=${actions}>
    <form id=${form} class="stack" onSubmit=${submit}>
      ${fields(values, set)} ${failure && html`<p class="field-error" role="alert">${failure.message}</p>`}
    </form>
  <//>`;
}

export function CreateRole({ open, onClose, onDone }) {
  const statement = ({ name, password, login, superuser }) => {
    const options = [`LOGIN = ${login}`, `SUPERUSER = ${superuser}`];
    if (password) options.push(`PASSWORD = ${cqlLiteral(password)}`);
    return `CREATE ROLE ${cqlName(name)} WITH ${options.join(' AND ')}`;
  };
  const fields = (values, set) => html`<${Field} label="Name"><${Input} value=${values.name} required onInput=${set('name')} /><//>
    <${Field} label="Password" hint="A role that only groups permissions needs none.">
      <${Input} type="password" autocomplete="new-password" value=${values.password} onInput=${set('password')} />
    <//>
    <div class="stack tight">
      <${Checkbox} label="May log in" checked=${values.login} onChange=${set('login')} />
      <${Checkbox} label="Superuser: may do everything" checked=${values.superuser} onChange=${set('superuser')} />
    </div>`;
  const done = (text) => {
    toast(text, 'good');
    onDone();
  };
  return html`<${StatementDialog}
    title="New role"
    open=${open}
    onClose=${onClose}
    onDone=${done}
    first=${{ name: '', password: '', login: true, superuser: false }}
    fields=${fields}
    statement=${statement}
    said=${({ name }) => `${name} is created`}
    label="Create the role"
  />`;
}

export function ChangePassword({ name, open, onClose, onDone }) {
  return html`<${StatementDialog}
    title=${`Password of ${name}`}
    open=${open}
    onClose=${onClose}
    onDone=${onDone}
    first=${{ password: '' }}
    fields=${(values, set) => html`<${Field} label="New password" hint="Logins with the old one end at their next request.">
      <${Input} type="password" autocomplete="new-password" required value=${values.password} onInput=${set('password')} />
    <//>`}
    statement=${({ password }) => `ALTER ROLE ${cqlName(name)} WITH PASSWORD = ${cqlLiteral(password)}`}
    said=${() => `${name} has a new password`}
    label="Change the password"
  />`;
}

export function GrantRole({ name, open, onClose, onDone }) {
  return html`<${StatementDialog}
    title=${`Give ${name} a role`}
    open=${open}
    onClose=${onClose}
    onDone=${onDone}
    first=${{ role: '' }}
    fields=${(values, set) => html`<${Field} label="Role"><${Input} required value=${values.role} onInput=${set('role')} /><//>`}
    statement=${({ role }) => `GRANT ${cqlName(role)} TO ${cqlName(name)}`}
    said=${({ role }) => `${name} has ${role}`}
    label="Give the role"
  />`;
}

const SCOPES = [
  { value: 'keyspaces', label: 'All keyspaces' },
  { value: 'keyspace', label: 'One keyspace' },
  { value: 'table', label: 'One table' },
  { value: 'roles', label: 'All roles' },
  { value: 'role', label: 'One role' },
];

function resourceOf({ scope, keyspace, table, role }) {
  if (scope === 'keyspaces') return 'ALL KEYSPACES';
  if (scope === 'roles') return 'ALL ROLES';
  if (scope === 'role') return `ROLE ${cqlName(role)}`;
  if (scope === 'keyspace') return `KEYSPACE ${cqlName(keyspace)}`;
  return `${cqlName(keyspace)}.${cqlName(table)}`;
}

export function GrantPermission({ name, open, onClose, onDone }) {
  const text = (label, key, values, set) =>
    html`<${Field} label=${label}><${Input} required value=${values[key]} onInput=${set(key)} /><//>`;
  const fields = (values, set) => html`<${Field} label="Permission">
      <${Select} options=${PERMISSIONS} value=${values.permission} onChange=${set('permission')} />
    <//>
    <${Field} label="On"><${Select} options=${SCOPES} value=${values.scope} onChange=${set('scope')} /><//>
    ${/^(keyspace|table)$/.test(values.scope) && text('Keyspace', 'keyspace', values, set)}
    ${values.scope === 'table' && text('Table', 'table', values, set)} ${values.scope === 'role' && text('Role', 'role', values, set)}`;
  return html`<${StatementDialog}
    title=${`Grant to ${name}`}
    open=${open}
    onClose=${onClose}
    onDone=${onDone}
    first=${{ permission: 'SELECT', scope: 'keyspace', keyspace: '', table: '', role: '' }}
    fields=${fields}
    statement=${(values) => `GRANT ${values.permission} ON ${resourceOf(values)} TO ${cqlName(name)}`}
    said=${({ permission }) => `${permission} is granted to ${name}`}
    label="Grant"
  />`;
}
