"""Tests Prometheus metrics, which come and go with their index."""

import re
import urllib.request

import pytest
from server import eventually

pytestmark = pytest.mark.embedded("the metrics of one process with its database")


def series(server, session):
    """The lines of metrics that belong to a keyspace, by name and labels."""
    status, text = server.http("/metrics")
    assert status == 200
    found = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            if labels.pop("keyspace", None) == session.keyspace:
                # Older names have another label.
                assert labels.pop("index_name" if "index_name" in labels else "index") == "i"
                found[match[1], tuple(sorted(labels.items()))] = float(match[3])
    return found


def test_what_is_counted(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    for k in range(3):
        session.execute("INSERT INTO t (k, v) VALUES (%s, [1, 1])", (k,))
    server.wait_for_index(session.keyspace, "i", 3)
    session.execute("UPDATE t SET v = [2, 1] WHERE k = 0")
    session.execute("DELETE FROM t WHERE k = 1")
    server.wait_for_index(session.keyspace, "i", 2)
    for _ in range(4):
        server.http(f"/api/v1/indexes/{session.keyspace}/i/ann", {"vector": [1, 1]})

    def counted():
        # Each number is counted at its own step of the way.
        found = series(server, session)
        modified = {dict(labels)["operation"]: value for (name, labels), value in found.items() if name == "index_modified"}
        # At least the update came by the log. The scan may have been first with the inserts.
        by_log = found.get(("indexing_lag_seconds_count", ()), 0) >= 1
        is_whole = modified.get("update", 0) >= 1 and modified.get("insert") == 3 and modified.get("remove") == 1 and by_log
        return found if is_whole else None

    found = eventually(counted)
    assert found["index_size", ()] == 2
    assert found["request_latency_seconds_count", ()] == 4
    assert found["indexing_lag_seconds_sum", ()] < 60
    bounds = {dict(labels)["le"] for name, labels in found if name == "request_latency_seconds_bucket"}
    assert {"0.0001", "+Inf"} <= bounds
    readers = {dict(labels)["reader"]: value for (name, labels), value in found.items() if name == "cdc_reader_up"}
    assert readers and set(readers) <= {"wide", "fine"} and set(readers.values()) == {1}
    handled = [value for (name, _), value in found.items() if name == "cdc_last_processed_timestamp_seconds"]
    assert handled and all(value > 1.7e9 for value in handled)


def test_they_vanish_with_the_index(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)")
    for _ in range(2):
        session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
        session.execute("INSERT INTO t (k, v) VALUES (1, [1, 1])")
        server.wait_for_index(session.keyspace, "i", 1)
        assert server.http(f"/api/v1/indexes/{session.keyspace}/i/ann", {"vector": [1, 1]})[0] == 200
        assert ("index_size", ()) in series(server, session)
        session.execute("DROP INDEX i")
        eventually(lambda: server.index_status(session.keyspace, "i")["status"] == "HTTP 404")
        eventually(lambda: not series(server, session))


def test_unknown_names_leave_no_series(server, session):
    for name in ["one", "two"]:
        assert server.http(f"/api/v1/indexes/{session.keyspace}/{name}/ann", {"vector": [1]})[0] == 404
    assert session.keyspace not in server.http("/metrics")[1]


def test_the_format_is_prometheus_text(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    eventually(lambda: series(server, session))
    with urllib.request.urlopen(f"http://{server.host}:{server.http_port}/metrics", timeout=30) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read().decode()
    for line in ["# TYPE index_size gauge", "# TYPE cdc_reader_up gauge", "# TYPE indexing_lag_seconds histogram"]:
        assert line in text
    assert text.endswith("\n")


def test_connections_that_gave_way_are_counted(server):
    status, text = server.http("/metrics")
    assert status == 200
    assert any(line.startswith("cql_connections_given_way_total ") for line in text.splitlines())
