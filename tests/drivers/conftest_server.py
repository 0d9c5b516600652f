"""The fixture that the test folders share."""

import os

import pytest
from server import Elsewhere, Server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server under test. CQL_SERVER=host:port names another one, such as a real Cassandra, to
    check that the tests of plain CQL expect the right answers. HTTP_SERVER=host:port is its index
    service."""
    if address := os.environ.get("CQL_SERVER"):
        yield Elsewhere(address, os.environ.get("HTTP_SERVER"))
        return
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    yield server
    assert server.stop() == 0, server.log()
