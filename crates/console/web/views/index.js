// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import connections from './connections.js';
import indexes from './indexes.js';
import map from './map.js';
import roles from './roles.js';
import settings from './settings.js';
import slow from './slow.js';
import start from './start.js';
import tables from './tables.js';

export const views = [
  start,
  map,
  indexes,
  tables,
  slow,
  connections,
  roles,
  settings,
];
