"""Starts and stops a real Cassandra ring for tests in Python."""

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

# The ports to choose from. They are below those that Linux gives to outgoing connections, as a port
# must still be free when its server is started again.
PORTS = range(15_000, 32_000)


class Ring:
    """A ring of nodes, which are numbered from 0."""

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
        """The process id of a node."""
        return int((self.directory / f"node{node + 1}/pid").read_text().split()[0])

    def _run(self, *command):
        subprocess.run([CLUSTER, *command], check=True, env=os.environ | self._settings)


@contextlib.contextmanager
def cassandra_ring(nodes=1, network=None, yaml=None, java_options=None):
    """Yields a fresh `Ring` on addresses of its own or on those of a network, and removes it
    afterwards. `yaml` is a file with more lines of cassandra.yaml, `java_options` a text of more
    arguments for Java."""
    network = network or free_network()
    cql, storage = free_port(f"{network}.1"), free_port(f"{network}.1")
    settings = {
        "CASSANDRA_NET": network,
        "CASSANDRA_CQL_PORT": str(cql),
        "CASSANDRA_STORAGE_PORT": str(storage),
        "CASSANDRA_JMX_PORT": str(_free_ports("127.0.0.1", nodes)),
        "CASSANDRA_HEAP": "1g",
        "CASSANDRA_LIB": str(ROOT / "target/cassandra-lib"),
        # Cassandra reads timestamps without a time zone in its own zone.
        "TZ": "UTC",
    }
    if yaml is not None:
        settings["CASSANDRA_YAML"] = str(yaml)
    if java_options is not None:
        settings["JDK_JAVA_OPTIONS"] = java_options
    with tempfile.TemporaryDirectory() as directory:
        ring = Ring(pathlib.Path(directory) / "ring", nodes, settings)
        try:
            ring.up()
            yield ring
        finally:
            ring.down()


def free_network():
    """The first three parts of loopback addresses, chosen at random so that they differ from those
    of processes that run at the same time."""
    return f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"


def free_port(host):
    """A free port of an address."""
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
