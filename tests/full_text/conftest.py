"""Fixtures of searches for words: a server, and a session to it."""

import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("drivers", "cluster", "cassandra", "histories", "filters"):
    # The modules of this folder come first.
    sys.path.append(str(TESTS / folder))

from clients import client_of_one  # noqa: E402
from conftest_server import server  # noqa: E402, F401
from service import Service  # noqa: E402


@pytest.fixture(scope="session")
def session(server):  # noqa: F811
    with client_of_one((server.host, server.cql_port)) as cluster:
        yield cluster.connect()


@pytest.fixture(scope="session")
def service(server):  # noqa: F811
    """The requests of text indexes, to the server under test."""
    return Service(server)


@pytest.fixture(scope="module")
def keyspace(session, request):
    """A keyspace for the tests of one file, which is the one in use."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_") + "_of_words"
    session.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.set_keyspace(name)
    yield name
    session.execute(f"DROP KEYSPACE {name}")
