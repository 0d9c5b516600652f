"""Tests batches: all or nothing, one timestamp, every way of sending them."""

import pytest
from cassandra import InvalidRequest
from cassandra.query import BatchStatement, BatchType, SimpleStatement


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE other (k text PRIMARY KEY, v int)")
    return session


def contents(session):
    return {(row.p, row.c): row.v for row in session.execute("SELECT * FROM t")}


@pytest.mark.parametrize("kind", [BatchType.LOGGED, BatchType.UNLOGGED])
def test_statements_of_every_kind(table, kind):
    insert = table.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, ?)")
    table.execute(insert, (9, 9, 9))
    batch = BatchStatement(kind)
    batch.add(insert, (1, 1, 10))
    batch.add(insert.bind((1, 2, 20)))
    batch.add("INSERT INTO t (p, c, v) VALUES (%s, %s, %s)", (2, 1, 30))
    batch.add(SimpleStatement("UPDATE other SET v = 5 WHERE k = 'x'"))
    batch.add("DELETE FROM t WHERE p = 9")
    table.execute(batch)
    assert contents(table) == {(1, 1): 10, (1, 2): 20, (2, 1): 30}
    assert table.execute("SELECT v FROM other").one().v == 5


def test_all_statements_have_one_timestamp(table):
    batch = BatchStatement()
    for c in range(5):
        batch.add("INSERT INTO t (p, c, v) VALUES (%s, %s, 0)", (c % 2, c))
    table.execute(batch)
    assert len({row.w for row in table.execute("SELECT writetime(v) AS w FROM t")}) == 1
    # Both have one timestamp, so a deletion beside an insert of the same row wins in any order.
    table.execute("BEGIN BATCH DELETE FROM t WHERE p = 7 AND c = 7; INSERT INTO t (p, c, v) VALUES (7, 7, 7); APPLY BATCH")
    assert (7, 7) not in contents(table)


def test_timestamps_given(table):
    table.execute(
        "BEGIN BATCH USING TIMESTAMP 50 "
        "INSERT INTO t (p, c, v) VALUES (1, 1, 1); UPDATE t SET v = 2 WHERE p = 1 AND c = 2; APPLY BATCH"
    )
    table.execute(
        "BEGIN UNLOGGED BATCH "
        "INSERT INTO t (p, c, v) VALUES (2, 1, 1) USING TIMESTAMP 60; "
        "INSERT INTO t (p, c, v) VALUES (2, 2, 1) USING TIMESTAMP 70; APPLY BATCH"
    )
    assert {row.w for row in table.execute("SELECT writetime(v) AS w FROM t WHERE p = 1")} == {50}
    assert [row.w for row in table.execute("SELECT writetime(v) AS w FROM t WHERE p = 2")] == [60, 70]


def test_a_batch_as_text_with_markers(table):
    prepared = table.prepare(
        "BEGIN BATCH INSERT INTO t (p, c, v) VALUES (?, ?, ?); UPDATE other SET v = ? WHERE k = ?; APPLY BATCH"
    )
    table.execute(prepared, (1, 2, 3, 4, "k"))
    assert contents(table) == {(1, 2): 3} and table.execute("SELECT v FROM other").one().v == 4


@pytest.mark.parametrize(
    "bad",
    [
        "INSERT INTO t (p, c, v) VALUES (1, 2, 'text')",
        "INSERT INTO t (p, v) VALUES (1, 2)",
        "INSERT INTO nowhere (p) VALUES (1)",
        "UPDATE t SET v = 1 WHERE p = 1",
        "SELECT * FROM t",
        "TRUNCATE t",
    ],
)
def test_a_bad_statement_spoils_the_whole(table, bad):
    batch = BatchStatement()
    batch.add("INSERT INTO t (p, c, v) VALUES (1, 1, 1)")
    batch.add(bad)
    with pytest.raises(InvalidRequest):
        table.execute(batch)
    assert contents(table) == {}


def test_a_text_batch_has_one_kind_of_timestamp(table):
    with pytest.raises(InvalidRequest, match="(?i)timestamp"):
        table.execute(
            "BEGIN BATCH USING TIMESTAMP 5 INSERT INTO t (p, c, v) VALUES (1, 1, 1) USING TIMESTAMP 6; APPLY BATCH"
        )


def test_empty_batches_are_fine(table):
    table.execute("BEGIN BATCH APPLY BATCH")
    table.execute(BatchStatement())
    assert contents(table) == {}


def test_a_large_batch(table):
    insert = table.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for c in range(500):
        batch.add(insert, (c % 20, c, c))
    table.execute(batch)
    assert table.execute("SELECT count(*) FROM t").one()[0] == 500
