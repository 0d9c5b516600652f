"""Fixtures of searches with filters: a server, and a session to it."""

import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("drivers", "cluster", "cassandra", "histories"):
    sys.path.append(str(TESTS / folder))

from clients import client_of_one  # noqa: E402
from conftest_server import server  # noqa: E402, F401


@pytest.fixture(scope="session")
def session(server):  # noqa: F811
    with client_of_one((server.host, server.cql_port)) as cluster:
        yield cluster.connect()
