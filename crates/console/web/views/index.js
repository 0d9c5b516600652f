// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import connections from './connections.js';
import roles from './roles.js';
import settings from './settings.js';
import slow from './slow.js';
import start from './start.js';

export const views = [
  start,
  slow,
  connections,
  roles,
  settings,
];
