"""Tests that a killed process loses nothing that it acknowledged, and that its index equals the
table again."""

import contextlib
import json
import threading
import urllib.error

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from conftest import connect
from server import Server

pytestmark = pytest.mark.embedded("it is killed and started")


@pytest.mark.parametrize("durability", ["synced", "buffered"])
def test_kill_and_restart(tmp_path, durability):
    """Buffered writes may be lost with the machine, but not with the process."""
    server = Server(tmp_path / "data", "--durability", durability).start()
    cluster = connect(server)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int, c int, v vector<float, 2>, PRIMARY KEY (p, c))")
    session.execute("CREATE CUSTOM INDEX t_v ON k.t (v) USING 'vector_index'")
    insert = session.prepare("INSERT INTO k.t (p, c, v) VALUES (?, ?, ?)")
    for c in range(500):
        session.execute(insert, (c % 7, c, [c, 1]))
    session.execute("DELETE FROM k.t WHERE p = 3")
    session.execute("DELETE FROM k.t WHERE p = 4 AND c > 100")
    expected = {(row.p, row.c) for row in session.execute("SELECT p, c FROM k.t")}
    server.kill()
    cluster.shutdown()

    server = Server(tmp_path / "data").start()
    cluster = connect(server)
    session = cluster.connect()
    try:
        assert {(row.p, row.c) for row in session.execute("SELECT p, c FROM k.t")} == expected
        server.wait_for_index("k", "t_v", len(expected))
        rows = session.execute("SELECT p, c FROM k.t ORDER BY v ANN OF [1, 1] LIMIT 1000")
        assert {(row.p, row.c) for row in rows} == expected
    finally:
        cluster.shutdown()
        assert server.stop() == 0


def test_until_it_is_ready_the_index_service_says_that_it_is_starting(tmp_path):
    server = Server(tmp_path / "data").start()
    cluster = connect(server)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (k int PRIMARY KEY, v vector<float, 96>)")
    session.execute("CREATE CUSTOM INDEX i ON k.t (v) USING 'vector_index'")
    insert = session.prepare("INSERT INTO k.t (k, v) VALUES (?, ?)")
    rows = [(k, [float(k % (i + 2)) for i in range(96)]) for k in range(2_000)]
    execute_concurrent_with_args(session, insert, rows, concurrency=64, raise_on_first_error=True)
    cluster.shutdown()
    assert server.stop() == 0

    # With a snapshot the server would be ready before it can be asked.
    again = Server(tmp_path / "data", "--snapshot-interval", "0s", http_port=server.http_port)
    starting = threading.Thread(target=again.start)
    starting.start()
    states, answers = [], []
    try:
        while starting.is_alive():
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                states.append(server.http("/api/v1/status"))
                answers.append(server.http("/api/v1/indexes/k/i/ann", {"vector": [1] * 96}))
        starting.join()
        answers.append(again.http("/api/v1/indexes/k/i/ann", {"vector": [1] * 96}))
    finally:
        again.stop()
    order = ["INITIALIZING", "CONNECTING_TO_DB", "BOOTSTRAPPING", "SERVING"]
    found = [order.index(json.loads(text)) for status, text in states if status == 200]
    assert found == sorted(found) and order.index("BOOTSTRAPPING") in found
    assert {status for status, _ in states} == {200}
    # "Ready" means that the indexes answer.
    assert answers[-1][0] == 200
    early = [answer for answer in answers if answer[0] != 200]
    assert (503, '{"reason":"NODE_BOOTSTRAPPING"}') in early
    # The HTTP port is open before the storage is.
    starting = (503, "the service is starting; /health/ready says when it serves")
    assert set(early) <= {starting, (503, '{"reason":"NODE_BOOTSTRAPPING"}'), (404, "missing index: k.i")}


def test_a_decimal_key_out_of_a_snapshot_has_the_scale_that_it_is_stored_with(tmp_path):
    server = Server(tmp_path / "data").start()
    cluster = connect(server)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int, c decimal, v vector<float, 2>, PRIMARY KEY (p, c))")
    session.execute("CREATE CUSTOM INDEX i ON k.t (v) USING 'vector_index'")
    session.execute("INSERT INTO k.t (p, c, v) VALUES (1, 2.50, [1, 0])")
    server.wait_for_index("k", "i", 1)
    cluster.shutdown()
    assert server.stop() == 0

    with Server(tmp_path / "data") as server:
        server.wait_for_index("k", "i", 1)
        _, metrics = server.http("/metrics")
        scans = [line for line in metrics.splitlines() if line.startswith("index_scans_total")]
        assert all(line.endswith(" 0") for line in scans), scans
        _, text = server.http("/api/v1/indexes/k/i/ann", {"vector": [1, 0]})
        assert json.loads(text)["primary_keys"] == {"p": [1], "c": ["2.50"]}


def scans(server):
    """The number of scans of tables since the server's start."""
    _, metrics = server.http("/metrics")
    lines = [line for line in metrics.splitlines() if line.startswith("index_scans_total")]
    return sum(float(line.split()[-1]) for line in lines)


def test_a_key_column_that_gets_another_name_leaves_the_index_as_it_is(tmp_path):
    server = Server(tmp_path / "data").start()
    cluster = connect(server)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (id int, c int, v vector<float, 2>, PRIMARY KEY (id, c))")
    session.execute("CREATE CUSTOM INDEX i ON k.t (v) USING 'vector_index'")
    session.execute("CREATE CUSTOM INDEX l ON k.t ((id), v) USING 'vector_index'")
    insert = session.prepare("INSERT INTO k.t (id, c, v) VALUES (?, ?, ?)")
    rows = [(n % 3, n, [float(n), 1.0]) for n in range(300)]
    execute_concurrent_with_args(session, insert, rows, concurrency=64, raise_on_first_error=True)
    for index in ("i", "l"):
        server.wait_for_index("k", index, 300)
    built = scans(server)
    found, failed, ended = [], [], threading.Event()

    def search():
        while not ended.is_set():
            try:
                rows = session.execute("SELECT c FROM k.t ORDER BY v ANN OF [0, 1] LIMIT 5")
                found.append([row.c for row in rows])
            except Exception as error:
                failed.append(error)

    searching = threading.Thread(target=search)
    searching.start()
    try:
        for name in ("x", "y", "z"):
            former = {"x": "id", "y": "x", "z": "y"}[name]
            session.execute(f"ALTER TABLE k.t RENAME {former} TO {name}")
            nearest = f"SELECT c FROM k.t WHERE {name} = 1 ORDER BY v ANN OF [0, 1] LIMIT 3"
            assert [row.c for row in session.execute(nearest)] == [1, 4, 7]
    finally:
        ended.set()
        searching.join()
    assert not failed and all(rows == [0, 1, 2, 3, 4] for rows in found), failed
    filtered = {"type": "==", "lhs": "z", "rhs": 2}
    body = {"vector": [0, 1], "limit": 2, "filter": {"restrictions": [filtered], "allow_filtering": True}}
    status, text = server.http("/api/v1/indexes/k/i/ann", body)
    assert (status, json.loads(text)["primary_keys"]) == (200, {"z": [2, 2], "c": [2, 5]})
    filtered["lhs"] = "id"
    status, text = server.http("/api/v1/indexes/k/i/ann", body)
    assert status == 400 and "column id is not part of the primary key" in text
    # The log is still followed, and the state of no row is lost.
    session.execute("DELETE FROM k.t WHERE z = 0 AND c = 0")
    session.execute("INSERT INTO k.t (z, c, v) VALUES (5, 500, [0.5, 1])")
    # The name that has become free may be that of another column.
    session.execute("ALTER TABLE k.t ADD id int")
    rows = session.execute("SELECT c FROM k.t ORDER BY v ANN OF [0, 1] LIMIT 3")
    assert [row.c for row in rows] == [500, 1, 2]
    assert scans(server) == built, "an index was built again"
    cluster.shutdown()
    assert server.stop() == 0

    with Server(tmp_path / "data") as server:
        for index in ("i", "l"):
            server.wait_for_index("k", index, 300)
        assert scans(server) == 0, "an index was built again"
        filtered["lhs"] = "z"
        _, text = server.http("/api/v1/indexes/k/i/ann", body)
        assert json.loads(text)["primary_keys"] == {"z": [2, 2], "c": [2, 5]}
