// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import map from './map.js';
import indexes from './indexes.js';
import tables from './tables.js';
import settings from './settings.js';

export const views = [
  map,
  indexes,
  tables,
  settings,
];
