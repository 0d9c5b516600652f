"""Tests deletions of rows, partitions and ranges, which hide older writes for good."""

import itertools

import pytest
from cassandra import InvalidRequest

ROWS = [(a, b) for a in range(4) for b in range(4)]


@pytest.fixture(params=["ASC", "DESC"])
def table(session, request):
    session.execute(
        "CREATE TABLE t (p int, a int, b int, v int, s int STATIC, PRIMARY KEY (p, a, b)) "
        f"WITH CLUSTERING ORDER BY (a {request.param}, b ASC)"
    )
    return session


def fill(session, p=1, at=None):
    insert = session.prepare("INSERT INTO t (p, a, b, v) VALUES (?, ?, ?, 0)" + (" USING TIMESTAMP ?" if at else ""))
    for a, b in ROWS:
        session.execute(insert, (p, a, b, at) if at else (p, a, b))


def left(session, p=1):
    return {(row.a, row.b) for row in session.execute("SELECT a, b FROM t WHERE p = %s", (p,)) if row.a is not None}


SINGLE = {">": lambda x, y: x > y, ">=": lambda x, y: x >= y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y}


def test_ranges_of_rows(table):
    cases = [(f"a {sign} {bound}", lambda r, f=f, n=bound: f(r[0], n)) for sign, f in SINGLE.items() for bound in (0, 2)]
    cases += [
        (f"a {low} 1 AND a {high} 3", lambda r, f=SINGLE[low], g=SINGLE[high]: f(r[0], 1) and g(r[0], 3))
        for low, high in itertools.product([">", ">="], ["<", "<="])
    ]
    cases += [(f"a = 2 AND b {sign} 1", lambda r, f=f: r[0] == 2 and f(r[1], 1)) for sign, f in SINGLE.items()]
    cases += [
        ("a = 2", lambda r: r[0] == 2),
        ("a = 2 AND b = 3", lambda r: r == (2, 3)),
        ("a = 2 AND b IN (0, 3, 9)", lambda r: r in [(2, 0), (2, 3)]),
        ("a IN (1, 3)", lambda r: r[0] in (1, 3)),
        ("a > 3 AND a < 1", lambda r: False),
    ]
    for p, (condition, gone) in enumerate(cases):
        fill(table, p)
        table.execute(f"DELETE FROM t WHERE p = {p} AND {condition}")
        assert left(table, p) == {row for row in ROWS if not gone(row)}, condition


def test_several_columns_as_one(session):
    session.execute("CREATE TABLE t (p int, a int, b int, v int, PRIMARY KEY (p, a, b))")
    fill(session)
    session.execute("DELETE FROM t WHERE p = 1 AND (a, b) > (1, 2) AND (a, b) <= (3, 0)")
    assert left(session) == {row for row in ROWS if not (1, 2) < row <= (3, 0)}


def test_a_deletion_hides_what_is_older_and_not_what_is_newer(table):
    fill(table, at=100)
    table.execute("DELETE FROM t USING TIMESTAMP 90 WHERE p = 1 AND a = 0")
    assert left(table) == set(ROWS)
    table.execute("DELETE FROM t USING TIMESTAMP 200 WHERE p = 1 AND a >= 1 AND a <= 2")
    table.execute("INSERT INTO t (p, a, b, v) VALUES (1, 1, 0, 5) USING TIMESTAMP 200")
    table.execute("INSERT INTO t (p, a, b, v) VALUES (1, 1, 1, 5) USING TIMESTAMP 201")
    table.execute("INSERT INTO t (p, a, b, v) VALUES (1, 2, 9, 5) USING TIMESTAMP 150")
    assert left(table) == {row for row in ROWS if row[0] not in (1, 2)} | {(1, 1)}
    table.execute("DELETE FROM t USING TIMESTAMP 150 WHERE p = 1")
    assert left(table) == {(1, 1)}
    table.execute("DELETE FROM t USING TIMESTAMP 300 WHERE p = 1")
    table.execute("INSERT INTO t (p, a, b, v) VALUES (1, 3, 3, 5) USING TIMESTAMP 250")
    assert left(table) == set()
    table.execute("INSERT INTO t (p, a, b, v) VALUES (1, 3, 3, 5) USING TIMESTAMP 301")
    assert left(table) == {(3, 3)}


def test_overlapping_ranges(table):
    fill(table, at=100)
    table.execute("DELETE FROM t USING TIMESTAMP 150 WHERE p = 1 AND a >= 0 AND a < 2")
    table.execute("DELETE FROM t USING TIMESTAMP 120 WHERE p = 1 AND a >= 1 AND a < 3")
    for a in range(4):
        table.execute("INSERT INTO t (p, a, b, v) VALUES (1, %s, 7, 5) USING TIMESTAMP 130", (a,))
    assert left(table) == {(2, 7)} | {(3, b) for b in (0, 1, 2, 3, 7)}


def test_static_columns_go_with_the_partition_alone(table):
    fill(table)
    table.execute("UPDATE t SET s = 8 WHERE p = 1")
    table.execute("DELETE FROM t WHERE p = 1 AND a >= 0")
    assert [(row.a, row.s) for row in table.execute("SELECT a, s FROM t WHERE p = 1")] == [(None, 8)]
    table.execute("DELETE FROM t WHERE p = 1")
    assert not list(table.execute("SELECT a, s FROM t WHERE p = 1"))
    fill(table)
    table.execute("UPDATE t SET s = 8 WHERE p = 1")
    table.execute("DELETE s FROM t WHERE p = 1")
    assert {row.s for row in table.execute("SELECT s FROM t WHERE p = 1")} == {None} and left(table) == set(ROWS)


def test_several_partitions_at_once(table):
    for p in range(3):
        fill(table, p)
    table.execute("DELETE FROM t WHERE p IN (0, 2)")
    assert [len(left(table, p)) for p in range(3)] == [0, len(ROWS), 0]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE a = 1",
        "DELETE FROM t WHERE p > 1",
        "DELETE FROM t WHERE p = 1 AND b = 1",
        "DELETE v FROM t WHERE p = 1 AND a = 1",
        "DELETE v FROM t WHERE p = 1 AND a > 1",
        "DELETE a FROM t WHERE p = 1 AND a = 1 AND b = 1",
        "DELETE FROM t WHERE p = 1 AND v = 1",
        "DELETE nothing FROM t WHERE p = 1 AND a = 1 AND b = 1",
    ],
)
def test_what_cannot_be_deleted_is_refused(table, statement):
    fill(table)
    with pytest.raises(InvalidRequest):
        table.execute(statement)
    assert left(table) == set(ROWS)
