"""Fixtures of a deployment as an operator runs it: a ring, gateways before two of its nodes, two
index services, and real texts.

NODES=n is the number of nodes (default: 1; a single node has one gateway). ROWS=n is the number of
texts.
"""

import os
import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("cassandra", "cluster", "drivers"):
    sys.path.append(str(TESTS / folder))

from clients import client_of_all  # noqa: E402
from gateways import NETWORK, gateways_before  # noqa: E402
from ring import cassandra_ring, free_port  # noqa: E402
from server import Server  # noqa: E402
from stores import Store  # noqa: E402
from table import Table  # noqa: E402
from texts import Texts  # noqa: E402

NODES = int(os.environ.get("NODES", "1"))
ROWS = int(os.environ.get("ROWS", "400"))
GATEWAYS = STORES = 2

MEASURED = []


def pytest_terminal_summary(terminalreporter):
    for line in MEASURED:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def measured():
    """A list of lines that are printed at the end of the run."""
    return MEASURED


@pytest.fixture(scope="session")
def ring():
    with cassandra_ring(NODES) as ring:
        yield ring


@pytest.fixture(scope="session")
def store_addresses():
    hosts = [f"{NETWORK}.{number}" for number in range(1, STORES + 1)]
    return [f"{host}:{free_port(host)}" for host in hosts]


@pytest.fixture(scope="session")
def gateways(ring, store_addresses, tmp_path_factory):
    nodes = [(host, ring.port) for host in ring.hosts[:GATEWAYS]]
    stores = [f"http://{address}" for address in store_addresses]
    gateways = gateways_before(nodes, stores, tmp_path_factory.mktemp("gateways"))
    for gateway in gateways:
        gateway.start()
    yield gateways
    assert [gateway.stop() for gateway in gateways] == [0] * len(gateways)


@pytest.fixture(scope="session")
def stores(gateways, store_addresses, tmp_path_factory):
    """The index services. Each follows the cluster by itself, through all gateways."""
    stores = [Store(gateways, tmp_path_factory.mktemp("store"), address) for address in store_addresses]
    for store in stores:
        store.start()
    yield stores
    assert [store.stop() for store in stores] == [0] * len(stores)


@pytest.fixture(scope="session")
def texts():
    return Texts(ROWS)


@pytest.fixture(scope="session")
def session(gateways):
    with client_of_all([gateway.address for gateway in gateways]) as cluster:
        yield cluster.connect()


@pytest.fixture(scope="session")
def table(session, stores, texts):
    """The table of texts behind the gateways. Half of the texts are there when the index is made,
    and half come while it is built."""
    table = Table(session, replicas=min(NODES, 3), texts=texts)
    half = len(texts.ids) // 2
    table.insert(range(half))
    table.create_index()
    table.insert(range(half, len(texts.ids)))
    for store in stores:
        table.is_equal_in(store)
    return table


@pytest.fixture
def one_machine(texts, tmp_path):
    """A server `annulus serve` with these texts, for comparison."""
    with Server(tmp_path / "one") as server:
        with client_of_all([(server.host, server.cql_port)]) as cluster:
            table = Table(cluster.connect(), replicas=1, texts=texts)
            table.create_index()
            table.insert(range(len(texts.ids)))
            server.wait_for_index(table.KEYSPACE, table.INDEX, len(texts.ids), seconds=600)
            yield table
        assert server.stop() == 0
