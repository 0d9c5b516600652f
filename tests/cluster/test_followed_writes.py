"""Tests that an index service finds all rows written through a gateway, whichever way they were
written."""

import random

import pytest
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType
from server import eventually
from stores import Store

# The longest wait for the index. It includes 40 s until the slow reader has come by, which reads
# again what a node wrote late.
SECONDS = 120
WRITES = 500


class Followed:
    """A table, its index, and the service that serves the index."""

    def __init__(self, session, store):
        self.session, self.store = session, store
        session.execute("DROP KEYSPACE IF EXISTS followed")
        session.execute(
            "CREATE KEYSPACE followed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute("USE followed")
        session.execute("CREATE TABLE points (part int, number int, name text, v vector<float, 2>, PRIMARY KEY (part, number))")
        session.execute(
            "CREATE CUSTOM INDEX near ON points (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
        )
        eventually(lambda: self.store.index_status("followed", "near")["status"] == "SERVING", seconds=SECONDS)

    def indexed(self):
        """{(part, number)} of the rows in the index; None while it does not serve."""
        keys = self.store.nearest("followed", "near", [0.0, 0.0], 1_000)
        return keys and set(zip(keys["part"], keys["number"]))

    def table(self):
        """{(part, number): v} of the rows that have a vector."""
        rows = self.session.execute("SELECT part, number, v FROM points")
        return {(row.part, row.number): list(row.v) for row in rows if row.v is not None}

    def has(self, key, v):
        """Whether the index holds this vector for a row."""
        answer = self.store.neighbours("followed", "near", v, 1_000)
        if answer is None:
            return False
        keys = answer["primary_keys"]
        return dict(zip(zip(keys["part"], keys["number"]), answer["distances"])).get(key) == 0

    def is_up_to_date(self):
        """Whether the index holds the same as the table. Keys alone do not prove it, as a row may
        have got another vector."""
        table = self.table()
        return self.indexed() == set(table) and all(self.has(key, v) for key, v in table.items())

    def becomes(self, *expected):
        """Waits until the index and the table both have just these rows."""
        assert set(self.table()) == set(expected)
        eventually(self.is_up_to_date, seconds=SECONDS)


@pytest.fixture
def followed(gateways, tmp_path):
    with (
        Cluster([gateways[0].host], port=gateways[0].cql_port) as cluster,
        Store(gateways, tmp_path) as store,
    ):
        session = cluster.connect()
        session.default_timeout = 60
        yield Followed(session, store)
        session.execute("DROP KEYSPACE followed")


def test_the_index_follows_every_form_of_write(followed):
    session = followed.session
    insert = session.prepare("INSERT INTO points (part, number, v) VALUES (?, ?, ?)")
    session.execute(insert, (1, 1, [1, 0]))
    followed.becomes((1, 1))

    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    for number in (2, 3):
        batch.add(insert, (1, number, [number, 0]))
    batch.add("INSERT INTO points (part, number, v) VALUES (2, 1, [5, 5])")
    session.execute(batch)
    followed.becomes((1, 1), (1, 2), (1, 3), (2, 1))

    assert session.execute("INSERT INTO points (part, number, v) VALUES (2, 2, [6, 6]) IF NOT EXISTS").was_applied
    session.execute("UPDATE points SET v = [9, 9] WHERE part = 1 AND number = 1")
    followed.becomes((1, 1), (1, 2), (1, 3), (2, 1), (2, 2))
    nearest = followed.store.nearest("followed", "near", [9.0, 9.0], 1)
    assert nearest == {"part": [1], "number": [1]}

    # This name is too large for a batch.
    session.execute(session.prepare("INSERT INTO points (part, number, name, v) VALUES (?, ?, ?, ?)"), (3, 1, 9_000 * "x", [7, 7]))
    session.execute("UPDATE points SET v = null WHERE part = 2 AND number = 2")
    followed.becomes((1, 1), (1, 2), (1, 3), (2, 1), (3, 1))

    session.execute("DELETE FROM points WHERE part = 1 AND number > 1")
    followed.becomes((1, 1), (2, 1), (3, 1))
    session.execute("DELETE v FROM points WHERE part = 2 AND number = 1")
    session.execute("DELETE FROM points WHERE part = 3")
    followed.becomes((1, 1))
    session.execute("BEGIN BATCH DELETE FROM points WHERE part = 1 AND number = 1; APPLY BATCH")
    followed.becomes()


def test_the_last_of_many_writes_is_what_is_found(followed):
    session = followed.session
    insert = session.prepare("INSERT INTO points (part, number, v) VALUES (?, ?, ?)")
    update = session.prepare("UPDATE points SET v = ? WHERE part = ? AND number = ?")
    replace = session.prepare("UPDATE points SET v = ? WHERE part = ? AND number = ? IF EXISTS")
    delete = session.prepare("DELETE FROM points WHERE part = ? AND number = ?")
    numbers = random.Random(1)
    writes = []
    for number in range(WRITES):
        key, v = (numbers.randrange(4), numbers.randrange(5)), [float(number), numbers.random()]
        kind = numbers.choice(4 * [insert] + 4 * [update] + [replace, delete])
        writes.append((kind, key if kind is delete else (*key, v) if kind is insert else (v, *key)))
    for outcome in execute_concurrent(session, writes, concurrency=32):
        assert outcome.success
    rows = followed.table()
    assert len(rows) > 10
    followed.becomes(*rows)


def test_a_write_that_is_dated_back_is_followed(followed):
    followed.session.execute("INSERT INTO points (part, number, v) VALUES (1, 1, [1, 1]) USING TIMESTAMP 1000")
    followed.becomes((1, 1))


def test_a_truncated_table_has_its_index_built_anew(followed):
    session = followed.session
    insert = session.prepare("INSERT INTO points (part, number, v) VALUES (?, ?, ?)")
    for number in range(20):
        session.execute(insert, (1, number, [number, 0]))
    followed.becomes(*((1, number) for number in range(20)))
    session.execute("TRUNCATE points")
    session.execute(insert, (2, 1, [1, 1]))

    followed.becomes((2, 1))


def test_a_write_that_goes_round_the_gateway_is_not_seen(followed, gateways):
    """This shows what the other tests would look like if log rows were missing."""
    host, port = gateways[0].node
    with Cluster([host], port=port) as cluster:
        cluster.connect("followed").execute("INSERT INTO points (part, number, v) VALUES (1, 1, [1, 1])")
    followed.session.execute("INSERT INTO points (part, number, v) VALUES (2, 2, [1, 1])")
    eventually(lambda: (2, 2) in followed.indexed(), seconds=SECONDS)
    assert followed.indexed() == {(2, 2)}
