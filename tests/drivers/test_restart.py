"""A killed process loses nothing that it acknowledged, and its index equals the table again."""

import pytest
from conftest import connect
from server import Server, eventually


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
