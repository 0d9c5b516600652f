'use strict';
// The driver of Node with its own settings: node main.js HOST:PORT KEYSPACE FILES, where FILES is a
// JSON object: {login: {address, user, password}, tls: {address, ca}} of servers beside the first.

const cassandra = require('cassandra-driver');

const { run } = require('./sections');

const parts = ['statements', 'values', 'security', 'mapper'].map((name) => require(`./${name}`));

const [address, keyspace, others] = process.argv.slice(2);

function connected(options) {
  return new cassandra.Client({ contactPoints: [address], localDataCenter: 'datacenter1', ...options });
}

async function main() {
  const client = connected({});
  try {
    await client.connect();
    await client.execute(
      `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`
    );
    await client.execute(`USE ${keyspace}`);
    const context = { client, keyspace, connected, others: JSON.parse(others) };
    const failed = await run(Object.assign({}, ...parts.map((part) => part(context))));
    await client.execute(`DROP KEYSPACE ${keyspace}`);
    process.exitCode = failed === 0 ? 0 : 1;
  } finally {
    await client.shutdown();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 2;
});
