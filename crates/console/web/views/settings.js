import { get, useData } from '../api.js';
import { Async, Card, Empty, Filter, Page, Table, html, useState, wordsOf } from '../ui.js';

const COLUMNS = [
  { key: 'name', label: 'Setting', sort: true, render: (row) => html`<code>${row.name}</code>`, width: '36%' },
  { key: 'value', label: 'Value', sort: true, render: (row) => (row.value ? html`<code>${row.value}</code>` : html`<span class="soft">empty</span>`) },
  { key: 'source', label: 'From', sort: true, width: '18%' },
];

function Settings({ settings }) {
  const [filter, setFilter] = useState('');
  const matches = wordsOf(filter);
  const shown = settings.filter((row) => matches(`${row.name} ${row.value} ${row.source}`));
  return html`<${Filter} value=${filter} onChange=${setFilter} placeholder="Filter settings" />
    <${Card} flush>
      <${Table}
        caption="Settings"
        columns=${COLUMNS}
        rows=${shown}
        rowKey="name"
        order=${{ key: 'name', down: false }}
        empty=${html`<${Empty} title="No setting matches">Another word may be in its name or its value.<//>`}
      />
    <//>`;
}

function View() {
  const settings = useData((signal) => get('/api/v1/settings', { signal }).then((answer) => answer.settings));
  return html`<${Page}
    title="Settings"
    lead="What this server runs with. It reads settings when it starts: change them in its flags, its environment or its file."
  >
    <${Async} of=${settings} label="Loading the settings" empty=${html`<${Card}><${Empty} title="No settings are shown here" /><//>`}>
      ${(rows) => html`<${Settings} settings=${rows} />`}
    <//>
  <//>`;
}

export default {
  id: 'settings',
  title: 'Settings',
  icon: 'settings',
  group: 'Administer',
  needs: (session) => session.features.settings,
  View,
};
