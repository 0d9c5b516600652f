"""Servers that are killed in the middle of backups: each point that is listed restores.

KILLS=n makes n rounds."""

import os
import random
import shutil
import time

import data
from commands import Backups
from server import Server

KILLS = int(os.environ.get("KILLS", "3"))
SEED = int(os.environ.get("FIRST_SEED", "1"))
# Rows of each round, and their bytes.
ROWS, SIZE = 60, 8_000


def restored_rows(backups, point, folder):
    """The ids of the blobs of a point, by a server on its restored directory."""
    backups.restore_to(folder, "--point", point)
    with Server(folder) as server, data.connect(server) as cluster:
        ids = {row.id for row in cluster.connect().execute("SELECT id FROM shop.blobs")}
        assert server.stop() == 0, server.log()
    shutil.rmtree(folder)
    return ids


def test_every_point_that_is_listed_restores_whenever_the_server_is_killed(directory, tmp_path):
    source = random.Random(SEED)
    server = Server(tmp_path / "data").start()
    with data.connect(server) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE shop WITH replication = {data.REPLICATION}")
        data.fill_blobs(session, "shop", 0, ROWS, SIZE)
    began = time.monotonic()
    backups = Backups(directory.location("killed"), server=server)
    backups.backup()
    longest = time.monotonic() - began
    # (time of a backup's start, number of rows that were acknowledged before it)
    begun = [(0, ROWS)]
    seen = set(backups.ids())
    for number in range(1, KILLS + 1):
        with data.connect(server) as cluster:
            data.fill_blobs(cluster.connect(), "shop", number * ROWS, ROWS, SIZE)
        begun.append((time.time() * 1e6, (number + 1) * ROWS))
        backups.detached("--retention", 100)
        # Not a wait for something: the moment of the kill is drawn by chance.
        time.sleep(source.uniform(0, longest))
        server.kill()
        server.start()
        new = [point for point in backups.points() if point["id"] not in seen]
        seen |= {point["id"] for point in new}
        for point in new:
            check(backups, point, begun, tmp_path)
        assert backups.verify()[1] == set()
        assert list((server.data_dir / "backups").glob("checkpoint-*")) == []
    backups.backup()
    check(backups, backups.points()[0], begun, tmp_path)
    assert server.stop() == 0, server.log()


def check(backups, point, begun, folder):
    """A point has all rows that were acknowledged before its backup began."""
    rows = max(rows for time_of, rows in begun if time_of <= point["taken_at_micros"])
    found = restored_rows(backups, point["id"], folder / "restored")
    assert set(range(rows)) <= found, (point, rows, len(found))


def test_retention_that_is_killed_breaks_no_point(directory, tmp_path):
    source = random.Random(SEED + 1)
    server = Server(tmp_path / "data").start()
    backups = Backups(directory.location("killed"), server=server)
    with data.connect(server) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE shop WITH replication = {data.REPLICATION}")
        data.fill_blobs(session, "shop", 0, ROWS, SIZE)
    for number in range(1, max(2, KILLS // 2) + 1):
        for _ in range(3):
            backups.backup("--retention", 9)
        began = time.monotonic()
        backups.detached("--retention", 1)
        time.sleep(source.uniform(0, 0.6))
        server.kill()
        server.start()
        assert backups.ids(), "no point is left"
        assert backups.verify()[1] == set(), (number, time.monotonic() - began)
    backups.backup("--retention", 1)
    assert len(backups.ids()) == 1 and backups.verify()[1] == set()
    assert restored_rows(backups, backups.ids()[0], tmp_path / "restored") == set(range(ROWS))
    assert server.stop() == 0, server.log()
