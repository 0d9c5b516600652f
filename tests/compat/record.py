"""Writes the golden files anew: record.py [--server HOST:PORT] [AREA ...]

Without a server it starts a Cassandra of its own and stops it at the end. A server that has answered before may answer
otherwise the second time, so leave that to trying statements out.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import replay
import script
from client import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "tests/cassandra/cassandra-cluster"
NETWORK = "127.0.9"


@contextlib.contextmanager
def cassandra():
    """HOST, PORT of a fresh Cassandra node."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            sys.exit(f"recording needs {tool}: install Java 17 and Maven")
    cql, storage, jmx = (_free_port(host) for host in (f"{NETWORK}.1", f"{NETWORK}.1", "127.0.0.1"))
    settings = {
        "CASSANDRA_NET": NETWORK,
        "CASSANDRA_CQL_PORT": str(cql),
        "CASSANDRA_STORAGE_PORT": str(storage),
        "CASSANDRA_JMX_PORT": str(jmx),
        "CASSANDRA_HEAP": "1g",
        "CASSANDRA_LIB": str(ROOT / "target/cassandra-lib"),
        # Cassandra reads timestamps without a zone in its own.
        "TZ": "UTC",
    }
    with tempfile.TemporaryDirectory() as directory:
        ring = pathlib.Path(directory) / "ring"
        try:
            subprocess.run([CLUSTER, "up", "1", ring], check=True, env=os.environ | settings)
            yield f"{NETWORK}.1", cql
        finally:
            subprocess.run([CLUSTER, "down", ring], check=True)


def _free_port(host):
    with socket.socket() as listener:
        listener.bind((host, 0))
        return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description="Record the answers of a real Cassandra.")
    parser.add_argument("--server", metavar="HOST:PORT", help="one that is already there")
    parser.add_argument("areas", metavar="AREA", nargs="*", help="statement files (default: all)")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        host, port = options.server.rsplit(":", 1) if options.server else stack.enter_context(cassandra())
        client = stack.enter_context(Client(host, int(port)))
        for area in options.areas or script.areas():
            script.write_golden(area, replay.replay(client, area))
            print(area)


if __name__ == "__main__":
    main()
