"""Tests lists, sets and maps: changed in part, replaced, emptied, frozen."""

import pytest
from cassandra import InvalidRequest
from cassandra.query import UNSET_VALUE


@pytest.fixture
def table(session):
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, "
        "f frozen<list<int>>, deep map<text, frozen<set<int>>>)"
    )
    return session


def value(session, column):
    row = session.execute(f"SELECT {column} FROM t WHERE k = 1").one()
    found = row and row[0]
    if found is None:
        return None
    return {"l": list, "f": list, "s": set, "m": dict, "deep": dict}[column](found)


@pytest.mark.parametrize(
    "column, steps",
    [
        (
            "l",
            [
                ("l = [1, 2]", [1, 2]),
                ("l = l + [3, 4]", [1, 2, 3, 4]),
                ("l = [-1, 0] + l", [-1, 0, 1, 2, 3, 4]),
                ("l[1] = 7", [-1, 7, 1, 2, 3, 4]),
                ("l = l - [7, 3, 99]", [-1, 1, 2, 4]),
                ("l = l + [1]", [-1, 1, 2, 4, 1]),
                ("l = l - [1]", [-1, 2, 4]),
                ("l[0] = null", [2, 4]),
                ("l = []", None),
                ("l = l + [5]", [5]),
                ("l = [9, 9]", [9, 9]),
                ("l = null", None),
            ],
        ),
        (
            "s",
            [
                ("s = s + {'b', 'a'}", {"a", "b"}),
                ("s = s + {'a', 'c'}", {"a", "b", "c"}),
                ("s = s - {'b', 'zz'}", {"a", "c"}),
                ("s = {'x'}", {"x"}),
                ("s = {}", None),
                ("s = s - {'x'}", None),
            ],
        ),
        (
            "m",
            [
                ("m = {'a': 1, 'b': 2}", {"a": 1, "b": 2}),
                ("m['b'] = 3", {"a": 1, "b": 3}),
                ("m['c'] = 4", {"a": 1, "b": 3, "c": 4}),
                ("m = m + {'a': 9, 'd': 5}", {"a": 9, "b": 3, "c": 4, "d": 5}),
                ("m = m - {'a', 'b'}", {"c": 4, "d": 5}),
                ("m['c'] = null", {"d": 5}),
                ("m = {'e': 6}", {"e": 6}),
                ("m = null", None),
            ],
        ),
        ("f", [("f = [2, 1]", [2, 1]), ("f = []", []), ("f = null", None)]),
        ("deep", [("deep['x'] = {2, 1}", {"x": {1, 2}}), ("deep = deep + {'y': {}}", {"x": {1, 2}, "y": set()})]),
    ],
)
def test_changes_in_turn(table, column, steps):
    for change, expected in steps:
        table.execute(f"UPDATE t SET {change} WHERE k = 1")
        found = value(table, column)
        if column == "deep" and found:
            found = {key: set(inner) for key, inner in found.items()}
        assert found == expected, change


def test_delete_takes_elements(table):
    table.execute("INSERT INTO t (k, l, m, s) VALUES (1, [10, 11, 12], {'a': 1, 'b': 2}, {'x', 'y'})")
    table.execute("DELETE l[1], m['a'], s['x'] FROM t WHERE k = 1")
    assert (value(table, "l"), value(table, "m"), value(table, "s")) == ([10, 12], {"b": 2}, {"y"})


def test_bound_values(table):
    table.execute(table.prepare("INSERT INTO t (k, l, s, m, f) VALUES (1, ?, ?, ?, ?)"), ([1], {"a"}, {"k": 1}, [5]))
    table.execute(table.prepare("UPDATE t SET l = l + ?, s = s + ?, m[?] = ? WHERE k = 1"), ([2], {"b"}, "z", 26))
    assert (value(table, "l"), value(table, "s"), value(table, "m")) == ([1, 2], {"a", "b"}, {"k": 1, "z": 26})
    table.execute(table.prepare("UPDATE t SET l[?] = ?, m = m - ? WHERE k = 1"), (0, 100, {"k"}))
    assert (value(table, "l"), value(table, "m")) == ([100, 2], {"z": 26})
    table.execute(table.prepare("UPDATE t SET l = ?, f = ? WHERE k = 1"), (UNSET_VALUE, UNSET_VALUE))
    assert (value(table, "l"), value(table, "f")) == ([100, 2], [5])


def test_timestamps_count_for_each_element(table):
    table.execute("UPDATE t USING TIMESTAMP 20 SET m['a'] = 1 WHERE k = 1")
    table.execute("UPDATE t USING TIMESTAMP 10 SET m['a'] = 2, m['b'] = 2 WHERE k = 1")
    assert value(table, "m") == {"a": 1, "b": 2}
    # Replacing the whole map deletes older elements, and keeps newer ones.
    table.execute("UPDATE t USING TIMESTAMP 15 SET m = {'c': 3} WHERE k = 1")
    assert value(table, "m") == {"a": 1, "c": 3}
    table.execute("DELETE m FROM t USING TIMESTAMP 30 WHERE k = 1")
    assert value(table, "m") is None


def test_a_row_lives_by_its_elements(table):
    table.execute("UPDATE t SET s = s + {'a'} WHERE k = 1")
    assert len(list(table.execute("SELECT k FROM t"))) == 1
    table.execute("UPDATE t SET s = s - {'a'} WHERE k = 1")
    assert len(list(table.execute("SELECT k FROM t"))) == 0


def test_contains_finds_by_element(table):
    table.execute("INSERT INTO t (k, l, s, m) VALUES (1, [1, 2], {'a'}, {'x': 7})")
    table.execute("INSERT INTO t (k, l, s, m) VALUES (2, [3], {'b'}, {'y': 8})")
    for condition in ["l CONTAINS 3", "s CONTAINS 'b'", "m CONTAINS 8", "m CONTAINS KEY 'y'", "m['y'] = 8"]:
        assert [row.k for row in table.execute(f"SELECT k FROM t WHERE {condition} ALLOW FILTERING")] == [2], condition


def test_frozen_collections_as_keys(session):
    session.execute("CREATE TABLE keyed (p frozen<set<int>>, c frozen<list<int>>, v int, PRIMARY KEY (p, c))")
    insert = session.prepare("INSERT INTO keyed (p, c, v) VALUES (?, ?, ?)")
    for v, c in enumerate([[2], [1, 9], [], [1]]):
        session.execute(insert, ({3, 1, 2}, c, v))
    rows = session.execute("SELECT c FROM keyed WHERE p = {2, 3, 1}")
    assert [list(row.c) for row in rows] == [[], [1], [1, 9], [2]]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET l[5] = 1 WHERE k = 1",
        "UPDATE t SET l[-1] = 1 WHERE k = 1",
        "DELETE l[2] FROM t WHERE k = 1",
        "UPDATE t SET f = f + [1] WHERE k = 1",
        "UPDATE t SET f[0] = 1 WHERE k = 1",
        "UPDATE t SET l = l + {1} WHERE k = 1",
        "UPDATE t SET l = l + ['x'] WHERE k = 1",
        "UPDATE t SET s = s + ['x'] WHERE k = 1",
        "UPDATE t SET m = m + {'x'} WHERE k = 1",
        "UPDATE t SET m = m - {'x': 1} WHERE k = 1",
        "UPDATE t SET s['x'] = 1 WHERE k = 1",
        "UPDATE t SET l = [1, null] WHERE k = 1",
        "INSERT INTO t (k, m) VALUES (1, {null: 1})",
        "UPDATE t SET k = k + [1] WHERE k = 1",
        "SELECT k FROM t WHERE l = [1] ALLOW FILTERING",
        "CREATE TABLE bad (k int PRIMARY KEY, l list<list<int>>)",
        "CREATE TABLE bad (k list<int> PRIMARY KEY)",
    ],
)
def test_what_does_not_fit_is_refused(table, statement):
    table.execute("INSERT INTO t (k, l) VALUES (1, [1, 2])")
    with pytest.raises(InvalidRequest):
        table.execute(statement)
    assert value(table, "l") == [1, 2]
