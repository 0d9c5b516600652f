"""Tests the ids of requests over HTTP: in answers, in traces and among slow statements."""

import re

from conftest import GUARD


def answered(api, headers):
    status, headers, _ = api.raw("POST", "/cql", {"query": "SELECT key FROM system.local"}, {**GUARD, **headers})
    assert status == 200
    return headers


def test_an_answer_has_the_id_of_the_client(api):
    assert answered(api, {"X-Request-Id": "order-17"})["X-Request-Id"] == "order-17"


def test_a_request_without_an_id_gets_one(api):
    first, second = (answered(api, {})["X-Request-Id"] for _ in range(2))
    assert re.fullmatch(r"[0-9a-f]{16}-[0-9a-f]+", first) and first != second
    # A text that is no id is replaced.
    assert answered(api, {"X-Request-Id": "x" * 129})["X-Request-Id"] != "x" * 129


def test_a_refusal_has_an_id_too(api):
    status, headers, _ = api.raw("POST", "/cql", {"query": "SELECT"}, {**GUARD, "X-Request-Id": "wrong-1"})
    assert status == 400 and headers["X-Request-Id"] == "wrong-1"


def test_a_trace_names_its_request(api, session):
    headers = answered(api, {"X-Request-Id": "traced-1", "X-Annulus-Trace": "1"})
    query = f"SELECT parameters FROM system_traces.sessions WHERE session_id = {headers['X-Annulus-Trace']}"
    assert session.execute(query).one().parameters["request_id"] == "traced-1"
