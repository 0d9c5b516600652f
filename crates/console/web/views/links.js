// Addresses of the views.
const encoded = (...parts) => parts.map(encodeURIComponent).join('/');

export const queryHref = (text, keyspace) => `#/query?${new URLSearchParams(keyspace ? { text, keyspace } : { text })}`;

export const tableHref = (keyspace, table, ...more) => `#/tables/${encoded(keyspace, table, ...more)}`;

export const indexHref = (keyspace, index) => `#/indexes/${encoded(keyspace, index)}`;

export const newIndexHref = (keyspace, table) => `#/indexes/new?${new URLSearchParams({ keyspace, table })}`;

export const mapHref = (keyspace, index) => `#/map/${encoded(keyspace, index)}`;

export const searchHref = (keyspace, index, fields) =>
  `#/search/${encoded(keyspace, index)}${fields ? `?${new URLSearchParams(fields)}` : ''}`;

export const taskHref = ({ id }) => `#/tasks/${encoded(id)}`;

export const roleHref = (name) => `#/roles/${encoded(name)}`;
