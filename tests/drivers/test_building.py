"""Tests that searches of an index that is being built wait for it, or are answered with its progress."""

import json
import re

import pytest
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from server import eventually

pytestmark = pytest.mark.embedded("its index service is asked while it builds")

ROWS = 3_000


def test_the_progress_is_told_until_the_index_serves(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 96>)")
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    rows = [(k, [float(k % (i + 2)) for i in range(96)]) for k in range(ROWS)]
    execute_concurrent_with_args(session, insert, rows, concurrency=64, raise_on_first_error=True)
    # CREATE INDEX returns when a small table's index serves, so searches are sent meanwhile.
    created = session.execute_async("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    known = "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = %s"
    eventually(lambda: list(session.execute(known, (session.keyspace,))), every=0.001)

    path = f"/api/v1/indexes/{session.keyspace}/i"
    body = {"vector": [1] * 96, "limit": 2000}
    states, http, cql = [], [], []

    def serving():
        # An index that lacks so few rows is waited for, which this search has no time for.
        status, text = server.http(f"{path}/ann", body, {"x-request-timeout-ms": "5"})
        http.append((status, text))
        state = server.index_status(session.keyspace, "i")
        states.append(state)
        try:
            found = session.execute("SELECT k FROM t ORDER BY v ANN OF %s LIMIT 100", (body["vector"],))
            assert len(list(found)) == 100, "an answer is whole"
        except InvalidRequest as error:
            cql.append(str(error))
        return state["status"] == "SERVING"

    eventually(serving, seconds=60, every=0.001)
    status, text = server.http(f"{path}/ann", body)
    assert status == 200 and len(json.loads(text)["primary_keys"]["k"]) == 2000
    # No answer says that an index of the schema does not exist.
    assert {status for status, _ in http} <= {200, 503}
    building = [text for status, text in http if status == 503 and "INDEX_BUILDING" in text]
    assert building, "the index was built before it could be asked"
    for text in building:
        answer = json.loads(text)
        assert "still being constructed" in answer["message"] and re.search(r"\d+\.\d{3}%", answer["message"])
    assert {state["status"] for state in states} <= {"INITIALIZING", "BOOTSTRAPPING", "SERVING"}
    progress = [state["build_progress"] for state in states if "build_progress" in state]
    assert progress == sorted(progress) and progress[-1] == 100
    for text in cql:
        assert "HTTP status 503 Service Unavailable" in text and "still being constructed" in text
    created.result()
    # The service as a whole still serves.
    assert server.http("/api/v1/status") == (200, '"SERVING"')
