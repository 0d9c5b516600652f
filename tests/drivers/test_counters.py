"""Tests counters: every increment counts once, whoever makes it."""

import pytest
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (k int, c int, n counter, s counter STATIC, PRIMARY KEY (k, c))")
    return session


def total(table, c):
    row = table.execute("SELECT n FROM t WHERE k = 1 AND c = %s", (c,)).one()
    return row and row.n


def test_increments_of_many_at_once_all_count(table):
    add = table.prepare("UPDATE t SET n = n + ? WHERE k = 1 AND c = ?")
    steps = [(step, c) for step in range(1, 101) for c in (1, 2)]
    assert all(success for success, _ in execute_concurrent_with_args(table, add, steps, concurrency=50))
    assert [total(table, c) for c in (1, 2)] == [5050, 5050]
    table.execute("UPDATE t SET n = n - 50 WHERE k = 1 AND c = 1")
    assert total(table, 1) == 5000


def test_batches(table):
    add = table.prepare("UPDATE t SET n = n + ?, s = s + 1 WHERE k = 1 AND c = ?")
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    for _ in range(3):
        batch.add(add, (2, 1))
    table.execute(batch)
    assert tuple(table.execute("SELECT n, s FROM t").one()) == (6, 3)
    logged = BatchStatement(batch_type=BatchType.LOGGED)
    logged.add(add, (2, 1))
    with pytest.raises(InvalidRequest, match="(?i)counter"):
        table.execute(logged)


@pytest.mark.embedded("Cassandra goes on with the count from before the deletion")
def test_a_deleted_counter_begins_anew(table):
    add = "UPDATE t SET n = n + 5 WHERE k = 1 AND c = 1"
    table.execute(add)
    table.execute("DELETE FROM t WHERE k = 1 AND c = 1")
    assert total(table, 1) is None
    table.execute(add)
    assert total(table, 1) == 5


def test_a_counter_is_not_set(table):
    for statement in [
        "INSERT INTO t (k, c, n) VALUES (1, 1, 5)",
        "UPDATE t SET n = 5 WHERE k = 1 AND c = 1",
        "UPDATE t USING TTL 5 SET n = n + 1 WHERE k = 1 AND c = 1",
        "UPDATE t SET n = n + 1 WHERE k = 1 AND c = 1 IF n = 0",
    ]:
        with pytest.raises(InvalidRequest, match="(?i)counter"):
            table.execute(statement)
