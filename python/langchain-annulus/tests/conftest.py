"""A server and a keyspace for the tests."""

import itertools
import pathlib
import sys

import pytest
from sessions import cluster_of, make_keyspace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "drivers"))

from conftest_server import server  # noqa: E402, F401

KEYSPACE = "langchain"
_names = itertools.count()


@pytest.fixture(scope="session")
def connect(server):  # noqa: F811
    """Opens sessions; arguments are those of an execution profile."""
    clusters = []

    def connect(**profile):
        clusters.append(cluster_of(server, **profile))
        return clusters[-1].connect()

    yield connect
    for cluster in clusters:
        cluster.shutdown()


@pytest.fixture(scope="session")
def session(connect):
    session = connect()
    make_keyspace(session, KEYSPACE)
    return session


@pytest.fixture
def place(session):
    """Arguments that name a table of the test's own, which does not exist yet."""
    return {"session": session, "keyspace": KEYSPACE, "table": f"t{next(_names)}"}
