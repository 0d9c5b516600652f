"""Tests SELECT: restrictions, order, limits and computed values."""

import pytest
from cassandra import InvalidRequest
from cassandra.metadata import Murmur3Token

PARTITIONS = [("x", 1), ("x", 2), ("y", 1)]
ROWS = [(p, q, a, b) for p, q in PARTITIONS for a in range(3) for b in "mno"]


@pytest.fixture(scope="module")
def table(shared_session):
    session = shared_session
    session.execute(
        "CREATE TABLE t (p text, q int, a int, b text, v int, s text STATIC, PRIMARY KEY ((p, q), a, b)) "
        "WITH CLUSTERING ORDER BY (a ASC, b DESC)"
    )
    insert = session.prepare("INSERT INTO t (p, q, a, b, v) VALUES (?, ?, ?, ?, ?)")
    for p, q, a, b in ROWS:
        session.execute(insert, (p, q, a, b, a * 10))
    session.execute("UPDATE t SET s = 'fixed' WHERE p = 'x' AND q = 1")
    return session


def keys(session, where, rest=""):
    found = [(row.p, row.q, row.a, row.b) for row in session.execute(f"SELECT p, q, a, b FROM t {where} {rest}")]
    assert len(set(found)) == len(found)
    return found


ONE = "WHERE p = 'x' AND q = 1"


def in_order(rows):
    return sorted(rows, key=lambda row: (row[2], [-ord(c) for c in row[3]]))


@pytest.mark.parametrize(
    "restriction, holds",
    [
        ("", lambda a, b: True),
        ("AND a = 1", lambda a, b: a == 1),
        ("AND a > 0", lambda a, b: a > 0),
        ("AND a >= 1 AND a < 2", lambda a, b: a == 1),
        ("AND a < 0", lambda a, b: False),
        ("AND a = 1 AND b = 'n'", lambda a, b: (a, b) == (1, "n")),
        ("AND a = 1 AND b > 'm'", lambda a, b: a == 1 and b > "m"),
        ("AND a = 1 AND b >= 'm' AND b < 'o'", lambda a, b: a == 1 and "m" <= b < "o"),
        ("AND a IN (2, 0, 7)", lambda a, b: a in (0, 2)),
        ("AND a IN (2, 0) AND b IN ('o', 'm')", lambda a, b: a in (0, 2) and b in "om"),
        ("AND a = 2 AND b IN ()", lambda a, b: False),
        ("AND (a, b) = (1, 'n')", lambda a, b: (a, b) == (1, "n")),
        ("AND (a, b) IN ((1, 'n'), (2, 'o'))", lambda a, b: (a, b) in [(1, "n"), (2, "o")]),
        ("AND (a, b) > (1, 'n')", lambda a, b: (a, b) > (1, "n")),
        ("AND (a) >= (1)", lambda a, b: a >= 1),
    ],
)
def test_clustering_restrictions(table, restriction, holds):
    expected = in_order([row for row in ROWS if row[:2] == ("x", 1) and holds(*row[2:])])
    assert keys(table, f"{ONE} {restriction}") == expected
    if "(a, b) >" in restriction or " IN ()" in restriction:
        return
    assert keys(table, f"{ONE} {restriction}", "ORDER BY a DESC, b ASC") == expected[::-1]


def test_in_on_the_partition_key(table):
    assert set(keys(table, "WHERE p IN ('y', 'x') AND q IN (1)")) == {row for row in ROWS if row[1] == 1}
    assert set(keys(table, "WHERE p = 'x' AND q IN (1, 2) AND a = 0")) == {r for r in ROWS if r[0] == "x" and r[2] == 0}
    bound = table.prepare("SELECT p, q, a, b FROM t WHERE p IN ? AND q = ?")
    assert {tuple(row)[:2] for row in table.execute(bound, (["x", "z"], 1))} == {("x", 1)}


def test_order_by_may_say_the_tables_own_order_or_its_reverse(table):
    assert keys(table, ONE, "ORDER BY a") == keys(table, ONE)
    assert keys(table, ONE, "ORDER BY a ASC, b DESC") == keys(table, ONE)


def test_limits(table):
    assert len(keys(table, "", "LIMIT 5")) == 5
    assert keys(table, ONE, "LIMIT 4") == keys(table, ONE)[:4]
    assert keys(table, ONE, "ORDER BY a DESC LIMIT 4") == keys(table, ONE)[::-1][:4]
    per_partition = keys(table, "", "PER PARTITION LIMIT 2")
    assert len(per_partition) == 6 and {row[:2] for row in per_partition} == set(PARTITIONS)
    assert len(keys(table, "", "PER PARTITION LIMIT 2 LIMIT 5")) == 5


def test_distinct_partitions(table):
    rows = table.execute("SELECT DISTINCT p, q, s FROM t")
    assert {tuple(row) for row in rows} == {("x", 1, "fixed"), ("x", 2, None), ("y", 1, None)}


def test_static_columns_show_in_every_row_of_their_partition(table):
    assert {row.s for row in table.execute(f"SELECT s, a FROM t {ONE}")} == {"fixed"}
    assert len(list(table.execute(f"SELECT s FROM t {ONE}"))) == 9


def test_count(table):
    assert table.execute("SELECT count(*) FROM t").one() == (27,)
    assert table.execute(f"SELECT count(*) AS n FROM t {ONE} AND a = 1").one().n == 3
    assert table.execute("SELECT COUNT(1) FROM t WHERE p = 'nobody' AND q = 0").one()[0] == 0


def test_aliases_and_order_of_columns(table):
    row = table.execute(f"SELECT v AS first, a, v FROM t {ONE} LIMIT 1").one()
    assert row._fields == ("first", "a", "v")
    assert table.execute("SELECT * FROM t LIMIT 1").one()._fields == ("p", "q", "a", "b", "s", "v")


def test_filtering_has_to_be_allowed(table):
    for where, holds in [
        ("WHERE v = 10", lambda r: r[2] == 1),
        ("WHERE a = 1", lambda r: r[2] == 1),
        ("WHERE p = 'x'", lambda r: r[0] == "x"),
        ("WHERE p = 'x' AND a > 1 AND v >= 10", lambda r: r[0] == "x" and r[2] > 1),
        (f"{ONE} AND v < 20", lambda r: r[:2] == ("x", 1) and r[2] < 2),
        (f"{ONE} AND b = 'n'", lambda r: r[:2] == ("x", 1) and r[3] == "n"),
        ("WHERE s = 'fixed'", lambda r: r[:2] == ("x", 1)),
        ("WHERE q = 1 AND b > 'm'", lambda r: r[1] == 1 and r[3] > "m"),
    ]:
        with pytest.raises(InvalidRequest, match="ALLOW FILTERING|PRIMARY KEY"):
            table.execute(f"SELECT * FROM t {where}")
        assert set(keys(table, where, "ALLOW FILTERING")) == {row for row in ROWS if holds(row)}, where


def test_token_ranges_together_are_the_table(table):
    select = table.prepare("SELECT p, q, token(p, q) AS t, a, b FROM t WHERE token(p, q) > ? AND token(p, q) <= ?")
    bounds = [-(2**63), -(2**62), -1, 0, 2**61, 2**63 - 1]
    found = []
    for low, high in zip(bounds, bounds[1:]):
        rows = list(table.execute(select, (low, high)))
        assert [row.t for row in rows] == sorted(row.t for row in rows)
        assert all(low < row.t <= high for row in rows)
        found += [(row.p, row.q, row.a, row.b) for row in rows]
    assert len(found) == 27 and set(found) == set(ROWS)


def test_the_token_is_the_drivers_own(table):
    row = table.execute(f"SELECT token(p, q) AS t FROM t {ONE} LIMIT 1").one()
    key = b"\x00\x01x\x00" + b"\x00\x04\x00\x00\x00\x01\x00"
    assert row.t == Murmur3Token.hash_fn(key)
    assert keys(table, f"WHERE token(p, q) = {row.t}") == keys(table, ONE)
    assert keys(table, "WHERE token(p, q) = token('x', 1)") == keys(table, ONE)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT nothing FROM t",
        "SELECT * FROM nowhere",
        "SELECT * FROM t WHERE nothing = 1",
        f"SELECT * FROM t {ONE} ORDER BY b",
        f"SELECT * FROM t {ONE} ORDER BY a, b",
        "SELECT * FROM t ORDER BY a",
        f"SELECT * FROM t {ONE} ORDER BY v",
        f"SELECT * FROM t {ONE} AND b > 'm'",
        f"SELECT * FROM t {ONE} AND a = 1 AND a = 2",
        f"SELECT * FROM t {ONE} AND a > 1 AND a > 2",
        "SELECT * FROM t WHERE p > 'a' AND q = 1",
        "SELECT * FROM t WHERE token(p) > 1",
        "SELECT * FROM t WHERE token(q, p) > 1",
        f"SELECT * FROM t {ONE} LIMIT 0",
        f"SELECT * FROM t {ONE} LIMIT -1",
        "SELECT DISTINCT a FROM t",
        "SELECT DISTINCT p FROM t",
        f"SELECT * FROM t {ONE} AND a = null",
        f"SELECT * FROM t {ONE} AND a CONTAINS 1",
        f"SELECT v['x'] FROM t {ONE}",
        "SELECT writetime(p) FROM t",
        "SELECT ttl(a) FROM t",
        "SELECT no_such_function(v) FROM t",
    ],
)
def test_what_cannot_be_answered_is_refused(table, query):
    with pytest.raises(InvalidRequest):
        table.execute(query)
