'use strict';
// Metadata, prepared statements, batches, conditions, counters, paging, errors, searches and events.

const assert = require('assert/strict');
const { errors, types } = require('cassandra-driver');

module.exports = ({ client, keyspace, connected }) => {
  const prepared = { prepare: true };

  async function aTableOfNumbers(name, count) {
    await client.execute(`CREATE TABLE ${name} (p int, c int, v text, PRIMARY KEY (p, c))`);
    const insert = `INSERT INTO ${name} (p, c, v) VALUES (?, ?, ?)`;
    for (let c = 0; c < count; c += 1) {
      await client.execute(insert, [1, c, `v${c}`], prepared);
    }
  }

  return {
    async metadata() {
      await client.execute('CREATE TYPE address (street text, zip int)');
      await client.execute(
        'CREATE TABLE described (a int, b text, c timeuuid, d frozen<address>, e map<text, int>, s text static, '
        + 'PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC)'
      );
      await client.execute('CREATE INDEX described_e ON described (KEYS(e))');
      const table = await client.metadata.getTable(keyspace, 'described');
      assert.deepEqual(table.partitionKeys.map((column) => column.name), ['a', 'b']);
      assert.deepEqual(table.clusteringKeys.map((column) => column.name), ['c']);
      assert.deepEqual(table.clusteringOrder, ['DESC']);
      assert.equal(table.columnsByName.s.isStatic, true);
      assert.equal(table.columnsByName.e.type.code, types.dataTypes.map);
      assert.equal(table.indexes[0].name, 'described_e');
      assert.equal(table.indexes[0].isCompositesKind(), true);
      assert.equal(table.indexes[0].target, 'keys(e)');
      const type = await client.metadata.getUdt(keyspace, 'address');
      assert.deepEqual(type.fields.map((field) => field.name), ['street', 'zip']);
      assert.equal(client.hosts.length, 1);
      assert.ok(client.hosts.values()[0].cassandraVersion);
      assert.equal(client.metadata.getReplicas(keyspace, Buffer.from([0, 0, 0, 1])).length, 1);
      assert.equal(client.metadata.keyspaces[keyspace].strategyOptions.replication_factor, '1');
      assert.equal(await client.metadata.checkSchemaAgreement(), true);
    },

    async 'prepared statements'() {
      await aTableOfNumbers('numbers', 3);
      const rows = await client.execute('SELECT v FROM numbers WHERE p = :p AND c IN :cs', { p: 1, cs: [0, 2] }, prepared);
      assert.deepEqual(rows.rows.map((row) => row.v), ['v0', 'v2']);
      // Drivers know the columns of a prepared SELECT *: they learn of one that came later.
      const all = 'SELECT * FROM numbers WHERE p = ?';
      assert.equal((await client.execute(all, [1], prepared)).columns.length, 3);
      await client.execute('ALTER TABLE numbers ADD w int');
      const after = await client.execute(all, [1], prepared);
      assert.deepEqual(after.first().keys(), ['p', 'c', 'v', 'w']);
      await client.execute('INSERT INTO numbers (p, c, v) VALUES (1, 0, ?)', [types.unset], prepared);
      assert.equal((await client.execute(all, [1], prepared)).first().v, 'v0');
      await client.execute('INSERT INTO numbers (p, c, v) VALUES (1, 0, ?)', [null], prepared);
      assert.equal((await client.execute(all, [1], prepared)).first().v, null);
    },

    async batches() {
      await client.execute('CREATE TABLE batched (p int PRIMARY KEY, v text)');
      const insert = 'INSERT INTO batched (p, v) VALUES (?, ?)';
      const queries = [1, 2, 3].map((p) => ({ query: insert, params: [p, `v${p}`] }));
      await client.batch(queries, prepared);
      await client.batch([{ query: insert, params: [4, 'v4'] }, 'DELETE FROM batched WHERE p = 1'], { hints: [['int', 'text'], []] });
      await client.batch(queries.slice(1), { prepare: true, logged: false, timestamp: 1 });
      const rows = (await client.execute('SELECT p FROM batched')).rows.map((row) => row.p);
      assert.deepEqual(rows.sort(), [2, 3, 4]);
    },

    async conditions() {
      await client.execute('CREATE TABLE conditional (p int, c int, v text, s int static, PRIMARY KEY (p, c))');
      const insert = 'INSERT INTO conditional (p, c, v) VALUES (?, ?, ?) IF NOT EXISTS';
      const first = await client.execute(insert, [1, 1, 'one'], prepared);
      assert.equal(first.wasApplied(), true);
      const second = await client.execute(insert, [1, 1, 'two'], prepared);
      assert.equal(second.wasApplied(), false);
      assert.equal(second.first().v, 'one');
      const update = 'UPDATE conditional SET v = ? WHERE p = ? AND c = ? IF v = ?';
      assert.equal((await client.execute(update, ['x', 1, 1, 'no'], prepared)).wasApplied(), false);
      assert.equal((await client.execute(update, ['x', 1, 1, 'one'], prepared)).wasApplied(), true);
      const batch = await client.batch([
        { query: update, params: ['y', 1, 1, 'x'] },
        { query: 'INSERT INTO conditional (p, c, v) VALUES (?, ?, ?)', params: [1, 2, 'z'] },
      ], { prepare: true, serialConsistency: types.consistencies.localSerial });
      assert.equal(batch.wasApplied(), true);
      const read = await client.execute('SELECT v FROM conditional WHERE p = 1', [], { consistency: types.consistencies.serial });
      assert.deepEqual(read.rows.map((row) => row.v), ['y', 'z']);
    },

    async counters() {
      await client.execute('CREATE TABLE counted (p int PRIMARY KEY, n counter)');
      const add = 'UPDATE counted SET n = n + ? WHERE p = ?';
      await Promise.all(Array.from({ length: 50 }, () => client.execute(add, [2, 1], prepared)));
      await client.batch([{ query: add, params: [types.Long.fromNumber(-1), 1] }], { prepare: true, counter: true });
      const row = (await client.execute('SELECT n FROM counted')).first();
      assert.ok(types.Long.fromNumber(99).equals(row.n), row.n);
    },

    async paging() {
      await aTableOfNumbers('paged', 105);
      const query = 'SELECT c FROM paged WHERE p = ?';
      const options = { prepare: true, fetchSize: 10 };
      const expected = Array.from({ length: 105 }, (_, c) => c);
      const seen = [];
      await new Promise((resolve, reject) => {
        client.eachRow(query, [1], { ...options, autoPage: true }, (_, row) => seen.push(row.c), (error) => (error ? reject(error) : resolve()));
      });
      assert.deepEqual(seen, expected);
      const streamed = [];
      for await (const row of client.stream(query, [1], options)) streamed.push(row.c);
      assert.deepEqual(streamed, expected);
      const iterated = [];
      for await (const row of await client.execute(query, [1], options)) iterated.push(row.c);
      assert.deepEqual(iterated, expected);
      const first = await client.execute(query, [1], options);
      const second = await client.execute(query, [1], { ...options, pageState: first.pageState });
      assert.deepEqual(second.rows.map((row) => row.c), expected.slice(10, 20));
      const broken = client.execute(query, [1], { ...options, pageState: 'ff'.repeat(20) });
      await assert.rejects(broken, (error) => [types.responseErrorCodes.protocolError, types.responseErrorCodes.invalid].includes(error.code));
    },

    async errors() {
      const codes = types.responseErrorCodes;
      const fails = async (query, code, message) => {
        await assert.rejects(client.execute(query), (error) => {
          assert.ok(error instanceof errors.ResponseError, error);
          assert.equal(error.code, code, `${query}: ${error.message}`);
          assert.match(error.message, message);
          return true;
        });
      };
      await fails('SELEC', codes.syntaxError, /^line 1:/);
      await fails('SELECT * FROM missing', codes.invalid, /table missing does not exist/);
      await fails('SELECT * FROM system.local WHERE missing = 1', codes.invalid, /Undefined column name missing/);
      await client.execute('CREATE TABLE twice (p int PRIMARY KEY)');
      await fails('CREATE TABLE twice (p int PRIMARY KEY)', codes.alreadyExists, /already existing table "twice"/);
      await fails('CREATE TABLE broken (p nothing PRIMARY KEY)', codes.invalid, /Unknown type/);
      await fails("ALTER KEYSPACE system WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", codes.unauthorized, /system/);
      await assert.rejects(client.execute('SELECT * FROM twice WHERE p = ?', [Buffer.alloc(1)]), (error) => error.code === codes.invalid);
    },

    async 'warnings and traces'() {
      await client.execute('CREATE TABLE warned (p int PRIMARY KEY)');
      const insert = 'INSERT INTO warned (p) VALUES (?)';
      const batch = Array.from({ length: 20 }, (_, p) => ({ query: insert, params: [p] }));
      const done = await client.batch(batch, { prepare: true, logged: false });
      assert.match(done.info.warnings[0], /Unlogged batch covering 20 partitions/);
      const traced = await client.execute('SELECT * FROM warned WHERE p = 1', [], { traceQuery: true });
      const trace = await client.metadata.getTrace(traced.info.traceId);
      assert.ok(trace.events.length > 0);
      assert.equal(trace.requestType, 'Execute CQL3 query');
    },

    async 'vector search'() {
      await client.execute('CREATE TABLE films (id int PRIMARY KEY, v vector<float, 3>)');
      await client.execute(
        "CREATE CUSTOM INDEX films_v ON films (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'COSINE'}"
      );
      const insert = 'INSERT INTO films (id, v) VALUES (?, ?)';
      await client.execute(insert, [1, new Float32Array([1, 0, 0])], prepared);
      await client.execute(insert, [2, new types.Vector([0, 1, 0], 'float')], prepared);
      await client.execute(insert, [3, new types.Vector([0.9, 0.1, 0], 'float')], prepared);
      const query = 'SELECT id, v, similarity_cosine(v, ?) AS score FROM films ORDER BY v ANN OF ? LIMIT 2';
      const asked = new Float32Array([1, 0, 0]);
      const found = await client.execute(query, [asked, asked], prepared);
      assert.deepEqual(found.rows.map((row) => row.id), [1, 3]);
      assert.deepEqual(Array.from(found.first().v), [1, 0, 0]);
      assert.equal(found.first().score, 1);
    },

    async 'schema events'() {
      // Its own client, which hears of changes that another one makes.
      const other = connected({ keyspace });
      await other.connect();
      try {
        assert.equal(await other.metadata.getTable(keyspace, 'announced'), null);
        await client.execute('CREATE TABLE announced (p int PRIMARY KEY)');
        const until = Date.now() + 20000;
        const there = async () => (await other.metadata.getTable(keyspace, 'announced')) !== null;
        while (!(await there())) {
          assert.ok(Date.now() < until, 'the table is not known');
        }
        await client.execute('ALTER TABLE announced ADD v int');
        const changed = async () => (await other.metadata.getTable(keyspace, 'announced')).columnsByName.v !== undefined;
        while (!(await changed())) {
          assert.ok(Date.now() < until, 'the column is not known');
          await new Promise((resolve) => { setTimeout(resolve, 50); });
        }
      } finally {
        await other.shutdown();
      }
    },
  };
};
