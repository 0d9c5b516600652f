import { cql, session, useData } from '../api.js';
import { count } from '../format.js';
import { Async, Badge, Button, Card, Empty, Filter, Page, Table, html, useState, wordsOf } from '../ui.js';
import { roleHref } from './links.js';
import { CreateRole } from './roles-forms.js';
import { Role } from './role.js';

const ROWS_MAX = 5000;
const NO_LOGINS = 'none';

const COLUMNS = [
  { key: 'role', label: 'Role', sort: true },
  {
    key: 'super',
    label: 'Rights',
    sort: true,
    render: (row) => (row.super ? html`<${Badge} tone="warn">superuser<//>` : html`<span class="soft">what is granted</span>`),
  },
  { key: 'login', label: 'May log in', sort: true, render: (row) => (row.login ? 'yes' : html`<span class="soft">no</span>`) },
];

function Roles({ roles, hasMore, reload }) {
  const [filter, setFilter] = useState('');
  const [creating, setCreating] = useState(false);
  const matches = wordsOf(filter);
  return html`<div class="row spread">
      <${Filter} value=${filter} onChange=${setFilter} placeholder="Filter roles" />
      <${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)}>New role<//>
    </div>
    ${hasMore && html`<p class="note">There are more. The first ${count(ROWS_MAX)} are listed.</p>`}
    <${Card} flush>
      <${Table}
        caption="Roles"
        columns=${COLUMNS}
        rows=${roles.filter((row) => matches(row.role))}
        rowKey="role"
        rowHref=${(row) => roleHref(row.role)}
        order=${{ key: 'role', down: false }}
        empty=${html`<${Empty} title="No role matches" />`}
      />
    <//>
    <${CreateRole} open=${creating} onClose=${() => setCreating(false)} onDone=${reload} />`;
}

function AllRoles() {
  const roles = useData((signal) => cql('LIST ROLES', { pageSize: ROWS_MAX, signal }));
  const lead = session.current.superuser
    ? 'Who may log in, and what is granted to whom.'
    : 'The roles that yours is or has. A superuser sees all.';
  return html`<${Page} title="Roles" lead=${lead}>
    <${Async} of=${roles} label="Loading the roles">${({ rows, pageState }) => html`<${Roles} roles=${rows} hasMore=${pageState !== null} reload=${roles.reload} />`}<//>
  <//>`;
}

function NoLogins() {
  return html`<${Page} title="Roles">
    <${Card}>
      <${Empty} title="This server has no logins">
        Everyone who reaches its ports may do everything. Start it with <code class="flag">--login</code>: it then makes a first superuser, who
        makes other roles.
      <//>
    <//>
  <//>`;
}

function View({ parts }) {
  if (session.current.login === NO_LOGINS) return html`<${NoLogins} />`;
  if (parts.length > 0) return html`<${Role} key=${parts[0]} name=${parts[0]} />`;
  return html`<${AllRoles} />`;
}

export default {
  id: 'roles',
  title: 'Roles',
  icon: 'roles',
  group: 'Administer',
  needs: (current) => current.features.cql,
  View,
};
