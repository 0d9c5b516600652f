"""Frameworks as they come from PyPI, with their own statements, against `annulus serve`."""

import itertools
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/drivers"), str(ROOT / "python/langchain-annulus/tests")]

from conftest_server import server  # noqa: E402, F401
from sessions import cluster_of, make_keyspace  # noqa: E402
from words import WordEmbeddings  # noqa: E402

KEYSPACE = "frameworks"
_names = itertools.count()


@pytest.fixture(scope="session")
def session(server):  # noqa: F811
    """A session of a driver, with the keyspace of these tests."""
    cluster = cluster_of(server)
    session = cluster.connect()
    make_keyspace(session, KEYSPACE)
    yield session
    cluster.shutdown()


@pytest.fixture
def place(session):
    """Arguments that name a table of the test's own, which does not exist yet."""
    return {"session": session, "keyspace": KEYSPACE, "table": f"t{next(_names)}"}


@pytest.fixture(scope="session")
def embeddings():
    return WordEmbeddings()
