"""Tables that are held in memory: the statement that makes them, their room, and that they are as durable as others."""

import pytest
from cassandra import InvalidRequest
from conftest import connect
from server import Server

pytestmark = pytest.mark.embedded("it is killed and started")

CREATE = (
    'CREATE TABLE {} ( key blob PRIMARY KEY, "C0" blob{} ) WITH compression = {{}} AND read_repair_chance = \'0\' '
    "AND speculative_retry = 'ALWAYS' AND in_memory = 'true' AND compaction = {{'class':'InMemoryCompactionStrategy'}}"
)


def rows(session, table):
    return {(row.key, row.C0) for row in session.execute(f"SELECT * FROM {table}")}


def test_rows_stay_over_a_kill_beside_a_regular_table(tmp_path):
    server = Server(tmp_path / "data", "--in-memory-storage-size-mb", "1").start()
    cluster = connect(server)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("k")
    session.execute(CREATE.format("k.m", ""))
    session.execute(CREATE.format("m2", ","))
    session.execute('CREATE TABLE plain (key blob PRIMARY KEY, "C0" blob)')
    expected = set()
    for table in ["m", "m2", "plain"]:
        insert = session.prepare(f'INSERT INTO {table} (key, "C0") VALUES (?, ?)')
        for at in range(100):
            session.execute(insert, (b"%d" % at, b"v" * at))
        session.execute(f"DELETE FROM {table} WHERE key = 0x37")
    expected = rows(session, "plain")
    assert len(expected) == 99
    assert rows(session, "m") == rows(session, "m2") == expected
    assert session.execute('SELECT "C0" FROM m WHERE key = 0x39').one().C0 == b"v" * 9
    described = session.execute("DESCRIBE TABLE m").one().create_statement
    assert "in_memory = true" in described and "'InMemoryCompactionStrategy'" in described
    session.execute("DROP TABLE m2")
    session.execute(described.replace("k.m ", "k.m2 "))

    for statement in ["ALTER TABLE m WITH in_memory = false", "ALTER TABLE plain WITH in_memory = true"]:
        with pytest.raises(InvalidRequest, match="in_memory can be given by CREATE TABLE alone"):
            session.execute(statement)
    fill = session.prepare('INSERT INTO m (key, "C0") VALUES (?, ?)')
    with pytest.raises(InvalidRequest, match="no room left: they take up to 1 MiB"):
        for at in range(1000):
            session.execute(fill, (b"big%d" % at, b"x" * 4096))
    before = rows(session, "m")
    assert len(before) > 200
    server.kill()
    cluster.shutdown()

    server = Server(tmp_path / "data", "--in-memory-storage-size-mb", "2").start()
    cluster = connect(server)
    session = cluster.connect("k")
    try:
        assert rows(session, "m") == before
        assert rows(session, "plain") == expected
        session.execute(session.prepare('INSERT INTO m (key, "C0") VALUES (?, ?)'), (b"more", b"x" * 4096))
        session.execute("TRUNCATE m")
        assert rows(session, "m") == set()
    finally:
        cluster.shutdown()
        assert server.stop() == 0
