// Programs to copy, with the address of this server in them.
import { get, session, useData } from '../api.js';
import { Async, Card, Code, Copy, Tabs, html, useState } from '../ui.js';

const LANGUAGES = [
  { id: 'python', label: 'Python', run: 'pip install cassandra-driver' },
  { id: 'java', label: 'Java', run: 'org.apache.cassandra:java-driver-core' },
  { id: 'go', label: 'Go', run: 'go get github.com/apache/cassandra-gocql-driver/v2' },
  { id: 'node', label: 'Node', run: 'npm install cassandra-driver' },
  { id: 'rust', label: 'Rust', run: 'cargo add scylla' },
];
const CURL = { id: 'curl', label: 'curl' };

// What the programs have where the server's address belongs.
const ADDRESS_IN_EXAMPLES = '127.0.0.1:9042';

// An address that listens on all of the machine's is reached by the name that the browser used.
export function reachable(address) {
  const [, host, port] = /^(.*):(\d+)$/.exec(address);
  const all = host === '0.0.0.0' || host === '[::]';
  return all ? `${location.hostname}:${port}` : address;
}

function curlOf(current) {
  const login = { none: '', password: ' -u NAME', token: ' -H "Authorization: Bearer $TOKEN"' }[current.login];
  // A gateway without a store has no indexes.
  const read = current.features.indexes ? '/api/v1/indexes' : '/metrics';
  const lines = [`curl -s${login} ${location.origin}${read}`];
  if (current.features.cql) {
    lines.push(
      '',
      `curl -s${login} ${location.origin}/api/v1/cql -H 'X-Requested-With: annulus' \\`,
      "    -d '{\"query\": \"SELECT title, release_date FROM samples.movies LIMIT 3\"}'",
      '',
      `curl -s${login} ${location.origin}/api/v1/tables/samples/movies/search \\`,
      "    -d '{\"row\": {\"id\": 2263}, \"limit\": 5, \"columns\": [\"title\", \"release_date\"]}'",
    );
  }
  return lines.join('\n');
}

function Program({ language, current }) {
  const example = useData((signal) => get(`/console/examples/${language}`, { signal }), [language]);
  return html`<${Async} of=${example} label="Loading the program">
    ${(text) => html`<${Code} text=${text.replaceAll(ADDRESS_IN_EXAMPLES, reachable(current.cql))} language=${language} label="Program" />`}
  <//>`;
}

export function Snippets() {
  const { current } = session;
  const tabs = current.cql ? [...LANGUAGES, CURL] : [CURL];
  const [language, setLanguage] = useState(tabs[0].id);
  const chosen = tabs.find((tab) => tab.id === language);
  return html`<${Card} title="From your program">
    <div class="stack">
      <${Tabs} tabs=${tabs} value=${language} onChange=${setLanguage} label="Language" controls="snippet" />
      <div id="snippet" role="tabpanel" aria-label=${chosen.label} class="stack tight">
        ${chosen.run && html`<p class="row soft"><span>It needs</span> <code>${chosen.run}</code> <${Copy} text=${chosen.run} label="Copy the package" /></p>`}
        ${language === 'curl'
          ? html`<${Code} text=${curlOf(current)} language="bash" label="Requests" />`
          : html`<${Program} language=${language} current=${current} />`}
      </div>
    </div>
  <//>`;
}
