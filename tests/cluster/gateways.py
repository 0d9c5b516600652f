"""Starts and stops real gateways before the nodes of a ring."""

import re
import signal
import subprocess
import threading

from ring import free_network, free_port
from server import BINARY, START_SECONDS, STOP_SECONDS

READY = re.compile(r"gateway is ready: CQL on ([\d.]+):(\d+)")
# Where they listen: one for all tests of a run.
NETWORK = free_network()


class Gateway:
    """One `annulus gateway` before one node; `arguments` are more settings."""

    def __init__(self, address, node, pairs, log, stores=(), arguments=()):
        self.host, self.cql_port = address
        self.node = node
        self._command = [BINARY, "gateway", "--listen", self.host, "--cql-port", str(self.cql_port)]
        self._command += ["--cassandra", _text(node)]
        for its_node, its_gateway in pairs:
            self._command += ["--gateway", f"{_text(its_node)}={_text(its_gateway)}"]
        if stores:
            self._command += ["--vector-store-primary-uri", ",".join(stores)]
        self._command += arguments
        self._log = log
        self._process = None

    @property
    def address(self):
        return self.host, self.cql_port

    @property
    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def launch(self):
        """Starts it, and waits for nothing."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)

    def start(self):
        self.launch()
        timer = threading.Timer(START_SECONDS, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                if READY.search(line):
                    return self
        finally:
            timer.cancel()
        raise AssertionError(f"no ready line; exit code {self._process.wait()}; {self._log.read_text()[-2000:]}")

    def kill(self):
        """kill -9"""
        self._end(signal.SIGKILL)

    def stop(self):
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how):
        self._process.send_signal(how)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"still running {STOP_SECONDS} s after signal {how}") from None
        finally:
            self._process.stdout.close()


def gateways_before(nodes, stores, directory):
    """A gateway before each of some nodes' (host, port), all on one port and each on an address of its own.

    They ask the index services of the URIs `stores`."""
    port = free_port(f"{NETWORK}.1")
    addresses = [(f"{NETWORK}.{number}", port) for number in range(1, len(nodes) + 1)]
    pairs = list(zip(nodes, addresses))
    return [
        Gateway(address, node, pairs, directory / f"gateway-{number}.log", stores)
        for number, (node, address) in enumerate(pairs, 1)
    ]


def _text(address):
    return "{}:{}".format(*address)
