"""Servers that the benchmark and the tests start for a store, each in a directory of its own, on loopback."""

import os
import random
import re
import select
import socket
import subprocess
import time
from pathlib import Path

from ..config import REPOSITORY
from .store import StoreError

READY = re.compile(r"ready: CQL on 127\.0\.0\.1:(\d+)")
STARTS_WITHIN, ENDS_WITHIN = 60, 60
CASSANDRA_CLUSTER = REPOSITORY / "tests/cassandra/cassandra-cluster"
# Below the ports that Linux gives to outgoing connections.
CASSANDRA_PORTS = range(15_000, 32_000)
# Cassandra's default. The nodes of this repository's tests sync ten times as often.
CASSANDRA_YAML = "commitlog_sync_period: 10000ms\n"


class AnnulusProcess:
    """A server of Annulus on a free port."""

    def __init__(self, binary: Path, directory: Path) -> None:
        """Starts it, and returns when it listens. Raises `StoreError`."""
        directory.mkdir(parents=True, exist_ok=True)
        self.data = directory / "data"
        command: list[str | Path] = [binary, "serve", "--data-dir", self.data, "--cql-port", "0", "--http-port", "0"]
        try:
            with (directory / "server.log").open("ab") as log:
                self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        except OSError as error:
            build = "Build it with: cargo build --release -p annulus"
            raise StoreError(f"{binary} does not start: {error}. {build}, or set ANNULUS_BINARY") from error
        self.pid = self._process.pid
        self._binary = binary
        try:
            self.port = self._port_of_ready_line(directory)
        except BaseException:
            self.stop()
            raise

    @property
    def version(self) -> str:
        """The version of the program."""
        return subprocess.check_output([self._binary, "--version"], text=True).split()[1]

    def stop(self) -> None:
        """Ends the server, and waits until it has ended."""
        self._process.terminate()
        try:
            self._process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _port_of_ready_line(self, directory: Path) -> int:
        output = self._process.stdout
        assert output is not None
        deadline = time.monotonic() + STARTS_WITHIN
        while (left := deadline - time.monotonic()) > 0 and select.select([output], [], [], left)[0]:
            line = output.readline()
            if ready := READY.search(line):
                return int(ready[1])
            if not line:
                break
        raise StoreError(f"Annulus did not start: its log is {directory / 'server.log'}")


class CassandraProcess:
    """One node of Apache Cassandra 5 on a loopback address of its own. It needs Java 17, and Maven once."""

    def __init__(self, directory: Path) -> None:
        """Starts it, and returns when it serves. Raises `StoreError`."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory / "ring"
        yaml = directory / "more.yaml"
        yaml.write_text(CASSANDRA_YAML)
        network, self.port = network_of(self._directory)
        self.host = f"{network}.1"
        self._settings = {
            "CASSANDRA_NET": network,
            "CASSANDRA_CQL_PORT": str(self.port),
            "CASSANDRA_STORAGE_PORT": str(free_port(self.host)),
            "CASSANDRA_JMX_PORT": str(free_port("127.0.0.1")),
            "CASSANDRA_HEAP": "1g",
            "CASSANDRA_LIB": os.environ.get("CASSANDRA_LIB", str(REPOSITORY / "target/cassandra-lib")),
            "CASSANDRA_YAML": str(yaml),
            "TZ": "UTC",
        }
        try:
            self._run("up", "1", str(self._directory))
        except BaseException:
            self.stop()
            raise
        self.data = self._directory / "node1"

    @property
    def pid(self) -> int:
        """The id of the node's process."""
        return int((self._directory / "node1/pid").read_text().split()[0])

    def stop(self) -> None:
        """Ends the node."""
        self._run("down", str(self._directory))

    def _run(self, *command: str) -> None:
        Path(self._settings["CASSANDRA_LIB"]).mkdir(parents=True, exist_ok=True)
        ended = subprocess.run(
            [CASSANDRA_CLUSTER, *command], env=os.environ | self._settings, stderr=subprocess.PIPE, text=True
        )
        if ended.returncode != 0:
            raise StoreError(f"Cassandra: {ended.stderr.strip()}")


def network_of(ring: Path) -> tuple[str, int]:
    """The first three parts of a node's address, and its port: those that it had before, or free ones."""
    known = ring / "cluster.conf"
    if known.exists():
        settings = dict(line.split("=", 1) for line in known.read_text().splitlines() if "=" in line)
        return settings["NET"], int(settings["CQL_PORT"])
    network = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"
    return network, free_port(f"{network}.1")


def free_port(host: str) -> int:
    """A free port of an address."""
    for port in random.sample(CASSANDRA_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise StoreError(f"{host} has no free port")
