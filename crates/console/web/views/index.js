// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import connections from './connections.js';
import query from './query.js';
import roles from './roles.js';
import search from './search.js';
import settings from './settings.js';
import slow from './slow.js';
import start from './start.js';

export const views = [
  start,
  query,
  search,
  slow,
  connections,
  roles,
  settings,
];
