"""The ladder "back up, upgrade, go back", and points of former versions.

Data directories of former versions are the fixtures of the upgrade tests. OLD_ANNULUS=program takes the first step by
that program, and goes back to it. `make backup-fixture` writes the location of this version that later ones must restore."""

import os
import pathlib
import re
import tarfile

import pytest

import data
import process
from commands import Backups, run
from server import Server, eventually
from places import Directory

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "crates/annulus/tests/fixtures"
LOCATIONS = pathlib.Path(__file__).parent / "fixtures"
SETTINGS = ["--snapshot-interval", "1h"]
VERSIONS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
# Answers with a time to live differ by the second.
TIMED = re.compile(r"\bttl\(", re.IGNORECASE)


def questions():
    """(statement, whether the order of its rows counts) of all questions to a fixture."""
    for line in (FIXTURES / "questions.cql").read_text().splitlines():
        statement = line.removeprefix("#").strip()
        if statement and not statement.startswith("--") and "{wide" not in statement and not TIMED.search(statement):
            yield statement, not line.startswith("#")


def answers(server):
    """What a server answers to each question: rows, or the class of the error."""
    found = {}
    with data.connect(server) as cluster:
        session = cluster.connect()
        for statement, in_order in questions():
            try:
                rows = [repr(tuple(row)) for row in session.execute(statement)]
                found[statement] = rows if in_order else sorted(rows)
            except Exception as error:  # noqa: BLE001 - an error is an answer, too
                found[statement] = type(error).__name__
    return found


def settled(server):
    """The answers once two in a row are equal: an index needs a while for changes behind its snapshot."""
    last = [answers(server)]

    def is_settled():
        last.append(answers(server))
        return last[-1] == last[-2]

    eventually(is_settled, every=1)
    return last[-1]


def other_program(monkeypatch, program):
    """Makes all servers and commands from now on those of a program."""
    import commands

    monkeypatch.setattr(process, "BINARY", pathlib.Path(program))
    monkeypatch.setattr(commands, "BINARY", pathlib.Path(program))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_is_taken_back(version, tmp_path, directory, monkeypatch):
    new = process.BINARY
    old = os.environ.get("OLD_ANNULUS", str(new))
    with tarfile.open(FIXTURES / version / "data.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    backups = Backups(directory.location("ladder"))
    # Back up with the old version.
    other_program(monkeypatch, old)
    with Server(tmp_path / "data", *SETTINGS) as server:
        before = settled(server)
        backups.of(server).backup()
        assert server.stop() == 0, server.log()
    [point] = backups.ids()
    # Upgrade, and write what only the new version knows.
    other_program(monkeypatch, new)
    with Server(tmp_path / "data", *SETTINGS) as server, data.connect(server) as cluster:
        assert settled(server) == before
        session = cluster.connect()
        session.execute("CREATE TABLE kept.of_the_new_version (id int PRIMARY KEY)")
        session.execute("DROP TABLE kept.types")
        backups.of(server).backup()
        assert answers(server) != before
        assert server.stop() == 0, server.log()
    # Go back.
    other_program(monkeypatch, old)
    backups.restore_to(tmp_path / "before", "--point", point)
    with Server(tmp_path / "before", *SETTINGS) as server:
        assert settled(server) == before
        assert server.stop() == 0, server.log()


@pytest.mark.parametrize("version", sorted(path.name for path in LOCATIONS.glob("*/")))
def test_a_point_of_a_former_version_is_restored(version, tmp_path):
    with tarfile.open(LOCATIONS / version / "location.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    backups = Backups(Directory(tmp_path).location("location"))
    assert backups.verify()[1] == set()
    backups.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as server, data.connect(server) as cluster:
        session = cluster.connect()
        assert {table: len(rows) for table, rows in data.contents(session).items()} == ROWS
        data.wait_for_answers(session)
        assert server.stop() == 0, server.log()
    # Online, and encrypted.
    secret = Backups(Directory(tmp_path).location("secret"), "--key-file", tmp_path / "key")
    with Server(tmp_path / "other") as server, data.connect(server) as cluster:
        secret.restore(server=server)
        assert {table: len(rows) for table, rows in data.contents(cluster.connect()).items()} == ROWS
        assert server.stop() == 0, server.log()


# Rows of each table that `data.make` fills.
ROWS = {"events": 54, "items": data.ITEMS - 1, "sessions": 1, "visits": len(data.WORDS)}


@pytest.mark.skipif("MAKE_BACKUP_FIXTURE" not in os.environ, reason="make backup-fixture: once for each version")
def test_making_the_fixture_of_this_version(tmp_path):
    version = re.search(r"\d+\.\d+\.\d+", run("--version").stdout)[0]
    target = LOCATIONS / version
    target.mkdir(parents=True)
    key = tmp_path / "key"
    key.write_text("5a" * 32 + "\n")
    key.chmod(0o600)
    directory = Directory(tmp_path)
    with Server(tmp_path / "data") as server, data.connect(server) as cluster:
        session = cluster.connect()
        data.make(session)
        # Rows that expire would be missing later.
        session.execute("DELETE FROM shop.sessions WHERE id IN (%s)" % ", ".join(map(str, range(20))))
        data.wait_for_answers(session)
        Backups(directory.location("location"), server=server).backup()
        Backups(directory.location("secret"), "--key-file", key, server=server).backup()
        assert server.stop() == 0, server.log()
    with tarfile.open(target / "location.tar.gz", "w:gz") as archive:
        for name in ("location", "secret", "key"):
            archive.add(tmp_path / name, name)
