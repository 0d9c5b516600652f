"""Tests SELECT by secondary indexes: what they find, in pages, beside writers, and what is refused."""

import threading
import time

import pytest
from cassandra import InvalidRequest, ReadFailure
from cassandra.query import SimpleStatement

PARTITIONS, ROWS = 20, 10
INDEXES = ["v", "w", "n", "s", "tags", "KEYS(m)", "ENTRIES(e)", "c"]


@pytest.fixture(scope="module")
def table(shared_session):
    session = shared_session
    session.execute(
        "CREATE TABLE t (p int, c int, s int STATIC, v int, w int, n text, x int, tags set<text>,"
        " m map<text, int>, e map<text, int>, PRIMARY KEY (p, c))"
    )
    insert = session.prepare(
        "INSERT INTO t (p, c, v, w, n, x, tags, m, e) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    for p in range(PARTITIONS):
        session.execute("INSERT INTO t (p, s) VALUES (%s, %s)", (p, p % 4))
        for c in range(ROWS):
            name = f"n{c % 3}"
            session.execute(insert, (p, c, c % 5, p % 5, name, c, {name, "all"}, {name: p}, {name: p}))
    for target in INDEXES:
        session.execute(f"CREATE CUSTOM INDEX ON t ({target}) USING 'StorageAttachedIndex'")
    for relation in ["v = 0", "w = 0", "n = ''", "s = 0", "tags CONTAINS ''", "m CONTAINS KEY ''", "e[''] = 0", "c = 0"]:
        await_index(session, f"SELECT p FROM t WHERE {relation} LIMIT 1")
    return session


def await_index(session, query):
    """Waits until the index that a query needs is built."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return session.execute(query)
        except ReadFailure:
            assert time.monotonic() < deadline, query


RELATIONS = [
    "v = 3",
    "v > 1 AND v <= 3",
    "v = 9",
    "n = 'n1'",
    "s = 2",
    "c = 4",
    "c >= 8",
    "tags CONTAINS 'n2'",
    "tags CONTAINS 'all'",
    "m CONTAINS KEY 'n0'",
    "e['n1'] = 7",
    "v = 3 AND w = 2",
    "v = 3 AND w >= 1 AND n = 'n0' AND tags CONTAINS 'all'",
    "s = 2 AND v = 3",
    "token(p) > 0 AND v = 3",
    "p = 7 AND v = 3",
    "p = 7 AND c < 8 AND n = 'n1'",
]


@pytest.mark.parametrize("relations", RELATIONS)
def test_an_index_finds_what_a_scan_finds(table, relations):
    # A relation with a column beside it that has no index is checked row by row.
    whole = [row for row in table.execute("SELECT p, c, v, w, n, s, tags, m, e FROM t") if holds(relations, row)]
    expected = [(row.p, row.c) for row in whole]
    if relations.startswith("token"):
        tokens = {row.p for row in table.execute("SELECT p FROM t WHERE token(p) > 0")}
        expected = [key for key in expected if key[0] in tokens]
    query = f"SELECT p, c FROM t WHERE {relations}"
    for size in [None, 1, 7, 50]:
        found = [tuple(row) for row in table.execute(SimpleStatement(query, fetch_size=size))]
        assert found == expected, f"pages of {size}"
    assert table.execute(f"SELECT count(*) FROM t WHERE {relations}").one().count == len(expected)


def holds(relations, row):
    """Whether relations, but for those on tokens, hold for a row."""
    python = relations.replace("token(p) > 0 AND ", "").replace(" AND ", " and ").replace(" = ", " == ")
    for word in ["tags CONTAINS ", "m CONTAINS KEY "]:
        column = word.split()[0]
        while word in python:
            before, _, after = python.partition(word)
            value, _, rest = after.partition(" ")
            python = f"{before}{value} in {column} {rest}"
    python = python.replace("e['n1'] ==", "e.get('n1') ==")
    return eval(python, {}, row._asdict())


def test_values_are_bound(table):
    prepared = table.prepare("SELECT p, c FROM t WHERE v = ? AND n = ?")
    plain = "SELECT p, c FROM t WHERE v = {} AND n = '{}'"
    for v, n in [(1, "n1"), (2, "n2"), (3, "no")]:
        assert list(table.execute(prepared, (v, n))) == list(table.execute(plain.format(v, n)))


@pytest.mark.parametrize(
    "clauses", ["v IN (1, 2)", "n > 'n'", "v = 1 AND x = 1", "m CONTAINS 1", "e CONTAINS KEY 'n1'", "x = 1"]
)
def test_what_no_index_serves_needs_allow_filtering(table, clauses):
    with pytest.raises(InvalidRequest, match="use ALLOW FILTERING"):
        table.execute(f"SELECT p FROM t WHERE {clauses}")
    table.execute(f"SELECT p FROM t WHERE {clauses} ALLOW FILTERING")


def test_an_index_gives_no_other_order_than_that_of_the_disk(table):
    with pytest.raises(InvalidRequest, match="ORDER BY with 2ndary indexes is not supported"):
        table.execute("SELECT p FROM t WHERE p = 1 AND v = 1 ORDER BY c DESC")
    with pytest.raises(InvalidRequest, match="IN clause for the PRIMARY KEY"):
        table.execute("SELECT p FROM t WHERE p IN (1, 2) AND v = 1")


@pytest.mark.parametrize("relations", ["v = 1", "v >= 1 AND v < 2", "v = 1 AND w = 1"])
def test_rows_that_stay_come_once_beside_a_writer(session, relations):
    session.execute("CREATE TABLE t (p int, c int, v int, w int, PRIMARY KEY (p, c))")
    for column in ["v", "w"]:
        session.execute(f"CREATE CUSTOM INDEX ON t ({column}) USING 'StorageAttachedIndex'")
    insert = session.prepare("INSERT INTO t (p, c, v, w) VALUES (?, ?, ?, ?)")
    for p in range(PARTITIONS):
        for c in range(ROWS):
            session.execute(insert, (p, c, 1, 1))
    await_index(session, f"SELECT p FROM t WHERE {relations} LIMIT 1")
    done = threading.Event()

    def write():
        number = 0
        while not done.is_set():
            number += 1
            # Rows with c < 5 stay as they are.
            p, c = number % PARTITIONS, 5 + number % 7
            if number % 3:
                session.execute(insert, (p, c, number % 2, 1))
            else:
                session.execute("DELETE FROM t WHERE p = %s AND c = %s", (p, c))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for size in [1, 3, 20]:
            query = SimpleStatement(f"SELECT p, c FROM t WHERE {relations}", fetch_size=size)
            found = [tuple(row) for row in session.execute(query)]
            assert len(set(found)) == len(found)
            assert {(p, c) for p in range(PARTITIONS) for c in range(5)} <= set(found)
    finally:
        done.set()
        writer.join()
