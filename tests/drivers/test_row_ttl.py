"""Tests the column that tells when its row expires, as ScyllaDB has it."""

import datetime
import time

import pytest
from cassandra import InvalidRequest
from server import eventually

pytestmark = pytest.mark.embedded("Cassandra does not have such a column")

HOUR = datetime.timedelta(hours=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def keys(session, table="t"):
    return sorted(row.id for row in session.execute(f"SELECT id FROM {table}"))


def test_a_row_goes_as_a_whole_and_its_time_can_be_changed(session):
    session.execute("CREATE TABLE t (id int PRIMARY KEY, x text, expiration timestamp TTL)")
    insert = session.prepare("INSERT INTO t (id, x, expiration) VALUES (?, ?, ?)")
    for id, time_left in [(1, -HOUR), (2, HOUR), (3, HOUR), (4, HOUR)]:
        session.execute(insert, (id, "x", now() + time_left))
    session.execute("INSERT INTO t (id, x) VALUES (5, 'for ever')")
    eventually(lambda: keys(session) == [2, 3, 4, 5])
    session.execute("UPDATE t SET expiration = %s WHERE id = 3", (now(),))
    session.execute("UPDATE t SET expiration = null WHERE id = 2")
    eventually(lambda: keys(session) == [2, 4, 5])
    session.execute("ALTER TABLE t TTL NULL")
    session.execute("UPDATE t SET expiration = %s WHERE id = 4", (now() - HOUR,))
    session.execute("ALTER TABLE t TTL expiration")
    eventually(lambda: keys(session) == [2, 5])


@pytest.mark.parametrize("cql_type", ["bigint", "int"])
def test_numbers_are_seconds(session, cql_type):
    session.execute(f"CREATE TABLE t (id int PRIMARY KEY, at {cql_type} TTL)")
    present = int(time.time())
    for id, at in [(1, present + 2), (2, present + 3600), (3, present - 1)]:
        session.execute("INSERT INTO t (id, at) VALUES (%s, %s)", (id, at))
    eventually(lambda: keys(session) == [2])
    assert time.time() >= present + 2


def test_the_change_log_and_the_vector_index_follow(server, session):
    session.execute(
        "CREATE TABLE t (id int, c int, v vector<float, 2>, at bigint TTL, PRIMARY KEY (id, c)) WITH cdc = {'enabled': true}"
    )
    session.execute("CREATE TABLE one (id int PRIMARY KEY, v vector<float, 2>, at bigint TTL)")
    for table in ("t", "one"):
        session.execute(f"CREATE CUSTOM INDEX {table}_v ON {table} (v) USING 'vector_index'")
    for c in range(6):
        session.execute("INSERT INTO t (id, c, v) VALUES (1, %s, %s)", (c, [c, 1]))
        session.execute("INSERT INTO one (id, v) VALUES (%s, %s)", (c, [c, 1]))
    server.wait_for_index(session.keyspace, "t_v", 6)
    server.wait_for_index(session.keyspace, "one_v", 6)
    session.execute("UPDATE t SET at = 1 WHERE id = 1 AND c IN (2, 3)")
    session.execute("UPDATE one SET at = 1 WHERE id = 2")
    server.wait_for_index(session.keyspace, "t_v", 4)
    server.wait_for_index(session.keyspace, "one_v", 5)
    found = session.execute("SELECT c FROM t ORDER BY v ANN OF [2, 1] LIMIT 10")
    assert sorted(row.c for row in found) == [0, 1, 4, 5]
    found = session.execute("SELECT id FROM one ORDER BY v ANN OF [2, 1] LIMIT 10")
    assert sorted(row.id for row in found) == [0, 1, 3, 4, 5]
    log = session.execute('SELECT id, c, "cdc$operation" AS operation FROM t_scylla_cdc_log')
    assert sorted((row.id, row.c) for row in log if row.operation == -3) == [(1, 2), (1, 3)]
    log = session.execute('SELECT id, "cdc$operation" AS operation FROM one_scylla_cdc_log')
    assert [row.id for row in log if row.operation == -4] == [2]
    status, text = server.http("/metrics")
    counts = [line.split()[-1] for line in text.splitlines() if line.startswith("rows_expired_total")]
    assert status == 200 and float(counts[0]) >= 3


def test_describe_and_what_is_refused(session):
    session.execute("CREATE TABLE t (id int PRIMARY KEY, x text, expiration timestamp TTL)")
    described = session.execute("DESCRIBE TABLE t").one().create_statement
    assert "expiration timestamp TTL," in described
    session.execute("DROP TABLE t")
    session.execute(described)
    assert session.execute("DESCRIBE TABLE t").one().create_statement == described
    for statement in ["ALTER TABLE t DROP expiration", "ALTER TABLE t TTL x", "ALTER TABLE t TTL expiration"]:
        with pytest.raises(InvalidRequest, match="TTL column"):
            session.execute(statement)
