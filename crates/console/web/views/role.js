// One role: what it may do, and which roles it has.
import { cql, session, useData } from '../api.js';
import { cqlName } from '../format.js';
import { Async, Badge, Button, Card, Confirm, Empty, Page, Table, html, navigate, toast, useState } from '../ui.js';
import { roleHref } from './links.js';
import { ChangePassword, GrantPermission, GrantRole } from './roles-forms.js';

const ROWS_MAX = 5000;

// A resource as LIST PERMISSIONS shows it, in the form of GRANT and REVOKE; null for one that has no simple form.
function resourceInCql(shown) {
  const [, kind, name] = /^<(all keyspaces|all roles|keyspace|table|role)(?: ([^]*))?>$/.exec(shown) ?? [];
  if (kind === 'all keyspaces') return 'ALL KEYSPACES';
  if (kind === 'all roles') return 'ALL ROLES';
  if (kind === 'keyspace') return `KEYSPACE ${cqlName(name)}`;
  if (kind === 'role') return `ROLE ${cqlName(name)}`;
  if (kind !== 'table') return null;
  // Names of keyspaces and tables have no dots.
  return name.split('.').map(cqlName).join('.');
}

async function load(name, signal) {
  const [roles, permissions] = await Promise.all([
    cql(`LIST ROLES OF ${cqlName(name)}`, { pageSize: ROWS_MAX, signal }),
    cql(`LIST ALL PERMISSIONS OF ${cqlName(name)}`, { pageSize: ROWS_MAX, signal }),
  ]);
  const role = roles.rows.find((row) => row.role === name);
  return { role, memberOf: roles.rows.filter((row) => row.role !== name), permissions: permissions.rows };
}

function Permissions({ name, permissions, onRevoke }) {
  const columns = [
    { key: 'resource', label: 'On', sort: true, render: (row) => html`<span class="mono">${row.resource.slice(1, -1)}</span>` },
    { key: 'permission', label: 'Permission', sort: true },
    { key: 'role', label: 'Granted to', sort: true, render: (row) => (row.role === name ? 'this role' : row.role) },
    {
      key: 'revoke',
      label: '',
      align: 'right',
      render: (row) =>
        row.role === name &&
        resourceInCql(row.resource) &&
        html`<${Button} icon="trash" label=${`Revoke ${row.permission} on ${row.resource.slice(1, -1)}`} onClick=${() => onRevoke(row)} />`,
    },
  ];
  return html`<${Table}
    caption="Permissions"
    columns=${columns}
    rows=${permissions}
    rowKey=${(row) => `${row.role} ${row.resource} ${row.permission}`}
    empty=${html`<${Empty} title="Nothing is granted">The role reads the schema, and no rows.<//>`}
  />`;
}

function Memberships({ name, memberOf, reload }) {
  const [revoked, setRevoked] = useState(null);
  if (memberOf.length === 0) return html`<p class="soft">It has no other role.</p>`;
  return html`<ul class="stack tight">
      ${memberOf.map(
        (row) => html`<li class="row spread" key=${row.role}>
          <span><a href=${roleHref(row.role)}>${row.role}</a> ${row.super && html`<${Badge} tone="warn">superuser<//>`}</span>
          <${Button} icon="trash" label=${`Take ${row.role} away`} onClick=${() => setRevoked(row.role)} />
        </li>`,
      )}
    </ul>
    <${Confirm}
      title=${`Take ${revoked} away from ${name}?`}
      open=${revoked !== null}
      onClose=${() => setRevoked(null)}
      confirmLabel="Take away"
      danger
      onConfirm=${async () => {
        await cql(`REVOKE ${cqlName(revoked)} FROM ${cqlName(name)}`);
        toast(`${name} no longer has ${revoked}`, 'good');
        reload();
      }}
      >What ${revoked} may do, ${name} may no longer do by it. It holds at once.<//
    >`;
}

function Known({ name, role, memberOf, permissions, reload }) {
  const [dialog, setDialog] = useState(null);
  const [revoked, setRevoked] = useState(null);
  const close = () => setDialog(null);
  const done = (text) => {
    toast(text, 'good');
    reload();
  };
  const facts = [role?.super && html`<${Badge} tone="warn">superuser<//>`, html`<${Badge}>${role?.login ? 'may log in' : 'may not log in'}<//>`];
  return html`<div class="row spread">
      <div class="row">${facts}</div>
      <div class="row">
        <${Button} icon="key" onClick=${() => setDialog('password')}>Change password<//>
        ${name !== session.current.role && html`<${Button} kind="danger" icon="trash" onClick=${() => setDialog('drop')}>Drop<//>`}
      </div>
    </div>
    <${Card} flush title="Permissions" actions=${html`<${Button} icon="plus" onClick=${() => setDialog('grant')}>Grant<//>`}>
      ${role?.super
        ? html`<${Empty} title="A superuser may do everything" />`
        : html`<${Permissions} name=${name} permissions=${permissions} onRevoke=${setRevoked} />`}
    <//>
    <${Card} title="Roles that it has" actions=${html`<${Button} icon="plus" onClick=${() => setDialog('member')}>Give a role<//>`}>
      <${Memberships} name=${name} memberOf=${memberOf} reload=${reload} />
    <//>
    <${GrantPermission} name=${name} open=${dialog === 'grant'} onClose=${close} onDone=${done} />
    <${GrantRole} name=${name} open=${dialog === 'member'} onClose=${close} onDone=${done} />
    <${ChangePassword} name=${name} open=${dialog === 'password'} onClose=${close} onDone=${done} />
    <${Confirm}
      title=${`Drop ${name}?`}
      open=${dialog === 'drop'}
      onClose=${close}
      confirmLabel="Drop the role"
      danger
      typed=${name}
      onConfirm=${async () => {
        await cql(`DROP ROLE ${cqlName(name)}`);
        toast(`${name} is dropped`, 'good');
        navigate('#/roles');
      }}
      >Who is logged in with it loses all rights at once. Its tables stay.<//
    >
    <${Confirm}
      title="Revoke this permission?"
      open=${revoked !== null}
      onClose=${() => setRevoked(null)}
      confirmLabel="Revoke"
      danger
      onConfirm=${async () => {
        await cql(`REVOKE ${revoked.permission} ON ${resourceInCql(revoked.resource)} FROM ${cqlName(name)}`);
        done(`${revoked.permission} is revoked`);
      }}
      ><code>${revoked && `${revoked.permission} on ${revoked.resource.slice(1, -1)}`}</code> is taken away at once.<//
    >`;
}

export function Role({ name }) {
  const role = useData((signal) => load(name, signal), [name]);
  return html`<${Page} title=${name} back=${{ href: '#/roles', label: 'Roles' }}>
    <${Async} of=${role} label="Loading the role">
      ${(data) => html`<${Known} name=${name} ...${data} reload=${role.reload} />`}
    <//>
  <//>`;
}
