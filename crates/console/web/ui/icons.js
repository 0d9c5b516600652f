import { html } from './html.js';

// Lines on a field of 24 by 24, of one width.
const PATHS = {
  start: 'M4 11l8-7 8 7v9h-5v-6H9v6H4z',
  query: 'M5 7l5 5-5 5M12 18h7',
  search: 'M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20',
  map: 'M6 5v.01M11 8v.01M7 11v.01M17 6v.01M18.5 10v.01M14 14v.01M17.5 18v.01M12 19v.01M6 17v.01M9 15v.01',
  indexes: 'M10 6a2 2 0 1 0 4 0a2 2 0 1 0-4 0zM3 17.5a2 2 0 1 0 4 0a2 2 0 1 0-4 0zM17 17.5a2 2 0 1 0 4 0a2 2 0 1 0-4 0zM11 8l-4.800 8M13 8l4.800 8M7 17.500h10',
  tables: 'M4 5h16v14H4zM4 10h16M4 14.500h16M10 10v9',
  tasks: 'M4 6.500l1.500 1.500L8 5.500M11 7h9M4 12.500l1.500 1.500L8 11.500M11 13h9M4 18.500l1.500 1.500L8 17.500M11 19h9',
  metrics: 'M4 19h16M4 15l5-5 4 3 7-8',
  slow: 'M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16zM12 8v4.500l3 2',
  connections: 'M8 4v5M16 4v5M6 9h12v3a6 6 0 0 1-12 0zM12 18v3',
  roles: 'M9 5a3.500 3.500 0 1 0 0 7a3.500 3.500 0 0 0 0-7zM3 20c0-4 2.500-6 6-6s6 2 6 6M16 5.500a3.200 3.200 0 0 1 0 6M17.500 14.500c2.200.8 3.500 2.700 3.500 5.500',
  settings: 'M4 7h9M17 7h3M15 5v4M4 12h3M11 12h9M9 10v4M4 17h9M17 17h3M15 15v4',
  backups: 'M4 5h16v4H4zM5.500 9v10h13V9M10 13h4',
  sun: 'M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8zM12 2.500v2M12 19.500v2M2.500 12h2M19.500 12h2M5.300 5.300l1.400 1.400M17.300 17.300l1.400 1.400M5.300 18.700l1.400-1.400M17.300 6.700l1.400-1.400',
  moon: 'M19.500 14.500A8 8 0 0 1 9.500 4.500a8 8 0 1 0 10 10z',
  screen: 'M3.500 5h17v11h-17zM9 20h6M12 16v4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.500l4.500 4.500L19 7',
  warning: 'M12 4l9 16H3zM12 10v4M12 17v.01',
  right: 'M9 5l7 7-7 7',
  down: 'M5 9l7 7 7-7',
  up: 'M5 15l7-7 7 7',
  refresh: 'M20 12a8 8 0 1 1-2.500-5.800M20 4v4.500h-4.500',
  external: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  play: 'M7 5l12 7-12 7z',
  stop: 'M6 6h12v12H6z',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  key: 'M3.5 15.5a4 4 0 1 0 8 0a4 4 0 1 0-8 0zM10.500 12.500L19 4M15.500 7.500l3.500 3.500',
  logout: 'M10 4H4v16h6M15 8l4 4-4 4M19 12H9',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  eye: 'M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM12 9.500a2.500 2.500 0 1 0 0 5a2.500 2.500 0 0 0 0-5z',
  fit: 'M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5',
  lasso: 'M12 4c5 0 8.500 2 8.500 5s-3.500 5-8.500 5-8.500-2-8.500-5S7 4 12 4zM7 13.500c-1.500 1.200-1.500 3.500.5 3.500M7.500 17c2 0 2 2-.5 4',
  similar: 'M10 12a2 2 0 1 0 4 0a2 2 0 1 0-4 0zM12 4v.01M18 7v.01M20 14v.01M6 7v.01M4 14v.01M8 19v.01M16 19v.01',
};

const MARK = 'M16 2a14 14 0 1 1 0 28a14 14 0 0 1 0-28zm2.500 6a7.500 7.500 0 1 0 0 15a7.500 7.500 0 0 0 0-15z';

// A picture that says nothing which the text next to it doesn't: screen readers pass it over.
export function Icon({ name, size = 18 }) {
  return html`<svg
    width=${size}
    height=${size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="1.75"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    <path d=${PATHS[name] ?? PATHS.right} />
  </svg>`;
}

// The mark of Annulus.
export function Mark({ size = 22 }) {
  return html`<svg width=${size} height=${size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <path fill="currentColor" fill-rule="evenodd" d=${MARK} />
  </svg>`;
}
