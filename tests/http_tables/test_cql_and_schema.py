"""Tests statements, the schema and definitions over HTTP, and what is refused before any of them."""

import concurrent.futures
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from conftest import GUARD, REPLICATION, Api


@pytest.fixture(scope="module")
def keyspace(session):
    session.execute(f"CREATE KEYSPACE cql_of_http WITH replication = {REPLICATION}")
    session.execute("CREATE TABLE cql_of_http.t (k int, c int, v text, PRIMARY KEY (k, c))")
    for c in range(10):
        session.execute("INSERT INTO cql_of_http.t (k, c, v) VALUES (1, %s, %s)", (c, f"v{c}"))
    yield "cql_of_http"
    session.execute("DROP KEYSPACE cql_of_http")


def test_a_statement_has_its_columns_rows_and_pages(api, keyspace):
    query = "SELECT c, v AS name FROM t WHERE k = ? AND c > ?"
    answer = api.cql(query, [1, 2], keyspace=keyspace, page_size=4)
    assert answer["columns"] == [{"name": "c", "type": "int"}, {"name": "name", "type": "text"}]
    rows = answer["rows"]
    while "page_state" in answer:
        answer = api.cql(query, [1, 2], keyspace=keyspace, page_size=4, page_state=answer["page_state"])
        rows += answer["rows"]
    assert rows == [{"c": c, "name": f"v{c}"} for c in range(3, 10)]
    named = api.cql(f"SELECT v FROM {keyspace}.t WHERE k = :k AND c = :c", {"c": 3, "k": 1})
    assert named["rows"] == [{"v": "v3"}]
    assert api.cql(f"SELECT count(*) FROM {keyspace}.t")["rows"] == [{"count": 10}]
    assert api.cql(f"INSERT INTO {keyspace}.t (k, c, v) VALUES (2, 1, 'x')")["rows"] == []


def test_mistakes_have_a_reason_and_a_hint(api, keyspace):
    for body, words in [
        ({"query": "SELEC 1"}, "line 1"),
        ({"query": "SELECT * FROM nowhere.t"}, "nowhere"),
        ({"query": f"SELECT * FROM {keyspace}.t WHERE k = ?", "parameters": []}, "0 values"),
        ({"query": f"SELECT * FROM {keyspace}.t WHERE k = ?", "parameters": ["x"]}, "parameter 1"),
        ({"query": f"SELECT * FROM {keyspace}.t WHERE k = :k", "parameters": {"j": 1}}, ":j"),
        ({"query": f"USE {keyspace}"}, "USE has no effect"),
        ({"statement": "x"}, "statement"),
        ({"query": f"SELECT * FROM {keyspace}.t", "page_state": "?"}, "page_state"),
    ]:
        assert words in api.refused(400, "POST", "/cql", body), body


def test_a_schema_change_between_two_requests_is_taken_up(api, session, keyspace):
    api.cql(f"CREATE TABLE {keyspace}.changed (k int PRIMARY KEY, v int)")
    query = f"SELECT * FROM {keyspace}.changed WHERE k = ?"
    for value in ("int", "text"):
        assert api.cql(query, [1])["columns"][1]["type"] == value
        session.execute(f"DROP TABLE {keyspace}.changed")
        session.execute(f"CREATE TABLE {keyspace}.changed (k int PRIMARY KEY, v text)")


def test_a_request_without_the_header_or_from_elsewhere_changes_nothing(api, session, keyspace):
    rows = f"/tables/{keyspace}/t/rows"
    body = {"rows": [{"k": 3, "c": 1}]}
    for method, path, sent in [
        ("PUT", rows, body),
        ("DELETE", f"{rows}?k=1&c=1", None),
        ("POST", "/cql", {"query": "SELECT * FROM system.local"}),
        ("POST", "/batch", {"operations": []}),
        ("PUT", f"/tables/{keyspace}/u", {}),
        ("DELETE", f"/keyspaces/{keyspace}", None),
    ]:
        for headers in ({}, {"X-Requested-With": "XMLHttpRequest"}):
            status, _, answer = api.raw(method, path, sent, headers)
            assert status == 403 and "X-Requested-With" in answer["error"], (method, path)
    assert api.raw("GET", f"{rows}?k=1&c=1", headers={})[0] == 200
    headers = {**GUARD, "Origin": "http://evil.example"}
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(api.base + rows, data=json.dumps(body).encode(), headers=headers, method="PUT"), timeout=30)
    assert refused.value.code == 403
    assert session.execute(f"SELECT * FROM {keyspace}.t WHERE k = 3").one() is None


def test_tables_and_indexes_are_made_shown_and_dropped(api, session, keyspace):
    table = f"/tables/{keyspace}/Made"
    columns = [("User", "text"), ("day", "date"), ("v", "vector<float, 2>"), ("tags", "set<text>"), ("s", "int")]
    given = {
        "columns": [{"name": name, "type": cql_type, "static": name == "s"} for name, cql_type in columns],
        "key": {"partition": ["User"], "clustering": [{"column": "day", "order": "desc"}]},
        "options": {"comment": "it's", "default_time_to_live": 600},
    }
    assert api.ok("PUT", table, given) == {"done": True}
    api.refused(409, "PUT", table, given)
    assert api.ok("PUT", table, {**given, "if_not_exists": True})["done"]
    options = {"similarity_function": "euclidean"}
    near = {"column": "v", "kind": "vector", "filter_columns": ["day"], "options": options}
    api.ok("PUT", f"{table}/indexes/Near", near)
    api.ok("PUT", f"{table}/indexes/by_tag", {"column": "tags", "kind": "secondary"})
    shown = api.ok("GET", table)
    assert shown["key"] == {"partition": ["User"], "clustering": ["day"]}
    assert {"name": "tags", "type": "set<text>", "kind": "regular"} in shown["columns"]
    assert {index["name"] for index in shown["indexes"]} == {"Near", "by_tag"}
    assert api.ok("GET", f"/schema?keyspace={keyspace}")["keyspaces"][keyspace]["tables"]["Made"] == shown
    everything = api.ok("GET", "/schema")["keyspaces"]
    assert keyspace in everything and "system" not in everything
    made = session.execute(
        "SELECT comment, default_time_to_live FROM system_schema.tables WHERE keyspace_name = %s AND table_name = 'Made'",
        [keyspace],
    ).one()
    assert made == ("it's", 600)
    for path in (f"{table}/indexes/Near", table):
        assert api.ok("DELETE", path) == {"done": True}
        assert api.ok("DELETE", path + "?if_exists=true") == {"done": True}
        api.refused(400, "DELETE", path)
    api.refused(404, "GET", table)
    for wrong, words in [
        ({"columns": [{"name": "k", "type": "int) --"}], "key": ["k"]}, "no type"),
        ({"columns": [{"name": "k", "type": "int"}], "key": ["j"]}, "j"),
        ({"columns": [{"name": "k", "type": "int"}], "key": ["k"], "options": {"a b": 1}}, "no name of an option"),
    ]:
        assert words in api.refused(400, "PUT", f"/tables/{keyspace}/wrong", wrong)


def test_a_request_ends_in_its_time(api, keyspace):
    headers = {**GUARD, "X-Request-Timeout-Ms": "1"}
    query = {"query": f"SELECT * FROM {keyspace}.t"}
    status, _, answer = api.raw("POST", "/cql", query, headers)
    assert status == 200 or status == 504 and "1 ms" in answer["error"]
    assert api.raw("POST", "/cql", query, {**GUARD, "X-Request-Timeout-Ms": "soon"})[0] == 400


def test_a_request_can_be_traced(api, session, keyspace):
    status, headers, _ = api.raw("GET", f"/tables/{keyspace}/t/rows?k=1", headers={"X-Annulus-Trace": "1"})
    ids = headers["X-Annulus-Trace"].split()
    assert status == 200 and ids
    text = "SELECT request FROM system_traces.sessions WHERE session_id = " + ids[-1]
    assert "prepared" in session.execute(text).one().request


def test_the_page_and_the_description_come_from_the_server_itself(api, server):
    status, page = server.http("/docs")
    assert status == 200 and "://" not in page
    for part in ("/docs/page.js", "/docs/page.css"):
        status, text = server.http(part)
        assert status == 200 and "://" not in text and part in page
    _, text = server.http("/api-docs/openapi.json")
    paths = json.loads(text)["paths"]
    assert {"/api/v1/cql", "/api/v1/indexes/{keyspace}/{index}/ann", "/api/v1/schema"} <= set(paths)


def test_logins_and_rights_are_those_of_cql(guarded, chief):
    chief.execute(f"CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {REPLICATION}")
    chief.execute("CREATE TABLE IF NOT EXISTS ks.t (id int PRIMARY KEY, v text)")
    for role in ("reader", "writer", "stranger"):
        chief.execute(f"CREATE ROLE {role} WITH PASSWORD = 'pw-{role}' AND LOGIN = true")
    chief.execute("GRANT SELECT ON ks.t TO reader")
    chief.execute("GRANT MODIFY ON ks.t TO writer")
    rows = "/tables/ks/t/rows"
    row = {"rows": [{"id": 1, "v": "secret"}]}
    status, headers, answer = Api(guarded).raw("GET", f"{rows}?id=1", headers={})
    assert status == 401 and headers["WWW-Authenticate"].startswith("Basic") and set(answer) == {"error", "hint"}
    assert Api(guarded, ("reader", "wrong")).raw("GET", f"{rows}?id=1")[0] == 401
    apis = {role: Api(guarded, (role, f"pw-{role}")) for role in ("reader", "writer", "stranger")}
    assert apis["writer"].ok("PUT", rows, row) == {"written": 1}
    assert apis["reader"].ok("GET", f"{rows}?id=1")["rows"] == [{"id": 1, "v": "secret"}]
    for role, method, path, body in [
        ("reader", "PUT", rows, row),
        ("reader", "DELETE", f"{rows}?id=1", None),
        ("writer", "GET", f"{rows}?id=1", None),
        ("stranger", "GET", f"{rows}?id=1", None),
        ("stranger", "POST", "/cql", {"query": "SELECT * FROM ks.t"}),
        ("writer", "DELETE", "/tables/ks/t", None),
        ("writer", "PUT", "/keyspaces/other", {}),
    ]:
        assert role in apis[role].refused(403, method, path, body)
    assert apis["stranger"].ok("GET", "/schema")["keyspaces"]["ks"]["tables"]["t"]["key"]["partition"] == ["id"]
    lines = [json.loads(line) for line in guarded.audit_file.read_text().splitlines()]
    of = lambda role, kind: [line for line in lines if line.get("role") == role and line["type"] == kind]  # noqa: E731
    assert of("writer", "UPDATE") and of("reader", "SELECT") and of("stranger", "UNAUTHORIZED_ATTEMPT")
    assert not any("secret" in (line.get("statement") or "") for line in lines)


def test_many_requests_at_once_are_all_answered(api, keyspace):
    def one(at):
        return api.cql(f"SELECT v FROM {keyspace}.t WHERE k = ? AND c = ?", [1, at % 10])["rows"]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(200)))
    assert answers == [[{"v": f"v{at % 10}"}] for at in range(200)]
