// A few rows of a shop, for tests that need no sample: it takes a debug program a while.
const STATEMENTS = [
  "CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
  'CREATE TABLE IF NOT EXISTS shop.products (id int PRIMARY KEY, name text, v vector<float, 3>)',
  "CREATE CUSTOM INDEX IF NOT EXISTS products_v ON shop.products (v) USING 'vector_index'",
  "CREATE CUSTOM INDEX IF NOT EXISTS products_name ON shop.products (name) USING 'fulltext_index'",
  "INSERT INTO shop.products (id, name, v) VALUES (1, 'green tea', [0.9, 0.1, 0.0])",
  "INSERT INTO shop.products (id, name, v) VALUES (2, 'cocoa', [0.0, 1.0, 0.0])",
  "INSERT INTO shop.products (id, name, v) VALUES (3, 'mint tea', [0.8, 0.2, 0.1])",
];
export const PRODUCTS = 3;

export async function openShop(server) {
  for (const statement of STATEMENTS) await server.cql(statement);
}
