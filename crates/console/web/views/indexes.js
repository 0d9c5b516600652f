// The view Indexes: the list of indexes, one index, and a form for a new one.
import { html } from '../ui.js';
import { NewIndex } from './indexes/create.js';
import { IndexList } from './indexes/list.js';
import { OneIndex } from './indexes/one.js';

function View({ parts, query }) {
  const [keyspace, index] = parts;
  if (index !== undefined) return html`<${OneIndex} key=${`${keyspace}.${index}`} keyspace=${keyspace} index=${index} />`;
  if (keyspace === 'new') return html`<${NewIndex} query=${query} />`;
  return html`<${IndexList} />`;
}

export default {
  id: 'indexes',
  title: 'Indexes',
  icon: 'indexes',
  group: 'Data',
  needs: (session) => session.features.indexes,
  View,
};
