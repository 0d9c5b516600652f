"""Fixtures of backups: a server with tables, places for its backups, and what is in the tables."""

import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("drivers", "cluster", "cassandra"):
    sys.path.append(str(TESTS / folder))

import data  # noqa: E402
from commands import Backups, clean_environment  # noqa: E402
from proxy import Proxy  # noqa: E402
from server import Server  # noqa: E402
from places import KINDS, Directory, is_there  # noqa: E402

clean_environment()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server whose tables no test changes. Its backups go to as many locations as there are tests."""
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    with data.connect(server) as cluster:
        session = cluster.connect()
        data.make(session)
        data.wait_for_answers(session)
        yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="session")
def session(server):
    with data.connect(server) as cluster:
        yield cluster.connect()


@pytest.fixture(scope="session")
def expected(session):
    """The cells of the tables of `server`."""
    return data.contents(session)


@pytest.fixture
def directory(tmp_path):
    return Directory(tmp_path / "backups")


@pytest.fixture
def backups(directory, server):
    """Backups of `server` into a directory of the test."""
    return Backups(directory.location("of-test"), server=server)


@pytest.fixture(scope="session")
def one_backup(server, expected, tmp_path_factory):
    """A location with one backup of `server`, which tests only read."""
    backups = Backups(Directory(tmp_path_factory.mktemp("one")).location("backup"), server=server)
    backups.backup()
    return backups


@pytest.fixture
def other(tmp_path):
    """An empty server."""
    with Server(tmp_path / "other") as server:
        yield server
        if server.is_running:
            assert server.stop() == 0, server.log()


@pytest.fixture(params=sorted(KINDS))
def place(request, tmp_path_factory):
    """(stand-in, proxy before it, file of credentials) of each provider."""
    if reason := is_there(request.param):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp(request.param)
    with KINDS[request.param](folder) as store, Proxy(store.address) as proxy:
        credentials = folder / "credentials"
        credentials.write_text("".join(f"{name}={value}\n" for name, value in store.environment(proxy.url).items()))
        credentials.chmod(0o600)
        yield store, proxy, credentials


@pytest.fixture
def blobs(session):
    """Fills a table of the test with rows that don't compress: first number, number of rows."""
    yield lambda first, rows: data.fill_blobs(session, data.KEYSPACE, first, rows)
    session.execute(f"DROP TABLE IF EXISTS {data.KEYSPACE}.blobs")
