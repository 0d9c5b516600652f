"""Tests that the last write wins, cell by cell, by the write timestamp. Ties are broken as in
Cassandra."""

import time

import pytest


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b text)")
    return session


def write(session, statement, at):
    head, using, rest = {
        "INSERT": lambda s: (s, f" USING TIMESTAMP {at}", ""),
        "UPDATE": lambda s: ("UPDATE t", f" USING TIMESTAMP {at}", s.removeprefix("UPDATE t")),
        "DELETE": lambda s: (s.split(" WHERE")[0], f" USING TIMESTAMP {at}", " WHERE" + s.split(" WHERE")[1]),
    }[statement.split()[0]](statement)
    session.execute(head + using + rest)


def row(session):
    found = session.execute("SELECT a, b FROM t WHERE k = 1").one()
    return found and tuple(found)


INSERT_1, INSERT_2 = "INSERT INTO t (k, a) VALUES (1, 1)", "INSERT INTO t (k, a) VALUES (1, 2)"
NULL_A, DELETE_A, DELETE_ROW = "UPDATE t SET a = null WHERE k = 1", "DELETE a FROM t WHERE k = 1", "DELETE FROM t WHERE k = 1"


@pytest.mark.parametrize(
    "writes, expected",
    [
        ([(INSERT_1, 20), (INSERT_2, 10)], (1, None)),
        ([(INSERT_1, 10), (INSERT_2, 20)], (2, None)),
        # Of equal timestamps the greater value wins, whichever came first.
        ([(INSERT_1, 10), (INSERT_2, 10)], (2, None)),
        ([(INSERT_2, 10), (INSERT_1, 10)], (2, None)),
        # A deletion wins over a value.
        ([(INSERT_1, 10), (DELETE_ROW, 10)], None),
        ([(DELETE_ROW, 10), (INSERT_1, 10)], None),
        ([(DELETE_ROW, 10), (INSERT_1, 11)], (1, None)),
        ([(INSERT_1, 11), (DELETE_ROW, 10)], (1, None)),
        ([(INSERT_1, 10), (NULL_A, 10)], (None, None)),
        ([(NULL_A, 10), (INSERT_1, 10)], (None, None)),
        ([(DELETE_A, 11), (INSERT_1, 10)], (None, None)),
        # Each cell is merged by itself.
        ([("UPDATE t SET a = 1, b = 'x' WHERE k = 1", 10), ("UPDATE t SET a = 5 WHERE k = 1", 5)], (1, "x")),
        ([("UPDATE t SET a = 1, b = 'x' WHERE k = 1", 10), ("UPDATE t SET b = 'y' WHERE k = 1", 15)], (1, "y")),
        ([("UPDATE t SET a = 1 WHERE k = 1", 10), ("UPDATE t SET b = 'x' WHERE k = 1", 30), (DELETE_ROW, 20)], (None, "x")),
        # The far future and the time before 1970.
        ([(INSERT_1, 2**62), (INSERT_2, 2**61)], (1, None)),
        ([(INSERT_1, -5), (INSERT_2, -10)], (1, None)),
        ([("UPDATE t SET b = 'a' WHERE k = 1", 7), ("UPDATE t SET b = 'ab' WHERE k = 1", 7)], (None, "ab")),
    ],
)
def test_the_last_write_wins(table, writes, expected):
    for statement, at in writes:
        write(table, statement, at)
    assert row(table) == expected


def test_an_expiring_value_wins_over_an_equal_lasting_one(table):
    table.execute("INSERT INTO t (k, a) VALUES (1, 1) USING TIMESTAMP 10 AND TTL 1000")
    table.execute("INSERT INTO t (k, a) VALUES (1, 2) USING TIMESTAMP 10")
    assert row(table) == (1, None)


def test_a_row_made_by_update_is_gone_with_its_values(table):
    table.execute("UPDATE t SET a = 1 WHERE k = 1")
    table.execute("UPDATE t SET a = null WHERE k = 1")
    assert row(table) is None
    # An INSERT makes the row itself.
    table.execute("INSERT INTO t (k) VALUES (1)")
    assert row(table) == (None, None)
    table.execute("UPDATE t SET a = 1 WHERE k = 1")
    table.execute("DELETE a FROM t WHERE k = 1")
    assert row(table) == (None, None)


def test_writetime_is_that_of_each_cell(table):
    table.execute("INSERT INTO t (k, a, b) VALUES (1, 1, 'x') USING TIMESTAMP 10")
    table.execute("UPDATE t USING TIMESTAMP 20 SET b = 'y' WHERE k = 1")
    table.execute("INSERT INTO t (k) VALUES (2)")
    rows = table.execute("SELECT k, writetime(a) AS wa, writetime(b) FROM t")
    assert sorted(tuple(row) for row in rows) == [(1, 10, 20), (2, None, None)]


def test_writes_without_a_timestamp_have_the_present_and_do_not_go_back(table):
    table.execute("INSERT INTO t (k, a) VALUES (1, -1)")
    written = table.execute("SELECT writetime(a) AS w FROM t").one().w
    assert abs(written / 1e6 - time.time()) < 60
    for a in range(50):
        table.execute("UPDATE t SET a = %s WHERE k = 1", (a,))
        now = table.execute("SELECT a, writetime(a) AS w FROM t").one()
        assert now.a == a and now.w > written
        written = now.w


def test_the_timestamp_of_the_request_counts(cluster, table):
    # The driver sends a timestamp by default; here the test sets it.
    session = cluster.connect(table.keyspace)
    prepared = session.prepare("INSERT INTO t (k, a) VALUES (1, ?)")
    generator, cluster.timestamp_generator = cluster.timestamp_generator, iter([50, 40, 60]).__next__
    try:
        seen = []
        for a in [1, 2, 3]:
            session.execute(prepared, (a,))
            seen.append(a)
    finally:
        cluster.timestamp_generator = generator
    assert tuple(table.execute("SELECT a, writetime(a) FROM t").one()) == (3, 60)


def test_a_timestamp_in_the_statement_wins_over_that_of_the_request(table):
    table.execute("INSERT INTO t (k, a) VALUES (1, 1) USING TIMESTAMP 5")
    assert table.execute("SELECT writetime(a) AS w FROM t").one().w == 5


def test_a_bound_timestamp(table):
    insert = table.prepare("INSERT INTO t (k, a) VALUES (?, ?) USING TIMESTAMP ?")
    table.execute(insert, (1, 1, 20))
    table.execute(insert, (1, 2, 10))
    assert row(table) == (1, None)
