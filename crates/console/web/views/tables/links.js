// Addresses of other views.
const encoded = (...parts) => parts.map(encodeURIComponent).join('/');

export const queryHref = (text, keyspace) => `#/query?${new URLSearchParams(keyspace ? { text, keyspace } : { text })}`;

export const tableHref = (keyspace, table, ...more) => `#/tables/${encoded(keyspace, table, ...more)}`;

export const indexHref = (keyspace, index) => `#/indexes/${encoded(keyspace, index)}`;

export const mapHref = (keyspace, index) => `#/map/${encoded(keyspace, index)}`;
