'use strict';
// The driver's own mapper of objects.

const assert = require('assert/strict');

const { mapping, types } = require('cassandra-driver');

module.exports = ({ client }) => ({
  async mapper() {
    await client.execute('CREATE TYPE part (name text, size int)');
    await client.execute(
      'CREATE TABLE videos (owner uuid, added timestamp, id timeuuid, video_name text, tags set<text>, part frozen<part>, '
      + 'PRIMARY KEY (owner, added, id)) WITH CLUSTERING ORDER BY (added DESC, id ASC)'
    );
    await client.execute('CREATE TABLE videos_by_id (id timeuuid PRIMARY KEY, owner uuid, added timestamp, video_name text)');
    await client.execute('CREATE TABLE views (id timeuuid PRIMARY KEY, n counter)');
    const mapper = new mapping.Mapper(client, {
      models: {
        Video: { tables: ['videos', 'videos_by_id'], mappings: new mapping.UnderscoreCqlToCamelCaseMappings() },
        Views: { tables: ['views'] },
      },
    });
    const videos = mapper.forModel('Video');
    const [owner, id, added] = [types.Uuid.random(), types.TimeUuid.now(), new Date(1000)];
    const video = { owner, id, added, videoName: 'one', tags: ['a'], part: { name: 'p', size: 1 } };
    await videos.insert(video);
    assert.equal((await videos.get({ id })).videoName, 'one');
    const whole = await videos.get({ owner, added, id });
    assert.deepEqual([whole.tags, whole.part.size], [['a'], 1]);
    await assert.rejects(videos.insert(video, { ifNotExists: true }), /conditions cannot span multiple tables/);

    const one = new mapping.Mapper(client, { models: { Video: { tables: ['videos'] } } }).forModel('Video');
    const key = { owner, added, id };
    assert.equal((await one.insert({ ...key, video_name: 'x' }, { ifNotExists: true })).wasApplied(), false);
    assert.equal((await one.update({ ...key, video_name: 'two' }, { ifExists: true })).wasApplied(), true);
    assert.equal((await one.update({ ...key, added: new Date(1), video_name: 'no' }, { ifExists: true })).wasApplied(), false);
    assert.equal((await one.update({ ...key, video_name: 'three' }, { when: { video_name: 'two' } })).wasApplied(), true);
    const lost = await one.update({ ...key, video_name: 'four' }, { when: { video_name: 'two' } });
    assert.equal(lost.wasApplied(), false);
    assert.equal(lost.first().video_name, 'three');
    await one.update({ ...key, tags: mapping.q.append(['b']) });
    assert.deepEqual((await one.get(key)).tags, ['a', 'b']);
    await one.insert({ ...key, added: new Date(2000), video_name: 'later' });
    const found = await one.find({ owner, added: mapping.q.gte(new Date(0)) }, { orderBy: { added: 'asc' }, limit: 5 });
    assert.deepEqual(found.toArray().map((row) => row.video_name), ['three', 'later']);
    assert.equal((await one.findAll({ limit: 10 })).toArray().length, 2);
    assert.equal((await one.remove(key, { ifExists: true })).wasApplied(), true);
    assert.equal((await one.remove(key, { ifExists: true })).wasApplied(), false);
    assert.equal(await one.get(key), null);
    await mapper.batch([videos.batching.insert({ ...key, videoName: 'batched' })]);
    assert.equal((await one.get(key)).video_name, 'batched');

    const views = mapper.forModel('Views');
    await views.update({ id, n: mapping.q.incr(3) });
    await views.update({ id, n: mapping.q.decr(1) });
    assert.equal((await views.get({ id })).n.toString(), '2');
    const executor = videos.mapWithQuery('SELECT * FROM videos_by_id WHERE id = ?', (doc) => [doc.id]);
    assert.equal((await executor({ id })).first().videoName, 'batched');
  },
});
