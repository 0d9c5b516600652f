// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import query from './query.js';
import search from './search.js';
import settings from './settings.js';

export const views = [
  query,
  search,
  settings,
];
