"""Tests values that live for a time."""

import pytest
from cassandra import InvalidRequest
from server import eventually


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int, m map<text, int>)")
    return session


def row(session, k=1):
    found = session.execute("SELECT a, b FROM t WHERE k = %s", (k,)).one()
    return found and tuple(found)


def test_values_expire_each_for_itself(table):
    table.execute("INSERT INTO t (k, a) VALUES (1, 1)")
    table.execute("UPDATE t SET m = m + {'later': 2} WHERE k = 3")
    # First for long: a second may pass between any two statements, and a value of one second may live less than that.
    for ttl in (1000, 1):
        table.execute(f"UPDATE t USING TTL {ttl} SET b = 2 WHERE k = 1")
        table.execute(f"INSERT INTO t (k, a, b) VALUES (2, 1, 2) USING TTL {ttl}")
        table.execute(f"UPDATE t USING TTL {ttl} SET m = m + {{'soon': 1}} WHERE k = 3")
        if ttl > 1:
            assert row(table) == (1, 2) and row(table, 2) == (1, 2)
            assert table.execute("SELECT m FROM t WHERE k = 3").one().m == {"later": 2, "soon": 1}
    eventually(lambda: row(table) == (1, None))
    eventually(lambda: row(table, 2) is None)
    eventually(lambda: table.execute("SELECT m FROM t WHERE k = 3").one().m == {"later": 2})
    assert table.execute("SELECT count(*) FROM t").one()[0] == 2


def test_ttl_tells_what_is_left(table):
    table.execute("INSERT INTO t (k, a) VALUES (1, 1) USING TTL 1000")
    table.execute("UPDATE t SET b = 2 WHERE k = 1")
    left, forever = table.execute("SELECT ttl(a), ttl(b) FROM t").one()
    assert 990 <= left <= 1000 and forever is None


def test_a_later_write_without_ttl_lasts(table):
    table.execute("INSERT INTO t (k, a) VALUES (1, 1) USING TTL 1")
    table.execute("INSERT INTO t (k, a) VALUES (2, 1) USING TTL 1")
    table.execute("INSERT INTO t (k, a) VALUES (1, 5)")
    eventually(lambda: row(table, 2) is None)
    assert row(table) == (5, None)


def test_the_tables_default(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int) WITH default_time_to_live = 500")
    session.execute("INSERT INTO t (k, a) VALUES (1, 1)")
    session.execute("INSERT INTO t (k, a) VALUES (2, 1) USING TTL 100")
    session.execute("INSERT INTO t (k, a) VALUES (3, 1) USING TTL 0")
    left = {row.k: row.ttl_a for row in session.execute("SELECT k, ttl(a) AS ttl_a FROM t")}
    assert 490 <= left[1] <= 500 and 90 <= left[2] <= 100 and left[3] is None
    session.execute("ALTER TABLE t WITH default_time_to_live = 0")
    session.execute("INSERT INTO t (k, a) VALUES (1, 1)")
    assert session.execute("SELECT ttl(a) AS t FROM t WHERE k = 1").one().t is None


@pytest.mark.parametrize("ttl", [-1, 20 * 365 * 24 * 3600 + 1])
def test_impossible_ttls_are_refused(table, ttl):
    with pytest.raises(InvalidRequest, match="(?i)ttl"):
        table.execute(f"INSERT INTO t (k, a) VALUES (1, 1) USING TTL {ttl}")
    assert row(table) is None


def test_a_bound_ttl_and_timestamp(table):
    insert = table.prepare("INSERT INTO t (k, a) VALUES (?, ?) USING TTL ? AND TIMESTAMP ?")
    table.execute(insert, (1, 1, 1000, 77))
    left, written = table.execute("SELECT ttl(a), writetime(a) FROM t").one()
    assert left > 900 and written == 77
