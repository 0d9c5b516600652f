"""Tests that a filter which can't be served is refused, in words that name the thing and the
remedy."""

import json

import pytest
from cassandra import InvalidRequest
from server import eventually

BODY_BYTES_MAX, VALUES_MAX = 2 << 20, 100_000


@pytest.fixture(scope="module")
def table(server, session):
    session.execute("CREATE KEYSPACE misuse WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(
        "CREATE TABLE misuse.t (p int, q text, c int, f int, u text, i inet, s set<int>, m map<text, int>, du duration, "
        "v vector<float, 2>, w vector<float, 2>, ints vector<int, 2>, texts vector<text, 2>, PRIMARY KEY ((p, q), c))"
    )
    session.execute("CREATE CUSTOM INDEX global ON misuse.t (v, f, i, s, m) USING 'vector_index'")
    session.execute("CREATE CUSTOM INDEX local ON misuse.t ((p), w, f) USING 'vector_index'")
    session.execute("INSERT INTO misuse.t (p, q, c, f, u, v, w) VALUES (1, 'a', 1, 1, 'x', [1, 0], [1, 0])")
    eventually(lambda: all(server.index_status("misuse", name)["count"] == 1 for name in ("global", "local")))
    return session


@pytest.mark.parametrize(
    "where, words",
    [
        ("nothing = 1", ["nothing", "misuse.t"]),
        ("u = 'x'", ["Column u ", "declare it as a filter column of the index", "ALLOW FILTERING"]),
        ("f = 1 AND u = 'x'", ["Column u "]),
        ("du = 1s", ["Column du ", "ALLOW FILTERING"]),
        ("v = [1, 2]", ["Vector indexes only support ANN queries"]),
        # Errors name both types.
        ("f = 'text'", ["STRING", "int"]),
        ("f = 1.5", ["FLOAT", "int"]),
        ("i = 5", ["INTEGER", "inet"]),
        ("q < 5", ["INTEGER", "text"]),
        ("f IN (1, 'x')", ["STRING", "int"]),
        ("s CONTAINS 'x'", ["STRING", "int"]),
        ("m CONTAINS KEY 5", ["INTEGER", "text"]),
        ("m['a'] = 'x'", ["STRING", "int"]),
        ("m[1] = 1", ["INTEGER", "text"]),
        ("(c) > ('x')", ["STRING", "int"]),
        # Relations that the column's type doesn't have.
        ("f CONTAINS 1", ["f", "CONTAINS"]),
        ("s CONTAINS KEY 1", ["s", "CONTAINS KEY"]),
        ("s = {1}", ["s"]),
        ("f['a'] = 1", ["f"]),
        ("q LIKE 'x'", ["LIKE"]),
        ("(c, f) = (1, 2)", ["f"]),
        ("(c) = (1, 2)", ["1|2"]),
        ("token(p) > 1", ["token"]),
        ("f = null", ["null", "f"]),
    ],
)
def test_a_statement_is_refused(table, where, words):
    with pytest.raises(Exception) as error:
        table.execute(f"SELECT p FROM misuse.t WHERE {where} ORDER BY v ANN OF [1, 0] LIMIT 3")
    text = str(error.value)
    assert "Invalid" in type(error.value).__name__ or "Syntax" in type(error.value).__name__, text
    missing = [word for word in words if not any(one in text for one in word.split("|"))]
    assert not missing, text


@pytest.mark.parametrize(
    "where, words",
    [
        ("du < 1s", ["Slice restrictions are not supported on duration columns"]),
        ("v = [1, 2]", ["Vector indexes only support ANN queries"]),
        ("nothing = 1", ["nothing"]),
    ],
)
def test_permission_to_filter_helps_no_misuse(table, where, words):
    with pytest.raises(InvalidRequest) as error:
        table.execute(f"SELECT p FROM misuse.t WHERE {where} ORDER BY v ANN OF [1, 0] LIMIT 3 ALLOW FILTERING")
    assert all(word in str(error.value) for word in words), error.value


def test_an_index_with_a_key_is_searched_by_it_alone(table):
    query = "SELECT c FROM misuse.t WHERE {} ORDER BY w ANN OF [1, 0] LIMIT 3"
    assert [row.c for row in table.execute(query.format("p = 1"))] == [1]
    for where in ("q = 'a'", "p > 0", "f = 1"):
        with pytest.raises(InvalidRequest, match="Global ANN query is not supported when only a local vector index is available"):
            table.execute(query.format(where))


def ann(server, index, restrictions, allow_filtering=True):
    body = {"vector": [1, 0], "limit": 3, "filter": {"restrictions": restrictions, "allow_filtering": allow_filtering}}
    return server.http(f"/api/v1/indexes/misuse/{index}/ann", body)


def restriction(type, lhs, rhs, **more):
    return {"type": type, "lhs": lhs, "rhs": rhs, **more}


@pytest.mark.parametrize(
    "index, restrictions, words",
    [
        ("global", [restriction("==", "u", "x")], ["column u ", "primary key or filtering columns"]),
        ("global", [restriction("==", "nothing", 1)], ["column nothing ", "primary key or filtering columns"]),
        # Errors name the type of the column and the value.
        ("global", [restriction("==", "f", "text")], ["f", "int", '"text"']),
        ("global", [restriction("==", "f", 1.5)], ["f", "int", "1.5"]),
        ("global", [restriction("==", "f", 2**31)], ["f", "int", str(2**31)]),
        ("global", [restriction("==", "f", None)], ["f", "int", "null"]),
        ("global", [restriction("IN", "f", [1, None])], ["f", "int", "null"]),
        ("global", [restriction("<", "i", 5)], ["i", "inet", "5"]),
        ("global", [restriction("==", "q", [1])], ["q", "text", "[1]"]),
        ("global", [restriction("CONTAINS", "s", "x")], ["s", "set<int>", '"x"']),
        ("global", [restriction("CONTAINS", "f", 1)], ["f", "int", "no elements"]),
        ("global", [restriction("CONTAINS KEY", "s", 1)], ["s", "set<int>", "no keys"]),
        ("global", [restriction("[]==", "s", 1, key=1)], ["s", "set<int>", "no entries"]),
        ("global", [restriction("[]==", "m", "x", key="a")], ["m", "map<text, int>", '"x"']),
        ("global", [restriction("()==()", ["c", "f"], [1])], ["2", "1"]),
        ("global", [restriction("()IN()", ["c", "f"], [[1, 2], [1, 2, 3]])], ["2", "3"]),
        ("global", [restriction("TOKEN>", ["p"], 1)], ["token", "partition key"]),
        ("global", [restriction("TOKEN>", ["c"], 1)], ["token", "partition key"]),
        ("local", [], ["Global ANN query is not supported when only a local vector index is available"]),
        ("local", [restriction(">", "p", 1)], ["Global ANN query is not supported when only a local vector index is available"]),
        ("local", [restriction("==", "p", 1), restriction("==", "u", "x")], ["u"]),
    ],
)
def test_a_request_is_refused(server, table, index, restrictions, words):
    status, text = ann(server, index, restrictions)
    assert status == 400, text
    missing = [word for word in words if word not in text]
    assert not missing, text


def test_permission_is_needed_for_all_but_the_key_of_a_local_index(server, table):
    by_key, by_column = restriction("==", "p", 1), restriction("==", "f", 1)
    for index, restrictions, status in [
        ("global", [by_key], 400),
        ("global", [by_column], 400),
        ("local", [by_key], 200),
        ("local", [restriction("IN", "p", [1, 2])], 200),
        ("local", [by_key, by_column], 400),
    ]:
        found, text = ann(server, index, restrictions, allow_filtering=False)
        assert found == status, text
        assert status == 200 or "requires ALLOW FILTERING" in text
        assert ann(server, index, restrictions)[0] == 200


def test_an_unknown_key_finds_nothing(server, table):
    for index in ("global", "local"):
        status, text = ann(server, index, [restriction("==", "p", 12345)])
        assert status == 200 and json.loads(text)["primary_keys"] == {"p": [], "q": [], "c": []}


def test_a_list_has_so_many_values_at_most_and_a_body_so_many_bytes(server, table):
    values = [1, *range(1_000_001, 1_000_000 + VALUES_MAX)]
    status, text = ann(server, "global", [restriction("IN", "f", values)])
    assert status == 200 and json.loads(text)["primary_keys"]["c"] == [1], text[:200]
    status, text = ann(server, "global", [restriction("IN", "f", [*values, 2])])
    assert status == 400 and f"more than {VALUES_MAX} values" in text and "--filter-values" in text
    longer = values * (BODY_BYTES_MAX // len(json.dumps(values)) + 1)
    status, _ = ann(server, "global", [restriction("IN", "f", longer)])
    assert status == 413


@pytest.mark.parametrize("column, value", [("ints", [1, 2]), ("texts", ["a", "b"])])
def test_vectors_of_other_elements_are_stored_and_not_indexed(table, column, value):
    table.execute(f"UPDATE misuse.t SET {column} = %s WHERE p = 5 AND q = 'b' AND c = 1", (value,))
    (row,) = table.execute(f"SELECT {column} FROM misuse.t WHERE p = 5 AND q = 'b' AND c = 1")
    assert list(row[0]) == value
    with pytest.raises(InvalidRequest, match="Vector indexes are only supported on columns of vectors of floats"):
        table.execute(f"CREATE CUSTOM INDEX ON misuse.t ({column}) USING 'vector_index'")


@pytest.mark.parametrize(
    "target, text",
    [
        ("v, du", "Unsupported vector index filtering column"),
        ("v, w", "Unsupported vector index filtering column"),
        ("v, nothing", "nothing"),
        ("v, f, f", "Duplicate column f in index target list"),
        ("v, v", "Duplicate column v"),
        ("(p, p), v", "Duplicate column definition in local vector index"),
        ("(du), v", "Unsupported vector index filtering column"),
        ("(s), v", "Unsupported vector index filtering column"),
    ],
)
def test_columns_that_no_index_keeps(table, target, text):
    with pytest.raises(InvalidRequest, match=text):
        table.execute(f"CREATE CUSTOM INDEX ON misuse.t ({target}) USING 'vector_index'")
