'use strict';
// Values of each type there and back at their edges.

const assert = require('assert/strict');

const { types } = require('cassandra-driver');

const { BigDecimal, Duration, InetAddress, Integer, LocalDate, LocalTime, Long, TimeUuid, Tuple, Uuid, Vector } = types;

const UUID = Uuid.fromString('ffffffff-ffff-4fff-bfff-ffffffffffff');
const EDGES = {
  ascii: ['', 'a\x00\x7f'],
  bigint: [Long.MIN_VALUE, Long.MAX_VALUE, Long.ZERO],
  blob: [Buffer.alloc(0), Buffer.alloc(100000, 7)],
  boolean: [true, false],
  date: [new LocalDate(1970, 1, 1), new LocalDate(-2147483648), new LocalDate(2147483647)],
  decimal: [BigDecimal.fromString('-0.0000000000000000000000000000015'), BigDecimal.fromString('123456789012345678901234567890.1'), BigDecimal.fromNumber(0)],
  double: [Number.MAX_VALUE, Number.MIN_VALUE, -0, Infinity, -Infinity, NaN],
  duration: [new Duration(-1, -2, Long.fromNumber(-3)), new Duration(2147483647, 2147483647, Long.MAX_VALUE), new Duration(0, 0, Long.ZERO)],
  float: [Math.fround(3.4028234663852886e38), Math.fround(1.4e-45), -0, Infinity, NaN],
  inet: [InetAddress.fromString('0.0.0.0'), InetAddress.fromString('255.255.255.255'), InetAddress.fromString('2001:db8::1')],
  int: [-2147483648, 2147483647, 0],
  smallint: [-32768, 32767],
  text: ['', 'ä€𝄞', 'x'.repeat(70000)],
  time: [LocalTime.fromString('00:00:00'), LocalTime.fromString('23:59:59.999999999')],
  timestamp: [new Date(0), new Date(8640000000000000), new Date(-8640000000000000)],
  timeuuid: [TimeUuid.min(new Date(0)), TimeUuid.now()],
  tinyint: [-128, 127],
  uuid: [UUID, Uuid.fromString('00000000-0000-0000-0000-000000000000')],
  varchar: ['varchar'],
  varint: [Integer.fromString('-170141183460469231731687303715884105729'), Integer.fromNumber(0), Integer.fromNumber(128), Integer.fromNumber(-129)],
  'list<int>': [[1, 1, -1]],
  'set<text>': [['a', 'b']],
  'map<text, double>': [{ a: 1.5, b: -0.5 }],
  'frozen<list<frozen<map<int, text>>>>': [[{ 1: 'a' }, {}]],
  'tuple<int, text, frozen<list<uuid>>>': [new Tuple(1, null, [UUID]), new Tuple(null, null, null)],
  'frozen<person>': [{ name: 'Ada', born: null, tags: ['x'], at: { street: 's', zip: 1 } }],
  person: [{ name: 'Ada', born: new LocalDate(1815, 12, 10), tags: null, at: null }],
  'vector<float, 2>': [new Vector([1.5, -2.5], 'float')],
  'vector<text, 2>': [new Vector(['', 'long'.repeat(100)], 'text')],
};

// A value as plain text that tells -0 from 0, and NaN.
function shown(value) {
  if (value === null || value === undefined) return 'null';
  if (Object.is(value, -0)) return '-0';
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (value instanceof Date) return String(value.getTime());
  if (value instanceof Tuple) return `(${value.values().map(shown)})`;
  if (value instanceof Vector) return `<${Array.from(value.elements).map(shown)}>`;
  if (Array.isArray(value)) return `[${value.map(shown)}]`;
  if (value.constructor === Object) return `{${Object.keys(value).sort().map((key) => `${key}: ${shown(value[key])}`)}}`;
  return value.toString();
}

module.exports = ({ client }) => {
  const sections = {
    async 'user types'() {
      await client.execute('CREATE TYPE place (street text, zip int)');
      await client.execute('CREATE TYPE person (name text, born date, tags frozen<set<text>>, at frozen<place>)');
    },
  };
  Object.entries(EDGES).forEach(([type, values], number) => {
    sections[`type ${type}`] = async () => {
      const table = `values_${number}`;
      await client.execute(`CREATE TABLE ${table} (id int PRIMARY KEY, v ${type})`);
      for (const [id, value] of [...values, null].entries()) {
        await client.execute(`INSERT INTO ${table} (id, v) VALUES (?, ?)`, [id, value], { prepare: true });
        const read = await client.execute(`SELECT v FROM ${table} WHERE id = ?`, [id], { prepare: true });
        assert.equal(shown(read.first().v), shown(value));
      }
    };
  });
  sections['keys of each type'] = async () => {
    const notInKeys = ['duration', 'list<int>', 'set<text>', 'map<text, double>', 'person'];
    const keyed = Object.keys(EDGES).filter((type) => !notInKeys.includes(type));
    for (const [number, type] of keyed.entries()) {
      const value = ['blob', 'text'].includes(type) ? EDGES[type][0] : EDGES[type][EDGES[type].length - 1];
      await client.execute(`CREATE TABLE keyed_${number} (a int, k ${type}, PRIMARY KEY (a, k))`);
      await client.execute(`INSERT INTO keyed_${number} (a, k) VALUES (1, ?)`, [value], { prepare: true });
      const read = await client.execute(`SELECT k FROM keyed_${number} WHERE a = 1 AND k = ?`, [value], { prepare: true });
      assert.equal(shown(read.first().k), shown(value), type);
    }
  };
  return sections;
};
