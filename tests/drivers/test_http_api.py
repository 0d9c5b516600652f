"""Tests that the HTTP API of the index service answers like ScyllaDB's on the wire."""

import decimal
import http.client
import json
import re
import select
import uuid

import pytest
from conftest import connect
from server import Server, eventually

pytestmark = pytest.mark.embedded("the HTTP API of one process with its database")

EXACT = [[1, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]]
QUERY = [1.0, 0, 0, 0, 0, 0, 0, 0]
NAMES = ("keyspace", "ann", "text")


@pytest.fixture(scope="module")
def index(server, shared_session):
    """The path of an index of dimension 8 with cosine, over rows 0 to 499."""
    session = shared_session
    session.execute("CREATE TABLE vector (id int PRIMARY KEY, name text, v vector<float, 8>)")
    session.execute("CREATE CUSTOM INDEX ann ON vector (v) USING 'vector_index'")
    insert = session.prepare("INSERT INTO vector (id, v) VALUES (?, ?)")
    for id in range(500):
        session.execute(insert, (id, EXACT[id] if id < 3 else [-1 - id] + [(id * i) % 7 for i in range(1, 8)]))
    server.wait_for_index(session.keyspace, "ann", 500)
    return f"/api/v1/indexes/{session.keyspace}/ann"


def raw(server, method, path, body=None, headers=None):
    """Sends any request. Returns (status, headers, text)."""
    connection = http.client.HTTPConnection(server.host, server.http_port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


JSON = {"Content-Type": "application/json"}


def ann(server, index, body, headers=JSON):
    """Searches an index. A `body` that is a string is sent as it is."""
    return raw(server, "POST", f"{index}/ann", body if isinstance(body, str) else json.dumps(body), headers)


def test_status(server):
    status, headers, text = raw(server, "GET", "/api/v1/status")
    assert (status, text) == (200, '"SERVING"') and headers["Content-Type"] == "application/json"
    status, _, text = raw(server, "HEAD", "/api/v1/status")
    assert (status, text) == (200, "")


def test_info(server):
    status, _, text = raw(server, "GET", "/api/v1/info")
    answer = json.loads(text)
    assert status == 200 and set(answer) == {"service", "version", "engine"}
    assert all(isinstance(value, str) and value for value in answer.values())


def test_indexes(server, index):
    _, _, text = raw(server, "GET", "/api/v1/indexes")
    keyspace = index.split("/")[-2]
    (mine,) = [each for each in json.loads(text) if each["keyspace"] == keyspace]
    alone = json.loads(raw(server, "GET", index)[2])
    for each in (mine, alone):
        # These may change from one answer to the next.
        assert each.pop("lag_seconds") >= 0 and each.pop("changes_waiting", 1) > 0 and each.pop("tending", True)
        assert sum(each.pop("memory").values()) > 500 * 8 * 4
        assert each.pop("dead_entries", 1) > 0 and each.pop("maintenance_debt", 1) > 0
    assert list(mine) == list(alone)
    assert mine == alone == {
        "keyspace": keyspace,
        "index": "ann",
        "status": "SERVING", "count": 500, "build_progress": 100.0, "version": mine["version"],
        "options": {
            "type": "vector", "dimensions": 8, "maximum_node_connections": 16, "construction_beam_width": 128,
            "search_beam_width": 64, "similarity_function": "COSINE", "quantization": "F32",
        },
    }  # fmt: skip


def test_index_status(server, index):
    status, headers, text = raw(server, "GET", f"{index}/status")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    # As ScyllaDB's service tells it, how far it is behind, and which index of the name it is.
    told = re.fullmatch(
        r'{"status":"SERVING","count":500,"build_progress":100.0,(?:"changes_waiting":[1-9]\d*,)?"lag_seconds":[\d.]+,'
        r'(?:"tending":true,)?"version":"([0-9a-f-]{36})","memory":{[^}]*}'
        r'(?:,"dead_entries":[1-9]\d*)?(?:,"maintenance_debt":[1-9]\d*)?}',
        text,
    )
    assert uuid.UUID(told[1]).version == 1


def test_recall_is_measured_by_a_scan(server, index):
    status, _, text = raw(server, "POST", f"{index}/recall", '{"queries": 50}', JSON)
    answer = json.loads(text)
    assert status == 200 and list(answer) == ["recall", "low", "high", "self_recall", "queries"]
    assert answer["queries"] == 50 and answer["self_recall"] == 1.0
    assert 0.9 < answer["low"] < answer["recall"] <= answer["high"] <= 1.0
    status, _, text = raw(server, "POST", f"{index}/recall", '{"queries": 10001}', JSON)
    assert (status, text) == (400, "queries is 10001, and may be 1 to 10000")


def test_a_map_shows_a_sample_with_its_keys(server, index):
    status, _, text = raw(server, "GET", f"{index}/map")
    assert (status, text) == (404, f"index {index.split('/')[-2]}.ann has no map: POST to this path makes one")
    status, _, text = raw(server, "POST", f"{index}/map", '{"points": 500}', JSON)
    begun = json.loads(text)
    assert status == 200 and begun["ready"] is False and begun["task"]["kind"] == "map"
    path = f"/api/v1/tasks/{begun['task']['id']}/wait?timeout=60"
    assert json.loads(raw(server, "GET", path)[2])["state"] == "done"
    status, headers, text = raw(server, "GET", f"{index}/map")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    shown = json.loads(text)
    assert shown["points"] == shown["rows"] == len(shown["x"]) == len(shown["y"]) == 500
    assert sorted(shown["primary_keys"]["id"]) == list(range(500)) and shown["column_values"] == {}
    assert 0 < shown["neighbours_kept"] <= 1 and 0 < shown["neighbours_kept_by_pca"] <= 1
    status, _, text = raw(server, "POST", f"{index}/map", '{"points": 499}', JSON)
    assert (status, text) == (400, "points is 499, and may be 500 to 20000")


def test_an_answer_has_a_column_for_each_key_and_two_scores(server, index):
    status, headers, text = ann(server, index, {"vector": QUERY, "limit": 3})
    assert (status, headers["Content-Type"]) == (200, "application/json")
    answer = json.loads(text)
    assert list(answer) == ["primary_keys", "distances", "similarity_scores"]
    assert answer["primary_keys"] == {"id": [0, 2, 1]}
    for found, expected in zip(answer["distances"], [0, 1 - 0.5**0.5, 1]):
        assert abs(found - expected) < 1e-6
    for distance, score in zip(answer["distances"], answer["similarity_scores"]):
        assert abs(score - (2 - distance) / 2) < 1e-6
    # Floats are written as short as possible.
    assert all(len(str(score)) <= 12 for score in answer["similarity_scores"])


@pytest.mark.parametrize(
    "body, headers",
    [
        ({"vector": QUERY}, JSON),
        ({"vector": QUERY, "filter": None}, JSON),
        ({"vector": QUERY}, {"Content-Type": "application/json; charset=utf-8"}),
        ({"vector": QUERY, "filter": {"restrictions": [], "allow_filtering": True}}, JSON),
        ({"vector": QUERY, "filter": {"restrictions": []}}, JSON),
    ],
)
def test_the_limit_is_one_unless_given_and_much_is_tolerated(server, index, body, headers):
    status, _, text = ann(server, index, body, headers)
    assert status == 200 and json.loads(text)["primary_keys"] == {"id": [0]}


def test_an_unknown_key_is_refused_by_name_at_any_depth(server, index):
    status, _, text = ann(server, index, {"vector": QUERY, "filtr": {"extra": "field"}})
    assert status == 400 and "filtr" in text and "filter" in text
    restriction = {"type": "==", "lhs": "id", "rsh": 1}
    status, _, text = ann(server, index, {"vector": QUERY, "filter": {"restrictions": [restriction]}})
    assert status == 400 and "rsh" in text and "rhs" in text


def test_an_exact_search_says_so(server, index):
    search = {"vector": QUERY, "limit": 3}
    _, headers, text = ann(server, index, search | {"exact": False})
    assert "x-annulus-exact" not in headers
    status, headers, exact = ann(server, index, search | {"exact": True})
    assert (status, headers["x-annulus-exact"]) == (200, "true")
    assert exact == text
    told = json.loads(ann(server, index, search | {"exact": True, "debug": True})[2])["debug"]
    assert told["plan"] == "exact"


def test_a_limit_beyond_the_count_gets_every_row_once(server, index):
    status, _, text = ann(server, index, {"vector": QUERY, "limit": 100_000})
    answer = json.loads(text)
    assert status == 200 and sorted(answer["primary_keys"]["id"]) == list(range(500))
    assert answer["distances"] == sorted(answer["distances"]) and len(answer["similarity_scores"]) == 500


@pytest.mark.parametrize(
    "body, field",
    [
        ({"vector": QUERY, "exact": "true"}, "boolean"),
        ({"vector": QUERY, "limit": 0}, "limit"),
        ({"vector": QUERY, "limit": -1}, "limit"),
        ({"vector": QUERY, "limit": 1.5}, "limit"),
        ({"vector": QUERY, "limit": "1"}, "limit"),
        ({"limit": 1}, "vector"),
        ({"vector": None}, "vector"),
        ({"vector": "text"}, "vector"),
        ({"vector": [1, "2", 3]}, "vector"),
        ({"vector": [1, None, 3]}, "vector"),
        ({"vector": QUERY, "filter": {"restrictions": [{"type": "~", "lhs": "id", "rhs": 1}]}}, "filter"),
        ('"text"', ""),
        ("null", ""),
    ],
)
def test_a_body_of_a_wrong_shape_is_422_and_says_where(server, index, body, field):
    status, headers, text = ann(server, index, body)
    assert status == 422 and headers["Content-Type"].startswith("text/plain")
    assert field in text and "line 1 column" in text


@pytest.mark.parametrize("body", ['{"vector": [1,', "", "{'vector': []}", "\x00"])
def test_broken_json_is_400(server, index, body):
    status, headers, text = ann(server, index, body)
    assert status == 400 and headers["Content-Type"].startswith("text/plain") and text


@pytest.mark.parametrize("vector", [[1, 2], [], QUERY + [1.0]])
def test_a_wrong_length_is_400_with_both_lengths(server, index, vector):
    status, headers, text = ann(server, index, {"vector": vector})
    assert (status, text) == (400, f"Wrong embedding dimension: expected 8, got {len(vector)}")
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("element", ["1e300", "-1e300", "1e39"])
def test_an_element_that_is_infinite_as_a_float_is_400(server, index, element):
    status, _, text = ann(server, index, f'{{"vector": [{element}, 0, 0, 0, 0, 0, 0, 0]}}')
    assert status == 400 and text


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/cbor"}])
def test_another_content_type_is_415(server, index, headers):
    assert ann(server, index, {"vector": QUERY}, headers)[0] == 415


def test_an_unknown_index_is_404_on_every_route(server, index):
    keyspace = index.split("/")[-2]
    for path, text in [(f"{keyspace}/none", f"missing index: {keyspace}.none"), ("ks/none", "missing index: ks.none")]:
        for method, route, body in [("GET", "", None), ("GET", "/status", None), ("POST", "/ann", '{"vector":[1]}')]:
            status, headers, found = raw(server, method, f"/api/v1/indexes/{path}{route}", body, JSON)
            assert (status, found) == (404, text), route
            assert headers["Content-Type"].startswith("text/plain")


def test_full_text_on_a_vector_index_is_404(server, index):
    keyspace = index.split("/")[-2]
    status, _, text = raw(server, "POST", f"{index}/bm25", '{"query": "x"}', JSON)
    assert (status, text) == (404, f"missing index: {keyspace}.ann")


def test_a_filter_is_never_ignored(server, index):
    restrictions = [{"type": "==", "lhs": "id", "rhs": 7}]
    body = {"vector": QUERY, "limit": 10, "filter": {"restrictions": restrictions, "allow_filtering": True}}
    status, _, text = ann(server, index, body)
    assert status == 200
    assert json.loads(text)["primary_keys"]["id"] == [7]
    body["filter"]["allow_filtering"] = False
    status, headers, text = ann(server, index, body)
    assert status == 400 and "ALLOW FILTERING" in text and headers["Content-Type"].startswith("text/plain")


def test_a_body_above_two_mebibytes_is_413(server, index):
    body = json.dumps({"vector": QUERY}) + " " * (2 << 20)
    assert ann(server, index, body)[0] == 413
    body = json.dumps({"vector": QUERY}) + " " * ((2 << 20) - 200)
    assert ann(server, index, body)[0] == 200


def test_a_slow_sender_gets_the_answer_to_a_long_body(server, index):
    whole = 4 << 20
    connection = http.client.HTTPConnection(server.host, server.http_port, timeout=30)
    try:
        connection.putrequest("POST", f"{index}/ann")
        for name, value in [*JSON.items(), ("Content-Length", str(whole))]:
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(b" " * (whole - 1))
        # A server that answers now closes with the rest unread.
        select.select([connection.sock], [], [], 0.05)
        connection.send(b" ")
        assert connection.getresponse().status == 413
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT", "DELETE"])
def test_other_methods_are_405_and_empty(server, index, method):
    status, _, text = raw(server, method, f"{index}/ann")
    assert (status, text) == (405, "")


def test_the_zero_vector_is_as_far_from_everything(server, index):
    status, _, text = ann(server, index, {"vector": [0] * 8, "limit": 3})
    answer = json.loads(text)
    assert status == 200
    assert answer["distances"] == [1, 1, 1] and answer["similarity_scores"] == [0.5, 0.5, 0.5]


def test_the_counters_of_internals_count_the_events_of_the_whole_service(tmp_path):
    with Server(tmp_path / "data", "--internals") as server:
        cluster = connect(server)
        session = cluster.connect()
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        session.execute("CREATE CUSTOM INDEX i ON ks.t (v) USING 'vector_index'")
        server.wait_for_index("ks", "i", 0)

        def counters():
            return json.loads(raw(server, "GET", "/api/internals/counters")[2])

        assert counters() == {}
        for name in ("searches", "rows_read", "whatever"):
            assert raw(server, "PUT", f"/api/internals/counters/{name}")[0] == 200
        assert counters() == {"rows_read": 0, "searches": 0, "whatever": 0}
        for k in range(3):
            session.execute("INSERT INTO ks.t (k, v) VALUES (%s, [1, %s])", (k, k))
        server.wait_for_index("ks", "i", 3)
        assert counters()["rows_read"] >= 3 and counters()["searches"] == 0
        assert ann(server, "/api/v1/indexes/ks/i", {"vector": [1, 0]})[0] == 200
        assert counters()["searches"] == 1
        assert session.execute("SELECT k FROM ks.t ORDER BY v ANN OF [1, 0] LIMIT 1").one().k == 0
        assert counters()["searches"] == 2 and counters()["whatever"] == 0
        assert raw(server, "GET", "/api/internals/session-counters")[0] == 200
        assert raw(server, "DELETE", "/api/internals/counters")[0] == 200
        assert counters() == {}
        cluster.shutdown()


def test_without_internals_there_are_no_counters(server):
    assert raw(server, "GET", "/api/internals/counters")[0] == 404


def test_the_api_describes_itself(server):
    status, headers, text = raw(server, "GET", "/api-docs/openapi.json")
    document = json.loads(text)
    assert status == 200 and headers["Content-Type"] == "application/json" and document["openapi"].startswith("3.1")
    index = "/api/v1/indexes/{keyspace}/{index}"
    for path, method in [
        ("/api/v1/status", "get"),
        ("/api/v1/info", "get"),
        ("/api/v1/indexes", "get"),
        (index, "get"),
        (f"{index}/status", "get"),
        (f"{index}/ann", "post"),
        ("/metrics", "get"),
    ]:
        assert method in document["paths"][path], path
    assert {"200", "400", "404", "503"} <= set(document["paths"][f"{index}/ann"]["post"]["responses"])
    # Every reference has a target.
    for name in set(part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]):
        assert name in document["components"]["schemas"]


def test_an_unknown_path_is_404(server):
    assert raw(server, "GET", "/api/v1/nothing")[0] == 404


def test_two_requests_on_one_connection(server, index):
    connection = http.client.HTTPConnection(server.host, server.http_port, timeout=30)
    for _ in range(2):
        connection.request("POST", f"{index}/ann", json.dumps({"vector": QUERY}), JSON)
        response = connection.getresponse()
        assert response.status == 200 and json.loads(response.read())["primary_keys"] == {"id": [0]}
    connection.close()


TYPES = [
    ("ascii", "'a'", "a"),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("blob", "0x00ff", "0x00ff"),
    ("boolean", "true", True),
    ("date", "'2026-01-02'", "2026-01-02"),
    ("decimal", "1.50", "1.50"),
    ("double", "0.25", 0.25),
    ("float", "0.5", 0.5),
    ("inet", "'10.0.0.1'", "10.0.0.1"),
    ("int", "-5", -5),
    ("smallint", "7", 7),
    ("text", "'naïve 鳥'", "naïve 鳥"),
    ("time", "'13:14:15.123456789'", "13:14:15.123456789"),
    ("timestamp", "'2026-01-02T03:04:05.678Z'", "2026-01-02T03:04:05.678Z"),
    ("timeuuid", "8e14e760-7fa8-11eb-bc66-000000000001", "8e14e760-7fa8-11eb-bc66-000000000001"),
    ("tinyint", "-128", -128),
    ("uuid", "00000000-0000-0000-0000-00000000000A", "00000000-0000-0000-0000-00000000000a"),
    ("varint", "-12345678901234567890123", "-12345678901234567890123"),
]


def test_keys_of_every_type(server, session):
    """Keys of every type come back in JSON, and through ANN OF."""
    columns = [f"k{at}" for at in range(len(TYPES))]
    definitions = ", ".join(f"{column} {cql_type}" for column, (cql_type, _, _) in zip(columns, TYPES))
    names, half = ", ".join(columns), len(columns) // 2
    session.execute(
        f"CREATE TABLE t ({definitions}, v vector<float, 2>, "
        f"PRIMARY KEY (({', '.join(columns[:half])}), {', '.join(columns[half:])}))"
    )
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    session.execute(f"INSERT INTO t ({names}, v) VALUES ({', '.join(literal for _, literal, _ in TYPES)}, [1, 0])")
    server.wait_for_index(session.keyspace, "i", 1)
    _, _, text = ann(server, f"/api/v1/indexes/{session.keyspace}/i", {"vector": [1, 0]})
    keys = json.loads(text)["primary_keys"]
    assert list(keys) == columns
    assert [keys[column] for column in columns] == [[value] for _, _, value in TYPES]
    by_vector = session.execute(f"SELECT {names} FROM t ORDER BY v ANN OF [1, 0] LIMIT 2")
    assert list(by_vector) == list(session.execute(f"SELECT {names} FROM t"))


def test_decimals_keep_the_scale_that_they_are_stored_with(server, session):
    session.execute("CREATE TABLE t (p decimal, c decimal, d decimal, v vector<float, 2>, PRIMARY KEY (p, c, d))")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    session.execute("INSERT INTO t (p, c, d, v) VALUES (3.140, 2.50, 1E+3, [1, 0])")
    server.wait_for_index(session.keyspace, "i", 1)
    path = f"/api/v1/indexes/{session.keyspace}/i"

    def keys():
        _, _, text = ann(server, path, {"vector": [1, 0], "limit": 5})
        return json.loads(text)["primary_keys"]

    assert keys() == {"p": ["3.140"], "c": ["2.50"], "d": ["1E+3"]}
    # The key is the same in another form.
    session.execute("UPDATE t SET v = [0, 1] WHERE p = 3.140 AND c = 2.5 AND d = 1000")
    assert [row.c for row in session.execute("SELECT c FROM t ORDER BY v ANN OF [0, 1] LIMIT 5")] == [decimal.Decimal("2.50")]
    assert keys() == {"p": ["3.140"], "c": ["2.50"], "d": ["1E+3"]}
