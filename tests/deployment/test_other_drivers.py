"""Tests the drivers of tests/clients through a gateway before a real Cassandra."""

import sys

import pytest
from conftest import TESTS

sys.path.append(str(TESTS / "clients"))

from test_clients import CLIENTS, connects_writes_and_reads  # noqa: E402


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_its_own_settings(client, gateways):
    host, port = gateways[0].address
    connects_writes_and_reads(client, host, port, f"of_{client}")
