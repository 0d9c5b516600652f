"""Tables with every kind of cell, what is in them with write times, and a load of writes and searches."""

import random
import threading
import time

from cassandra.concurrent import execute_concurrent_with_args
from clients import client_of_one
from server import eventually

KEYSPACE = "shop"
ITEMS = 80
WORDS = ["tea", "cocoa", "spade", "lamp", "rope", "chair", "kettle", "anchor"]
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


def connect(server, **options):
    """The driver's cluster object of a server."""
    return client_of_one((server.host, server.cql_port), **options)


def vector(number):
    """A vector in eight dimensions that no other number has."""
    source = random.Random(number)
    return [round(source.uniform(-1, 1), 4) for _ in range(8)]


def literal(numbers):
    return "[" + ", ".join(map(str, numbers)) + "]"


TABLES = """
CREATE KEYSPACE {k} WITH replication = {replication};
CREATE TYPE {k}.place (street text, number int);
CREATE TABLE {k}.items (id int PRIMARY KEY, name text, v vector<float, 8>, tags set<text>, prices map<text, double>,
    notes list<text>, place frozen<place>);
CREATE TABLE {k}.events (day int, hour int, what text, note text static, PRIMARY KEY (day, hour))
    WITH CLUSTERING ORDER BY (hour DESC);
CREATE TABLE {k}.visits (page text PRIMARY KEY, n counter);
CREATE TABLE {k}.sessions (id int PRIMARY KEY, who text, last text)
"""
INDEXES = """
CREATE CUSTOM INDEX items_v ON {k}.items (v) USING 'vector_index';
CREATE CUSTOM INDEX items_name ON {k}.items (name) USING 'fulltext_index';
CREATE INDEX events_what ON {k}.events (what)
"""


def make(session, keyspace=KEYSPACE, indexes=True):
    """Makes the tables and fills them."""
    for statement in (TABLES + (";" + INDEXES if indexes else "")).split(";"):
        session.execute(statement.strip().format(k=keyspace, replication=REPLICATION))
    run = lambda statement, *values: session.execute(statement.replace("KS", keyspace), values or None)  # noqa: E731
    for item in range(ITEMS):
        name = f"{WORDS[item % len(WORDS)]} number {item}"
        run(f"INSERT INTO KS.items (id, name, v) VALUES (%s, %s, {literal(vector(item))})", item, name)
    for item in range(0, ITEMS, 4):
        collections = "tags = {'old', 'new'}, prices = {'eur': 1.5, 'usd': 2}, notes = ['a', 'b', 'a']"
        run(f"UPDATE KS.items SET {collections} WHERE id = %s", item)
        run("UPDATE KS.items USING TIMESTAMP 1000 SET place = {street: 'High Street', number: 7} WHERE id = %s", item)
    run("DELETE FROM KS.items WHERE id = 3")
    run("UPDATE KS.items SET tags = tags - {'old'}, prices['eur'] = 9, notes = notes + ['c'] WHERE id = 4")
    for day in range(5):
        run("INSERT INTO KS.events (day, note) VALUES (%s, 'of the day')", day)
        for hour in range(12):
            run("INSERT INTO KS.events (day, hour, what) VALUES (%s, %s, %s)", day, hour, WORDS[hour % 3])
    run("DELETE FROM KS.events WHERE day = 2 AND hour > 5")
    run("DELETE what FROM KS.events WHERE day = 1 AND hour = 1")
    for page in WORDS:
        run("UPDATE KS.visits SET n = n + %s WHERE page = %s", len(page), page)
    run("UPDATE KS.visits SET n = n - 2 WHERE page = 'tea'")
    for number in range(20):
        run("INSERT INTO KS.sessions (id, who) VALUES (%s, 'short') USING TTL 86400", number)
        run("UPDATE KS.sessions USING TIMESTAMP 5000 AND TTL 172800 SET last = 'seen' WHERE id = %s", number)
    run("INSERT INTO KS.sessions (id, who) VALUES (99, 'for ever')")


def columns(session, keyspace, table):
    """(names of the key's columns, {name: type} of the others)."""
    rows = list(
        session.execute(
            "SELECT column_name, type, kind FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s",
            (keyspace, table),
        )
    )
    keys = sorted(row.column_name for row in rows if row.kind in ("partition_key", "clustering"))
    return keys, {row.column_name: row.type for row in rows if row.column_name not in keys}


def tables(session, keyspace):
    found = session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,))
    return sorted(row.table_name for row in found if not row.table_name.endswith("_scylla_cdc_log"))


def cells(session, keyspace, table):
    """{key: {column: (value, write time)}} of a table; counters have no write time."""
    keys, others = columns(session, keyspace, table)
    timed = [name for name, of_type in others.items() if of_type != "counter"]
    selected = [*keys, *others, *(f"writetime({name})" for name in timed)]
    found = {}
    for row in session.execute(f"SELECT {', '.join(selected)} FROM {keyspace}.{table}"):
        values = [repr(value) for value in row]
        times = dict(zip(timed, values[len(keys) + len(others) :]))
        of_row = {name: (value, times.get(name)) for name, value in zip(others, values[len(keys) :])}
        found[tuple(values[: len(keys)])] = of_row
    return found


def contents(session, keyspace=KEYSPACE, only=None):
    """The cells of all tables of a keyspace, or of one."""
    return {table: cells(session, keyspace, table) for table in ([only] if only else tables(session, keyspace))}


def expiries(session, keyspace=KEYSPACE):
    """{id: seconds since 1970 at which each cell expires} of the table of sessions."""
    now = time.time()
    rows = session.execute(f"SELECT id, ttl(who), ttl(last) FROM {keyspace}.sessions")
    return {row[0]: [ttl and now + ttl for ttl in row[1:]] for row in rows}


def assert_expire_alike(one, other, seconds=3):
    assert one.keys() == other.keys()
    for key, of_one in one.items():
        for a, b in zip(of_one, other[key]):
            assert (a is None) == (b is None) and (a is None or abs(a - b) <= seconds), (key, of_one, other[key])


def nearest(session, keyspace=KEYSPACE, limit=5, number=10):
    query = f"SELECT id FROM {keyspace}.items ORDER BY v ANN OF {literal(vector(number))} LIMIT {limit}"
    return [row.id for row in session.execute(query)]


def with_word(session, keyspace=KEYSPACE, word="kettle"):
    query = f"SELECT id FROM {keyspace}.items ORDER BY BM25(name, '{word}') LIMIT 100"
    return sorted(row.id for row in session.execute(query))


def of_event(session, keyspace=KEYSPACE, what="tea"):
    rows = session.execute(f"SELECT day, hour FROM {keyspace}.events WHERE what = '{what}'")
    return sorted((row.day, row.hour) for row in rows)


def answers(session, keyspace=KEYSPACE):
    """What searches by each index answer; an error's words while an index is built."""
    try:
        return nearest(session, keyspace), with_word(session, keyspace), of_event(session, keyspace)
    except Exception as error:  # noqa: BLE001 - the driver has a class for each refusal
        return str(error)


def expected_answers():
    of_word = [item for item in range(ITEMS) if WORDS[item % len(WORDS)] == "kettle"]
    of_what = [(day, hour) for day in range(5) for hour in range(0, 12, 3) if not (day == 2 and hour > 5)]
    distance = {item: cosine(vector(item), vector(10)) for item in range(ITEMS) if item != 3}
    return sorted(distance, key=distance.get, reverse=True)[:5], of_word, of_what


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other))
    return dot / (sum(a * a for a in one) * sum(b * b for b in other)) ** 0.5


def wait_for_answers(session, keyspace=KEYSPACE):
    """Waits until all indexes of the tables answer as they should."""
    wanted = expected_answers()
    eventually(lambda: answers(session, keyspace) == wanted)


def fill_blobs(session, keyspace, first, count, size=20_000):
    """Writes rows that don't compress into a table of their own."""
    session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.blobs (id bigint PRIMARY KEY, data blob)")
    insert = session.prepare(f"INSERT INTO {keyspace}.blobs (id, data) VALUES (?, ?)")
    source = random.Random(first)
    rows = ((number, source.randbytes(size)) for number in range(first, first + count))
    execute_concurrent_with_args(session, insert, rows, concurrency=64)


def accepts(session, statement):
    """Whether a statement succeeds now."""
    try:
        session.execute(statement)
    except Exception:  # noqa: BLE001
        return False
    return True


class Load:
    """Writes rows one after the other, and searches, in threads. Each row that is acknowledged counts. Its table goes
    with it."""

    def __init__(self, server, keyspace=KEYSPACE):
        self.server, self.keyspace = server, keyspace
        self.acknowledged, self.searches, self.errors = 0, 0, []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._write, self._search)]

    def __enter__(self):
        self._cluster = connect(self.server)
        self._session = self._cluster.connect()
        self._session.execute(f"CREATE TABLE IF NOT EXISTS {self.keyspace}.stream (id bigint PRIMARY KEY, text text)")
        for thread in self._threads:
            thread.start()
        eventually(lambda: self.acknowledged > 20 and self.searches > 3)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.server.is_running:
            self._session.execute(f"DROP TABLE IF EXISTS {self.keyspace}.stream")
        self._cluster.shutdown()

    def _write(self):
        insert = self._session.prepare(f"INSERT INTO {self.keyspace}.stream (id, text) VALUES (?, ?)")
        while not self._stop.is_set():
            try:
                self._session.execute(insert, (self.acknowledged, "row " * 20))
                self.acknowledged += 1
            except Exception as error:  # noqa: BLE001
                self.errors.append(error)
                return

    def _search(self):
        wanted = expected_answers()[0]
        while not self._stop.is_set():
            try:
                found = nearest(self._session, self.keyspace)
                assert found == wanted, found
                self.searches += 1
            except Exception as error:  # noqa: BLE001
                self.errors.append(error)
                return


def streamed(session, keyspace=KEYSPACE):
    """The number of rows of a load, which must be the first ones without a gap."""
    ids = sorted(row.id for row in session.execute(f"SELECT id FROM {keyspace}.stream"))
    assert ids == list(range(len(ids))), "rows between others are missing"
    return len(ids)
