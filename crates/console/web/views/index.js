// The views, in the order of the navigation. A view is {id, title, icon, group, needs: (session) => boolean, View}.
import settings from './settings.js';

export const views = [
  settings,
];
