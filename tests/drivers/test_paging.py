"""Tests paging: every page size gives the same rows in the same order."""

import pytest
from cassandra.query import SimpleStatement

PARTITIONS, ROWS = 4, 7


@pytest.fixture(scope="module")
def table(shared_session):
    session = shared_session
    session.execute("CREATE TABLE t (p int, c int, v text, s text STATIC, PRIMARY KEY (p, c))")
    insert = session.prepare("INSERT INTO t (p, c, v, s) VALUES (?, ?, ?, ?)")
    for p in range(PARTITIONS):
        for c in range(ROWS):
            session.execute(insert, (p, c, "v" * c, f"static {p}"))
    session.execute("INSERT INTO t (p, s) VALUES (100, 'alone')")
    session.execute("DELETE FROM t WHERE p = 2 AND c > 1 AND c < 5")
    session.execute("DELETE FROM t WHERE p = 3")
    return session


QUERIES = [
    "SELECT * FROM t",
    "SELECT v FROM t",
    "SELECT * FROM t WHERE p = 1",
    "SELECT * FROM t WHERE p = 1 ORDER BY c DESC",
    "SELECT * FROM t WHERE p = 1 AND c >= 2 AND c < 6",
    "SELECT * FROM t WHERE p IN (2, 0, 1)",
    "SELECT * FROM t WHERE p = 1 AND c IN (5, 1, 3)",
    "SELECT * FROM t LIMIT 11",
    "SELECT * FROM t PER PARTITION LIMIT 2",
    "SELECT * FROM t WHERE v = 'vv' ALLOW FILTERING",
    "SELECT DISTINCT p, s FROM t",
    "SELECT * FROM t WHERE token(p) > -9223372036854775807",
    "SELECT count(*) FROM t",
    "SELECT * FROM t WHERE p = 1234",
]


@pytest.mark.parametrize("query", QUERIES)
def test_every_page_size_gives_the_same(table, query):
    whole = list(table.execute(SimpleStatement(query, fetch_size=None)))
    for size in [1, 2, 3, 5, 7, 8, 14, 19, 20, 1000]:
        result = table.execute(SimpleStatement(query, fetch_size=size))
        rows = []
        while True:
            page = result.current_rows
            assert len(page) <= size
            rows.extend(page)
            if not result.has_more_pages:
                break
            result.fetch_next_page()
        assert rows == whole, f"page size {size}"


def test_the_count_is_right(table):
    # Partitions 0 and 1 are whole, 2 lacks three rows, 3 is gone, and one has a static column
    # alone.
    assert len(list(table.execute("SELECT * FROM t"))) == 7 + 7 + 4 + 1
    assert table.execute("SELECT count(*) FROM t").one()[0] == 7 + 7 + 4 + 1


def test_full_pages_are_full(table):
    result = table.execute(SimpleStatement("SELECT * FROM t", fetch_size=5))
    assert len(result.current_rows) == 5 and result.has_more_pages


def test_a_page_state_continues_on_another_connection(table, cluster):
    statement = SimpleStatement("SELECT p, c FROM t", fetch_size=6)
    first = table.execute(statement)
    seen = list(first.current_rows)
    other = cluster.connect(table.keyspace)
    rest = list(other.execute(statement, paging_state=first.paging_state))
    assert seen + rest == list(table.execute("SELECT p, c FROM t"))


def test_rows_that_change_between_pages_do_not_shift_the_rest(table):
    statement = SimpleStatement("SELECT c FROM t WHERE p = 50", fetch_size=3)
    for c in range(10):
        table.execute("INSERT INTO t (p, c) VALUES (50, %s)", (c * 10,))
    result = table.execute(statement)
    seen = [row.c for row in result.current_rows]
    table.execute("DELETE FROM t WHERE p = 50 AND c = 20")
    table.execute("DELETE FROM t WHERE p = 50 AND c = 30")
    table.execute("INSERT INTO t (p, c) VALUES (50, 5)")
    table.execute("INSERT INTO t (p, c) VALUES (50, 45)")
    result.fetch_next_page()
    seen += [row.c for row in result.current_rows]
    while result.has_more_pages:
        result.fetch_next_page()
        seen += [row.c for row in result.current_rows]
    table.execute("DELETE FROM t WHERE p = 50")
    assert seen == [0, 10, 20, 40, 45, 50, 60, 70, 80, 90]


def test_a_prepared_statement_pages_too(table):
    select = table.prepare("SELECT p, c FROM t WHERE p = ?")
    select.fetch_size = 2
    assert [row.c for row in table.execute(select, (1,))] == list(range(ROWS))
