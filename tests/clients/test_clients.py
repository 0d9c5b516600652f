"""Tests drivers of other languages. Each is a small program of its own, with the driver's default
settings.

`make test-clients` builds the programs into target/clients. CLIENTS names those to run (default:
all)."""

import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "drivers"))

from conftest_server import server  # noqa: E402, F401

BUILT = TESTS.parent / "target" / "clients"
CLIENTS = os.environ.get("CLIENTS", "gocql cdrs").split()
SECONDS = 60


def connects_writes_and_reads(client, host, port, keyspace):
    """Runs a client, which prints 'ok' when it has done everything."""
    command = [BUILT / client, f"{host}:{port}", keyspace]
    # A client that waits for an answer without end fails like any other.
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr[-3000:]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_its_own_settings(client, server):  # noqa: F811
    connects_writes_and_reads(client, server.host, server.cql_port, f"of_{client}")
