"""Starts and stops real gateways before the nodes of a ring."""

import re
import urllib.request

from process import Process
from ring import free_network, free_port

READY = re.compile(r"gateway is ready: CQL on ")
# The network that the gateways listen on, one for all tests of a run.
NETWORK = free_network()


class Gateway(Process):
    """One `annulus gateway` before one node. `settings` are further arguments."""

    # A gateway prints this line last when it starts.
    ready = READY

    def __init__(self, address, node, pairs, log, stores=(), settings=(), directory=None):
        self.host, self.cql_port = address
        self.node = node
        arguments = ["gateway", "--listen", self.host, "--cql-port", str(self.cql_port), "--cassandra", _text(node)]
        for its_node, its_gateway in pairs:
            arguments += ["--gateway", f"{_text(its_node)}={_text(its_gateway)}"]
        if stores:
            arguments += ["--vector-store-primary-uri", ",".join(stores)]
        super().__init__([*arguments, *settings], self.ready, log, directory)

    @property
    def address(self):
        return self.host, self.cql_port


def gateways_before(nodes, stores, directory):
    """Yields a gateway before each of the `nodes` given as (host, port). All listen on one port,
    each on an address of its own.

    The gateways ask the index services at the URIs `stores`."""
    port = free_port(f"{NETWORK}.1")
    addresses = [(f"{NETWORK}.{number}", port) for number in range(1, len(nodes) + 1)]
    pairs = list(zip(nodes, addresses))
    return [
        Gateway(address, node, pairs, directory / f"gateway-{number}.log", stores)
        for number, (node, address) in enumerate(pairs, 1)
    ]


def answered_without_rows(metrics):
    """The number of queries that the gateway whose metrics are at this address (HOST:PORT) has
    answered without rows."""
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=30) as response:
        text = response.read().decode()
    return int(re.search(r"^gateway_ann_without_rows_total (\d+)$", text, re.MULTILINE)[1])


def _text(address):
    return "{}:{}".format(*address)
