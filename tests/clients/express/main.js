'use strict';
// express-cassandra with models of its users: node main.js HOST:PORT KEYSPACE.

const assert = require('assert/strict');

const ExpressCassandra = require('express-cassandra');

const { run } = require('../node/sections');

const [address, keyspace] = process.argv.slice(2);
const [host, port] = address.split(':');

function client(ormOptions) {
  return ExpressCassandra.createClient({
    clientOptions: {
      contactPoints: [host],
      protocolOptions: { port: Number(port) },
      localDataCenter: 'datacenter1',
      keyspace,
      queryOptions: { consistency: ExpressCassandra.consistencies.one },
    },
    ormOptions: {
      defaultReplicationStrategy: { class: 'SimpleStrategy', replication_factor: 1 },
      migration: 'alter',
      disableTTYConfirmation: true,
      udts: { phone: { alias: 'text', number: 'text' }, address: { street: 'text', phones: 'set<frozen<phone>>' } },
      ...ormOptions,
    },
  });
}

const PERSON = {
  fields: {
    id: 'uuid',
    name: { type: 'text', rule: { required: true } },
    surname: { type: 'text', default: 'none' },
    age: 'int',
    active: 'boolean',
    at: { type: 'frozen', typeDef: '<address>' },
    tags: { type: 'set', typeDef: '<text>' },
    scores: { type: 'map', typeDef: '<text, int>' },
    history: { type: 'list', typeDef: '<text>' },
    seen: { type: 'timestamp', default: { $db_function: 'toTimestamp(now())' } },
  },
  key: [['id'], 'name'],
  clustering_order: { name: 'desc' },
  indexes: ['age', 'keys(scores)', 'tags'],
  options: { timestamps: true, versions: true },
};

async function main() {
  const models = client({});
  await models.initAsync();
  const Person = models.loadSchema('Person', PERSON);
  const uuid = () => models.uuid();
  const id = uuid();
  const failed = await run({
    async 'sync of a schema'() {
      assert.equal(await Person.syncDBAsync(), true);
      assert.equal(await Person.syncDBAsync(), false);
    },
    async 'save and find'() {
      const person = new Person({
        id, name: 'Ada', age: 36, active: true, tags: ['a', 'b'], scores: { x: 1 }, history: ['one'],
        at: { street: 's', phones: [{ alias: 'home', number: '1' }] },
      });
      await person.saveAsync();
      const found = await Person.findOneAsync({ id, name: 'Ada' });
      assert.equal(found.surname, 'none');
      assert.equal(found.at.phones[0].number, '1');
      assert.deepEqual(found.tags, ['a', 'b']);
      assert.ok(found.createdAt instanceof Date && found.seen instanceof Date);
      found.age = 37;
      await found.saveAsync();
      assert.equal((await Person.findOneAsync({ id, name: 'Ada' })).age, 37);
      const raw = await Person.findAsync({ id, $orderby: { $desc: 'name' }, $limit: 5 }, { raw: true, select: ['name as n', 'writetime(age) as w'] });
      assert.equal(raw[0].n, 'Ada');
      assert.ok(raw[0].w);
    },
    async indexes() {
      assert.equal((await Person.findAsync({ age: 37 })).length, 1);
      assert.equal((await Person.findAsync({ tags: { $contains: 'b' } })).length, 1);
      assert.equal((await Person.findAsync({ scores: { $contains_key: 'x' } })).length, 1);
      assert.equal((await Person.findAsync({ age: 1 })).length, 0);
    },
    async conditions() {
      const again = new Person({ id, name: 'Ada' });
      const lost = await again.saveAsync({ if_not_exist: true });
      assert.equal(lost.rows[0]['[applied]'], false);
      const key = { id, name: 'Ada' };
      const won = await Person.updateAsync(key, { age: 38 }, { conditions: { age: 37 } });
      assert.equal(won.rows[0]['[applied]'], true);
      const missing = await Person.updateAsync({ id: uuid(), name: 'x' }, { age: 1 }, { if_exists: true });
      assert.equal(missing.rows[0]['[applied]'], false);
    },
    async collections() {
      const key = { id, name: 'Ada' };
      await Person.updateAsync(key, { tags: { $add: ['c'] }, scores: { $add: { y: 2 } }, history: { $append: ['two'] } });
      await Person.updateAsync(key, { tags: { $remove: ['a'] }, history: { $prepend: ['zero'] } });
      await Person.updateAsync(key, { scores: { $replace: { x: 9 } }, history: { $replace: [1, 'ONE'] } });
      const found = await Person.findOneAsync(key);
      assert.deepEqual([found.tags, found.scores, found.history], [['b', 'c'], { x: 9, y: 2 }, ['zero', 'ONE', 'two']]);
    },
    async batches() {
      const other = new Person({ id, name: 'Bob', age: 1 });
      await models.doBatchAsync([
        other.save({ return_query: true }),
        Person.update({ id, name: 'Ada' }, { surname: 'L' }, { return_query: true }),
      ]);
      assert.deepEqual((await Person.findAsync({ id })).map((one) => one.name), ['Bob', 'Ada']);
      await models.doBatchAsync([other.delete({ return_query: true })]);
      assert.equal((await Person.findAsync({ id })).length, 1);
    },
    async 'pages and streams'() {
      for (let n = 0; n < 25; n += 1) {
        await new Person({ id, name: `n${n}` }).saveAsync();
      }
      let count = 0;
      await new Promise((resolve, reject) => {
        Person.eachRow({ id }, { fetchSize: 10, autoPage: true }, () => { count += 1; }, (error) => (error ? reject(error) : resolve()));
      });
      assert.equal(count, 26);
    },
    async counters() {
      const Count = models.loadSchema('Count', { fields: { id: 'int', n: 'counter' }, key: ['id'] });
      await Count.syncDBAsync();
      const { Long } = models.datatypes;
      await Count.updateAsync({ id: 1 }, { n: Long.fromInt(5) });
      await Count.updateAsync({ id: 1 }, { n: Long.fromInt(-2) });
      assert.equal((await Count.findOneAsync({ id: 1 })).n.toString(), '3');
    },
    async migration() {
      const later = client({});
      await later.initAsync();
      const fields = { ...PERSON.fields, nick: 'text' };
      delete fields.history;
      const Changed = later.loadSchema('Person', { ...PERSON, fields, indexes: ['age', 'tags', 'nick'] });
      await Changed.syncDBAsync();
      await Changed.updateAsync({ id, name: 'Ada' }, { nick: 'a' });
      const found = await Changed.findOneAsync({ nick: 'a' });
      assert.deepEqual([found.name, found.age, found.history], ['Ada', 38, undefined]);
      await later.closeAsync();
    },
    async 'delete and truncate'() {
      await Person.deleteAsync({ id, name: 'Ada' });
      assert.equal(await Person.findOneAsync({ id, name: 'Ada' }), undefined);
      await Person.truncateAsync();
      assert.equal((await Person.findAsync({})).length, 0);
    },
  });
  await models.closeAsync();
  process.exitCode = failed === 0 ? 0 : 1;
}

main().catch((error) => {
  console.error(error);
  process.exit(2);
});
