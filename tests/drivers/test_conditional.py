"""Tests writes with conditions: exactly one wins, and the others get the row that stood in the way."""

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import BatchStatement, SimpleStatement


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (p int, c int, a int, b text, s int STATIC, PRIMARY KEY (p, c))")
    return session


def test_applied_or_the_row_in_the_way(table):
    result = table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 5) IF NOT EXISTS")
    assert result.was_applied and result.one()._asdict() == {"applied": True}
    result = table.execute("INSERT INTO t (p, c, a, b) VALUES (1, 1, 6, 'x') IF NOT EXISTS")
    assert not result.was_applied
    assert result.one()._asdict() == {"applied": False, "p": 1, "c": 1, "a": 5, "b": None, "s": None}
    assert [tuple(row) for row in table.execute("SELECT p, c, a, b FROM t")] == [(1, 1, 5, None)]


def test_prepared(table):
    insert = table.prepare("INSERT INTO t (p, c, a) VALUES (?, ?, ?) IF NOT EXISTS")
    assert table.execute(insert, (1, 1, 5)).was_applied
    assert not table.execute(insert, (1, 1, 6)).was_applied
    assert table.execute(insert, (1, 2, 7)).was_applied


def test_a_bound_list_may_hold_null(session):
    session.execute("CREATE TABLE job (id int PRIMARY KEY, prio int, m map<text, int>)")
    session.execute("INSERT INTO job (id, m) VALUES (1, {'b': 7})")
    update = session.prepare("UPDATE job SET prio = ? WHERE id = 1 IF prio IN ?")
    # Of a null in a list drivers send the length 0 or -1, by their version.
    assert not session.execute(update, (4, [9])).was_applied
    assert session.execute(update, (5, [None, 9])).was_applied
    assert not session.execute(update, (6, [None, 9])).was_applied
    assert session.execute(update, (6, [None, 5])).was_applied
    element = session.prepare("UPDATE job SET prio = 7 WHERE id = 1 IF m[?] IN ?")
    assert session.execute(element, ("a", [None, 9])).was_applied
    assert not session.execute(element, ("b", [None, 9])).was_applied
    assert session.execute(element, ("b", [None, 7])).was_applied


def test_of_many_at_once_one_is_applied(table):
    insert = table.prepare("INSERT INTO t (p, c, a) VALUES (1, ?, ?) IF NOT EXISTS")
    for c in range(5):
        futures = [table.execute_async(insert, (c, a)) for a in range(30)]
        applied = [a for a, future in enumerate(futures) if future.result().was_applied]
        assert len(applied) == 1
        assert table.execute("SELECT a FROM t WHERE p = 1 AND c = %s", (c,)).one().a == applied[0]


def test_a_deleted_row_does_not_exist(table):
    insert = "INSERT INTO t (p, c, a) VALUES (1, 1, 5) IF NOT EXISTS"
    assert table.execute(insert).was_applied
    table.execute("DELETE FROM t WHERE p = 1 AND c = 1")
    assert table.execute(insert).was_applied


def test_static_columns_alone_are_no_row(table):
    table.execute("UPDATE t SET s = 3 WHERE p = 1")
    assert table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 5) IF NOT EXISTS").was_applied


def test_with_a_ttl(table):
    assert table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 5) IF NOT EXISTS USING TTL 1000").was_applied
    assert table.execute("SELECT ttl(a) AS t FROM t").one().t > 900


def test_a_timestamp_and_a_condition_exclude_each_other(table):
    with pytest.raises(InvalidRequest, match="(?i)timestamp"):
        table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 5) IF NOT EXISTS USING TIMESTAMP 5")


@pytest.mark.parametrize("level", [ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL])
def test_compare_and_set_counts_every_step(table, level):
    table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 0)")
    update = table.prepare("UPDATE t SET a = ? WHERE p = 1 AND c = 1 IF a = ?")
    serial = SimpleStatement("SELECT a FROM t WHERE p = 1 AND c = 1", consistency_level=level)
    steps = 0
    for _ in range(10):
        seen = table.execute(serial).one().a
        results = [future.result() for future in [table.execute_async(update, (seen + 1, seen)) for _ in range(20)]]
        steps += sum(result.was_applied for result in results)
        assert {result.one().a for result in results if not result.was_applied} == {seen + 1}
    assert table.execute(serial).one().a == steps == 10


@pytest.mark.embedded("LIKE in a condition is ScyllaDB's")
def test_like(table):
    table.execute("INSERT INTO t (p, c, a, b) VALUES (1, 1, 0, 'xyz')")
    update = "UPDATE t SET a = {} WHERE p = 1 AND c = 1 IF b LIKE '{}'"
    for a, pattern in enumerate(["x%", "xyz", "%z", "%y%", "x_z", "%"], 1):
        assert table.execute(update.format(a, pattern)).was_applied, pattern
        assert table.execute("SELECT a FROM t").one().a == a
    for pattern in ["y%", "x", "X%", "%y", "x_", ""]:
        result = table.execute(update.format(9, pattern))
        assert not result.was_applied and result.one().b == "xyz", pattern
    prepared = table.prepare("DELETE FROM t WHERE p = 1 AND c = 1 IF b LIKE ? AND a = 6")
    assert not table.execute(prepared, ("z%",)).was_applied
    assert table.execute(prepared, ("x%",)).was_applied
    # Null is like nothing, and a number has no pattern.
    table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 1)")
    assert not table.execute(update.format(9, "%")).was_applied
    with pytest.raises(InvalidRequest, match="LIKE"):
        table.execute("UPDATE t SET b = 'x' WHERE p = 1 AND c = 1 IF a LIKE '1%'")
    assert table.execute("SELECT a, b FROM t").one() == (1, None)


def test_exists(table):
    assert not table.execute("UPDATE t SET a = 1 WHERE p = 1 AND c = 1 IF EXISTS").was_applied
    table.execute("INSERT INTO t (p, c) VALUES (1, 1)")
    assert table.execute("UPDATE t SET a = 1 WHERE p = 1 AND c = 1 IF EXISTS").was_applied
    assert table.execute("DELETE FROM t WHERE p = 1 AND c = 1 IF EXISTS").was_applied
    assert not table.execute("DELETE FROM t WHERE p = 1 AND c = 1 IF EXISTS").was_applied


def test_batches_are_applied_as_a_whole_or_not_at_all(table):
    insert = table.prepare("INSERT INTO t (p, c, a) VALUES (1, ?, ?)")
    once = table.prepare("INSERT INTO t (p, c, a) VALUES (1, ?, ?) IF NOT EXISTS")

    def batch(*entries):
        statement = BatchStatement()
        for prepared, values in entries:
            statement.add(prepared, values)
        return table.execute(statement)

    assert batch((once, (1, 1)), (insert, (2, 2))).was_applied
    result = batch((once, (1, 5)), (insert, (3, 3)))
    assert not result.was_applied and result.one().a == 1
    assert [row.c for row in table.execute("SELECT c FROM t WHERE p = 1")] == [1, 2]
