"""Tests prepared statements: binding, unset and null, and changes of the schema."""

import pytest
from cassandra import InvalidRequest
from cassandra.query import UNSET_VALUE
from conftest import connect


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (p int, c text, a int, b int, PRIMARY KEY (p, c))")
    return session


def contents(session):
    return sorted(tuple(row) for row in session.execute("SELECT p, c, a, b FROM t"))


def test_the_markers_are_described(table):
    prepared = table.prepare("UPDATE t SET a = ?, b = :second WHERE c = ? AND p = ?")
    found = [(column.name, column.type.typename) for column in prepared.column_metadata]
    assert found == [("a", "int"), ("second", "int"), ("c", "varchar"), ("p", "int")]
    assert list(prepared.routing_key_indexes) == [3]


def test_limit_in_and_token_markers_have_their_names(table):
    prepared = table.prepare("SELECT a FROM t WHERE token(p) > ? AND c IN ? LIMIT ? ALLOW FILTERING")
    assert [column.name for column in prepared.column_metadata] == ["partition key token", "in(c)", "[limit]"]
    assert not prepared.routing_key_indexes


def test_values_by_position_and_by_name(table):
    table.execute(table.prepare("INSERT INTO t (p, c, a, b) VALUES (?, ?, ?, ?)"), (1, "x", 2, 3))
    named = table.prepare("INSERT INTO t (p, c, a, b) VALUES (:p, :c, :both, :both)")
    table.execute(named, {"both": 7, "p": 2, "c": "y"})
    assert contents(table) == [(1, "x", 2, 3), (2, "y", 7, 7)]


def test_null_deletes_and_unset_leaves_as_it_is(table):
    insert = table.prepare("INSERT INTO t (p, c, a, b) VALUES (?, ?, ?, ?)")
    table.execute(insert, (1, "x", 2, 3))
    table.execute(insert, (1, "x", UNSET_VALUE, None))
    assert contents(table) == [(1, "x", 2, None)]
    # The driver leaves values of missing names unset.
    table.execute(table.prepare("INSERT INTO t (p, c, a, b) VALUES (:p, :c, :a, :b)"), {"p": 1, "c": "x", "b": 9})
    assert contents(table) == [(1, "x", 2, 9)]


@pytest.mark.parametrize(
    "statement, values",
    [
        ("SELECT a FROM t WHERE p = 1 AND c > ?", (UNSET_VALUE,)),
        ("SELECT a FROM t WHERE p = 1 AND c = ?", (None,)),
        ("SELECT a FROM t WHERE p IN ?", (UNSET_VALUE,)),
        ("INSERT INTO t (p, c) VALUES (?, ?)", (1, None)),
        ("INSERT INTO t (p, c) VALUES (?, ?)", (1, UNSET_VALUE)),
        ("INSERT INTO t (p, c) VALUES (?, ?)", (None, "x")),
        ("DELETE FROM t WHERE p = ? AND c = 'x'", (None,)),
    ],
)
def test_keys_need_values(table, statement, values):
    with pytest.raises(InvalidRequest):
        table.execute(table.prepare(statement), values)
    assert contents(table) == []


def test_an_unset_limit_is_no_limit(table):
    for c in "abc":
        table.execute("INSERT INTO t (p, c) VALUES (1, %s)", (c,))
    limited = table.prepare("SELECT c FROM t LIMIT ?")
    assert len(list(table.execute(limited, (2,)))) == 2
    assert len(list(table.execute(limited, (UNSET_VALUE,)))) == 3


def test_a_prepared_select_of_everything_follows_the_columns(table):
    table.execute("INSERT INTO t (p, c, a, b) VALUES (1, 'x', 2, 3)")
    select = table.prepare("SELECT * FROM t")
    assert table.execute(select).one() == (1, "x", 2, 3)
    table.execute("ALTER TABLE t ADD z int")
    table.execute("UPDATE t SET z = 4 WHERE p = 1 AND c = 'x'")
    assert table.execute(select).one()._asdict() == {"p": 1, "c": "x", "a": 2, "b": 3, "z": 4}
    table.execute("ALTER TABLE t DROP a")
    assert table.execute(select).one()._asdict() == {"p": 1, "c": "x", "b": 3, "z": 4}


def test_a_prepared_insert_outlives_changes_and_a_new_table_of_the_name(table):
    insert = table.prepare("INSERT INTO t (p, c, a) VALUES (?, ?, ?)")
    table.execute(insert, (1, "x", 1))
    table.execute("ALTER TABLE t ADD z int")
    table.execute(insert, (2, "y", 2))
    assert len(contents(table)) == 2
    table.execute("DROP TABLE t")
    with pytest.raises(InvalidRequest, match="t"):
        table.execute(insert, (3, "z", 3))
    table.execute("CREATE TABLE t (p int, c text, a int, b int, PRIMARY KEY (p, c))")
    table.execute(insert, (4, "w", 4))
    assert contents(table) == [(4, "w", 4, None)]


def test_a_dropped_column_makes_the_statement_invalid_not_wrong(table):
    insert = table.prepare("INSERT INTO t (p, c, a) VALUES (?, ?, ?)")
    table.execute("ALTER TABLE t DROP a")
    with pytest.raises(InvalidRequest, match="a"):
        table.execute(insert, (1, "x", 1))


def test_the_same_text_in_two_keyspaces_is_two_statements(server, session):
    other_cluster = connect(server)
    try:
        other = other_cluster.connect()
        keyspace = f"{session.keyspace}_other"
        other.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        other.set_keyspace(keyspace)
        text = "INSERT INTO t (k, v) VALUES (?, ?)"
        prepared = []
        for each in (session, other):
            each.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
            prepared.append(each.prepare(text))
        assert prepared[0].query_id != prepared[1].query_id
        # One that names its keyspace is one statement, whatever keyspace is in use.
        named = f"INSERT INTO {keyspace}.t (k, v) VALUES (?, ?)"
        first, second = (each.prepare(named) for each in (session, other))
        assert first.query_id == second.query_id
        for n, each in enumerate((session, other)):
            each.execute(first, (10 + n, n))
        assert {row.k for row in other.execute("SELECT k FROM t")} == {10, 11}
        other.execute("TRUNCATE t")
        for n, each in enumerate((session, other)):
            each.execute(prepared[n], (1, n))
        for n, each in enumerate((session, other)):
            assert each.execute("SELECT v FROM t").one().v == n
        other.execute(f"DROP KEYSPACE {keyspace}")
    finally:
        other_cluster.shutdown()


def test_text_statements_take_values_too(table):
    # The driver writes these values into the text itself.
    table.execute("INSERT INTO t (p, c, a) VALUES (%s, %s, %s)", (1, "it's", 5))
    table.execute("INSERT INTO t (p, c, a) VALUES (%(p)s, %(c)s, %(a)s)", {"p": 2, "c": "naïve", "a": None})
    assert contents(table) == [(1, "it's", 5, None), (2, "naïve", None, None)]
