"""Fixtures of all tests of this folder: a real Cassandra with a gateway before each node.

NODES=n is the number of nodes (default: 1). CASSANDRA_SERVER=host:port[,host:port...] names nodes
that run already. Then none is started, and tests that would stop a node are skipped.
"""

import os
import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("cassandra", "compat", "drivers"):
    sys.path.append(str(TESTS / folder))

from gateways import NETWORK, gateways_before  # noqa: E402
from ring import cassandra_ring, free_port  # noqa: E402
from stores import Store  # noqa: E402


@pytest.fixture(scope="session")
def ring():
    """The ring that these tests started; None if its nodes ran already."""
    if "CASSANDRA_SERVER" in os.environ:
        yield None
        return
    with cassandra_ring(int(os.environ.get("NODES", "1"))) as ring:
        yield ring


@pytest.fixture(scope="session")
def nodes(ring):
    """(host, port) of each node."""
    if ring is not None:
        return [(host, ring.port) for host in ring.hosts]
    addresses = (address.rsplit(":", 1) for address in os.environ["CASSANDRA_SERVER"].split(","))
    return [(host, int(port)) for host, port in addresses]


@pytest.fixture(scope="session")
def store_address():
    """The address at which the gateways expect the index service."""
    host = f"{NETWORK}.1"
    return f"{host}:{free_port(host)}"


@pytest.fixture(scope="session")
def store(store_address, gateways, tmp_path_factory):
    """The index service that the gateways ask. It follows the cluster through the first of them."""
    with Store(gateways[:1], tmp_path_factory.mktemp("store"), store_address) as store:
        yield store


@pytest.fixture(scope="session")
def gateways(nodes, store_address, tmp_path_factory):
    """A gateway before each node."""
    gateways = gateways_before(nodes, [f"http://{store_address}"], tmp_path_factory.mktemp("gateways"))
    for gateway in gateways:
        gateway.start()
    yield gateways
    assert [gateway.stop() for gateway in gateways] == [0] * len(gateways)


@pytest.fixture
def gateway(gateways):
    return gateways[0]
