"""Tests writes through the gateway to a table with a vector index: they have the same effect as
without a gateway, and the change log names every row."""

import time
from collections import Counter

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import Cluster
from cassandra.query import BatchStatement, BatchType, SimpleStatement, dict_factory, tuple_factory
from server import eventually

INSERT, UPDATE, DELETE_ROW, DELETE_PARTITION, RANGE_START, RANGE_END = 2, 1, 3, 4, 5, 7

TABLES = [
    """CREATE TABLE {}.events (tenant int, day int, hour int, seq int, owner text static, name text, tags set<int>,
       v vector<float, 3>, PRIMARY KEY ((tenant, day), hour, seq))""",
    "CREATE TABLE {}.products (id int PRIMARY KEY, name text, v vector<float, 3>)",
    "CREATE TABLE {}.others (id int PRIMARY KEY, name text)",
]


def connect(address, **arguments):
    return Cluster([address[0]], port=address[1], **arguments)


class Side:
    """One of two keyspaces with the same tables, and a session that uses it."""

    def __init__(self, address, keyspace):
        self.cluster = connect(address)
        self.session = self.cluster.connect()
        self.session.default_timeout = 60
        self.session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
        self.session.execute(
            f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        for table in TABLES:
            self.session.execute(table.format(keyspace))
        self.session.execute(f"USE {keyspace}")

    def contents(self):
        """Every cell that a client can see, with its time if the client gave it, and whether it
        expires."""
        select = {
            "events": "SELECT tenant, day, hour, seq, owner, name, tags, v, ttl(name) FROM events",
            "products": "SELECT id, name, v, ttl(name) FROM products",
            "others": "SELECT id, name, ttl(name) FROM others",
        }
        self.session.row_factory = tuple_factory
        return {
            table: sorted(((*row[:-1], row[-1] is not None) for row in self.session.execute(text)), key=str)
            for table, text in select.items()
        }


class Log:
    """Reads new rows of the change logs from the node itself."""

    def __init__(self, node, keyspace):
        self._cluster = connect(node)
        self._session = self._cluster.connect(keyspace)
        self._session.row_factory = dict_factory
        self._seen = set()
        self.streams = set()

    def new(self):
        """(table, operation, key...) of the log rows since the last call, in order. A column
        without a value is None."""
        rows = []
        for table, key in ("events", ["tenant", "day", "hour", "seq"]), ("products", ["id"]):
            for row in self._session.execute(f"SELECT * FROM {table}_scylla_cdc_log"):
                place = (table, row["cdc$stream_id"], row["cdc$time"], row["cdc$batch_seq_no"])
                assert row["cdc$ttl"] is None
                if place not in self._seen:
                    self._seen.add(place)
                    self.streams.add(row["cdc$stream_id"])
                    when = (row["cdc$time"].time, row["cdc$batch_seq_no"])
                    rows.append((when, table, row["cdc$operation"], *(row[column] for column in key)))
        return [row[1:] for row in sorted(rows, key=lambda row: row[0])]

    def close(self):
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def direct(gateways):
    side = Side(gateways[0].node, "unindexed")
    yield side
    side.cluster.shutdown()


@pytest.fixture(scope="module")
def through(gateways):
    side = Side(gateways[0].address, "indexed")
    for table in ("events", "products"):
        side.session.execute(f"CREATE CUSTOM INDEX ON indexed.{table} (v) USING 'vector_index'")
    yield side
    side.session.execute("DROP KEYSPACE indexed")
    side.cluster.shutdown()


@pytest.fixture(scope="module")
def log(through, gateways):
    log = Log(gateways[0].node, "indexed")
    yield log
    log.close()


KEY = "tenant = 1 AND day = 2"
ROW = f"{KEY} AND hour = 3 AND seq = 4"


def event(operation, hour=3, seq=4, tenant=1, day=2):
    return ("events", operation, tenant, day, hour, seq)


def product(operation, number):
    return ("products", operation, number)


def text(statement):
    return lambda session: session.execute(statement)


def prepared(statement, values):
    return lambda session: session.execute(session.prepare(statement), values)


def batch(*statements, kind=BatchType.LOGGED, **arguments):
    def run(session):
        batch = BatchStatement(batch_type=kind, **arguments)
        for statement, values in statements:
            batch.add(session.prepare(statement) if values else SimpleStatement(statement), values or None)
        return session.execute(batch)

    return run


INSERT_EVENT = "INSERT INTO events (tenant, day, hour, seq, name, v) VALUES (1, 2, 3, 4, 'tea', [1, 2, 3])"
INSERT_PRODUCT = "INSERT INTO products (id, name, v) VALUES (?, ?, ?)"
LARGE = "x" * 6_000

# The writes, each with the log rows that it must leave.
WRITES = {
    "insert": (text(INSERT_EVENT), [event(INSERT)]),
    "insert with TTL and timestamp": (
        text("INSERT INTO events (tenant, day, hour, seq, name) VALUES (1, 2, 3, 5, 'x') USING TTL 9000 AND TIMESTAMP 5"),
        [event(INSERT, seq=5)],
    ),
    "prepared insert": (prepared(INSERT_PRODUCT, (7, "tea", [1, 2, 3])), [product(INSERT, 7)]),
    "prepared insert without all values": (prepared(INSERT_PRODUCT, (8, "unset")), [product(INSERT, 8)]),
    "update": (prepared(f"UPDATE events SET tags = tags + ?, v = ? WHERE {ROW}", ({1, 2}, [3, 2, 1])), [event(UPDATE)]),
    "update of many rows": (
        prepared("UPDATE events SET name = ? WHERE tenant IN (1, 5) AND day = ? AND hour = 3 AND seq IN ?", ("n", 2, [6, 7])),
        [event(UPDATE, seq=seq, tenant=tenant) for tenant in (1, 5) for seq in (6, 7)],
    ),
    "update of static columns": (
        prepared("UPDATE events SET owner = ? WHERE tenant = ? AND day = ?", ("me", 1, 2)),
        [event(UPDATE, None, None)],
    ),
    "delete of a column": (text(f"DELETE tags[1], v FROM events WHERE {ROW}"), [event(UPDATE)]),
    "delete of a row": (prepared(f"DELETE FROM events WHERE {KEY} AND (hour, seq) = (?, ?)", (3, 4)), [event(DELETE_ROW)]),
    "delete of a row without clustering key": (text("DELETE FROM products WHERE id = 8"), [product(DELETE_PARTITION, 8)]),
    "delete of a range": (
        prepared(f"DELETE FROM events WHERE {KEY} AND hour = 3 AND seq > ?", (6,)),
        [event(RANGE_START, None, None), event(RANGE_END, None, None)],
    ),
    "delete of a partition": (text("DELETE FROM events WHERE tenant = 5 AND day = 2"), [event(DELETE_PARTITION, None, None, 5)]),
    "batch": (
        batch(
            (INSERT_EVENT, None),
            (INSERT_PRODUCT, (9, "in a batch", [0, 0, 1])),
            ("INSERT INTO others (id, name) VALUES (?, ?)", (1, "other")),
            (INSERT_EVENT, None),
        ),
        [event(INSERT), product(INSERT, 9)],
    ),
    "unlogged batch with a time": (
        batch(
            ("UPDATE products SET name = 'u' WHERE id = 9", None),
            ("DELETE FROM products WHERE id = ?", (7,)),
            kind=BatchType.UNLOGGED,
            consistency_level=ConsistencyLevel.ALL,
        ),
        [product(UPDATE, 9), product(DELETE_PARTITION, 7)],
    ),
    "batch of other tables": (batch(("INSERT INTO others (id, name) VALUES (2, 'x')", None)), []),
    "other table": (text("INSERT INTO others (id, name) VALUES (3, 'x')"), []),
    "batch as text": (
        text(f"BEGIN BATCH USING TIMESTAMP 7 {INSERT_EVENT}; DELETE FROM products WHERE id = 9; APPLY BATCH"),
        2 * [event(INSERT), product(DELETE_PARTITION, 9)],
    ),
    "prepared batch as text": (
        prepared("BEGIN BATCH UPDATE products SET name = ? WHERE id = ?; APPLY BATCH", ("b", 10)),
        2 * [product(UPDATE, 10)],
    ),
    "condition that holds": (
        prepared("INSERT INTO products (id, name) VALUES (?, 'lwt') IF NOT EXISTS", (11,)),
        2 * [product(INSERT, 11)],
    ),
    "condition that does not": (text("UPDATE products SET name = 'no' WHERE id = 11 IF name = 'x'"), [product(UPDATE, 11)]),
    "batch with a condition": (
        batch(("UPDATE products SET name = 'yes' WHERE id = 11 IF name = 'lwt'", None)),
        2 * [product(UPDATE, 11)],
    ),
    "large value": (prepared(INSERT_PRODUCT, (12, LARGE, [1, 1, 1])), 2 * [product(INSERT, 12)]),
    "batch beyond Cassandra's limit for several partitions": (
        batch(*((INSERT_PRODUCT, (13, 20_000 * "y", [1, 1, 1])) for _ in range(3)), kind=BatchType.UNLOGGED),
        2 * [product(INSERT, 13)],
    ),
    # The cells of this write are larger than its text, so Cassandra warns of the batch that it goes
    # as.
    "collection": (
        text(f"INSERT INTO events (tenant, day, hour, seq, tags) VALUES (1, 2, 3, 4, {set(range(900))})"),
        [event(INSERT)],
    ),
    "many keys": (
        text(f"DELETE FROM products WHERE id IN ({', '.join(map(str, range(100, 125)))})"),
        2 * [product(DELETE_PARTITION, number) for number in range(100, 125)],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_what_it_is_without_a_gateway_and_leaves_its_log_rows(name, through, direct, log):
    write, expected = WRITES[name]
    log.new()
    answers = [write(side.session) for side in (through, direct)]
    assert [answer.response_future.warnings for answer in answers] == [None, None]
    said = [[tuple(row) for row in answer] for answer in answers]
    assert said[0] == said[1]
    assert through.contents() == direct.contents()
    # The log rows of one request come in the order of its statements, and those of one partition in
    # the order of its rows.
    # Rows that took 50 ms or longer are written again with a later time (docs/gateway-writes.md).
    logged = Counter(map(str, log.new()))
    assert set(logged) == set(map(str, expected))
    assert logged >= Counter(map(str, expected))


def test_errors_are_the_nodes_own_and_leave_no_log_row(through, direct, log):
    log.new()
    for statement in (
        "INSERT INTO products (id, nothing) VALUES (1, 2)",
        "INSERT INTO products (name) VALUES ('x')",
        "INSERT INTO products (id) VALUES (null)",
        "UPDATE events SET name = 'x' WHERE tenant = 1",
        "DELETE FROM products WHERE name = 'x'",
    ):
        errors = []
        for side in (through, direct):
            with pytest.raises(InvalidRequest) as raised:
                side.session.execute(statement)
            errors.append(str(raised.value).replace("unindexed.", "indexed."))
        assert errors[0] == errors[1]
    assert log.new() == []


def test_a_key_that_is_evaluated_when_it_is_written_is_the_same_in_the_log(through, gateways):
    session = through.session
    session.execute("CREATE TABLE IF NOT EXISTS indexed.seen (day date, at timeuuid, n int, v vector<float, 2>, PRIMARY KEY (day, at))")
    session.execute("CREATE CUSTOM INDEX IF NOT EXISTS ON indexed.seen (v) USING 'vector_index'")
    insert = "INSERT INTO indexed.seen (day, at, n) VALUES (toDate(now()), now(), {})"
    bound = session.prepare(insert.format("?"))
    session.execute(insert.format(1))
    session.execute(bound, (2,))
    both = BatchStatement()
    both.add(bound, (3,))
    both.add(SimpleStatement(insert.format(4)))
    session.execute(both)
    session.execute(insert.format(5) + " IF NOT EXISTS")
    with connect(gateways[0].node) as node:
        direct = node.connect("indexed")
        direct.row_factory = tuple_factory
        rows = set(direct.execute("SELECT day, at FROM seen"))
        logged = set(direct.execute('SELECT day, at FROM "seen_scylla_cdc_log"'))
    assert len(rows) == 5
    assert rows == logged


def test_what_cannot_be_followed_is_refused(through, log):
    log.new()
    for statement, words in (
        ("INSERT INTO products JSON '{\"id\": 1}'", "JSON"),
        ("INSERT INTO products (id) VALUES (blobAsInt(0x00000001))", "blobAsInt"),
    ):
        with pytest.raises(Exception, match="(?i)" + words):
            through.session.execute(statement)
    assert log.new() == []


def test_traces_and_times_stay(through):
    session = through.session
    result = session.execute(session.prepare(INSERT_PRODUCT), (20, "traced", [1, 2, 3]), trace=True)
    assert result.get_query_trace(max_wait_sec=30).events
    before = time.time_ns() // 1_000
    session.execute(session.prepare("UPDATE products SET name = ? WHERE id = 20"), ("later",))
    session.row_factory = tuple_factory
    [(written,)] = session.execute("SELECT writetime(name) FROM products WHERE id = 20")
    assert abs(written - before) < 60_000_000


def test_log_rows_are_spread_over_streams(through, log):
    session = through.session
    insert = session.prepare("INSERT INTO products (id, name) VALUES (?, 'spread')")
    log.new()
    log.streams.clear()
    for number in range(1_000, 1_100):
        session.execute(insert, (number,))
    # A row that was long on its way is written a second time.
    assert sorted({row[2] for row in log.new()}) == list(range(1_000, 1_100))
    assert len(log.streams) > 1


def test_a_statement_prepared_before_its_table_has_an_index_is_followed(gateways, through):
    session = through.session
    session.execute("CREATE TABLE indexed.late (id int PRIMARY KEY, v vector<float, 2>)")
    insert = session.prepare("INSERT INTO indexed.late (id, v) VALUES (?, ?)")
    session.execute(insert, (1, [1, 1]))
    session.execute("CREATE CUSTOM INDEX ON indexed.late (v) USING 'vector_index'")
    session.execute(insert, (2, [1, 1]))
    unlogged = BatchStatement(batch_type=BatchType.UNLOGGED)
    unlogged.add(insert, (3, [1, 1]))
    session.execute(unlogged)
    with connect(gateways[0].node) as node:
        direct = node.connect("indexed")
        direct.row_factory = tuple_factory
        assert {key for (key,) in direct.execute("SELECT id FROM late_scylla_cdc_log")} == {2, 3}
        # The INSERT of log rows becomes invalid with its table and is prepared anew.
        session.execute("DROP INDEX indexed.late_v_idx")
        eventually(lambda: not list(direct.execute(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'indexed' AND table_name = 'late_scylla_cdc_log'"
        )), seconds=60)
        session.execute(insert, (4, [1, 1]))
        session.execute("CREATE CUSTOM INDEX ON indexed.late (v) USING 'vector_index'")
        session.execute(insert, (5, [1, 1]))
        assert {key for (key,) in direct.execute("SELECT id FROM late_scylla_cdc_log")} == {5}
