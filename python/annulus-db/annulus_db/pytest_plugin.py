"""Fixtures of pytest: a server for all tests, a client of it, and a keyspace for each test.

Installed with the package, they are there without an import. A conftest.py gives the server other
arguments by a fixture `annulus_server_options` of its own, scope `session`:

    @pytest.fixture(scope="session")
    def annulus_server_options():
        return {"arguments": ["--memory-limit", "512MiB"]}
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping

import pytest

from annulus_db.client import Client
from annulus_db.server import Server

_names = itertools.count()


@pytest.fixture(scope="session")
def annulus_server_options() -> Mapping[str, object]:
    """Arguments of `annulus_db.Server`."""
    return {}


@pytest.fixture(scope="session")
def annulus_server(
    annulus_server_options: Mapping[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that runs for all tests. pytest keeps its directory, with the log, of three runs."""
    options = {"data_dir": tmp_path_factory.mktemp("annulus") / "data", **annulus_server_options}
    with Server(**options) as server:  # type: ignore[arg-type]
        yield server


@pytest.fixture(scope="session")
def annulus_client(annulus_server: Server) -> Iterator[Client]:
    """A client of the server."""
    with annulus_server.client() as client:
        yield client


@pytest.fixture
def annulus_keyspace(annulus_client: Client) -> Iterator[str]:
    """The name of a keyspace for one test, which is dropped after it."""
    # Processes of pytest-xdist may share a server that options name.
    keyspace = f"test_{os.getpid()}_{next(_names)}"
    annulus_client.create_keyspace(keyspace)
    yield keyspace
    annulus_client.drop_keyspace(keyspace)
