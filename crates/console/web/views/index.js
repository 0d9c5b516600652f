// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import backups from './backups.js';
import connections from './connections.js';
import indexes from './indexes.js';
import map from './map.js';
import metrics from './metrics.js';
import query from './query.js';
import roles from './roles.js';
import search from './search.js';
import settings from './settings.js';
import slow from './slow.js';
import start from './start.js';
import tables from './tables.js';
import tasks from './tasks.js';

export const views = [
  start,
  query,
  search,
  map,
  indexes,
  tables,
  tasks,
  metrics,
  slow,
  connections,
  roles,
  settings,
  backups,
];
