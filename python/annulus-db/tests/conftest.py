"""The program under test, and a server of HTTP that answers what a test says."""

import os
import pathlib

import pytest
from scripted import ScriptedServer

pytest_plugins = ["annulus_db.pytest_plugin"]

_ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("ANNULUS_BINARY", _ROOT / "target/debug/annulus")


@pytest.fixture(scope="session")
def binary():
    return BINARY


@pytest.fixture(scope="session")
def annulus_server_options(binary):
    return {"binary": binary}


@pytest.fixture
def scripted():
    """A server that gives the answers of its list `answers` and notes the requests."""
    with ScriptedServer() as server:
        yield server
