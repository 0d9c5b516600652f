"""A real Cassandra ring for a while, for whoever is written in Python."""

import contextlib
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "tests/cassandra/cassandra-cluster"

# Below those that Linux gives to outgoing connections: a port must still be free when its server is started again.
PORTS = range(15_000, 32_000)


class Ring:
    """The nodes of a ring, from 0 on."""

    def __init__(self, directory, nodes, settings):
        self.directory, self._settings = directory, settings
        self.port = int(settings["CASSANDRA_CQL_PORT"])
        self.hosts = [f"{settings['CASSANDRA_NET']}.{number}" for number in range(1, nodes + 1)]

    def up(self):
        """Starts the nodes that are not running, and waits until all are there."""
        self._run("up", str(len(self.hosts)), self.directory)

    def down(self):
        self._run("down", self.directory)

    def pid(self, node):
        """The process of a node."""
        return int((self.directory / f"node{node + 1}/pid").read_text().split()[0])

    def _run(self, *command):
        subprocess.run([CLUSTER, *command], check=True, env=os.environ | self._settings)


@contextlib.contextmanager
def cassandra_ring(nodes=1, network=None, yaml=None):
    """A fresh `Ring` on addresses of its own or on those of a network, gone afterwards; `yaml` is a file with more lines of
    cassandra.yaml."""
    network = network or free_network()
    cql, storage = free_port(f"{network}.1"), free_port(f"{network}.1")
    settings = {
        "CASSANDRA_NET": network,
        "CASSANDRA_CQL_PORT": str(cql),
        "CASSANDRA_STORAGE_PORT": str(storage),
        "CASSANDRA_JMX_PORT": str(_free_ports("127.0.0.1", nodes)),
        "CASSANDRA_HEAP": "1g",
        "CASSANDRA_LIB": str(ROOT / "target/cassandra-lib"),
        # Cassandra reads timestamps without a zone in its own.
        "TZ": "UTC",
    }
    if yaml is not None:
        settings["CASSANDRA_YAML"] = str(yaml)
    with tempfile.TemporaryDirectory() as directory:
        ring = Ring(pathlib.Path(directory) / "ring", nodes, settings)
        try:
            ring.up()
            yield ring
        finally:
            ring.down()


def free_network():
    """The first three parts of addresses of loopback: others than those of whatever runs at the same time."""
    return f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"


def free_port(host):
    """A port of an address that nobody listens on."""
    return _free_ports(host, 1)


def _free_ports(host, count):
    """The first of `count` free ports in a row."""
    for _ in range(100):
        first = random.choice(PORTS)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind((host, port))
            return first
    sys.exit(f"no {count} free ports in a row on {host}")
