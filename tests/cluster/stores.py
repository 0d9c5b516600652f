"""Starts and stops real index services that follow a cluster through gateways."""

import json
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

from server import BINARY, START_SECONDS, STOP_SECONDS

READY = re.compile(r"store is ready: HTTP on ([\d.]+:\d+)")


class Store:
    """One `annulus store` whose contact points are gateways; it listens on `address` (HOST:PORT), and
    `arguments` are more settings."""

    def __init__(self, gateways, directory, address="127.0.0.1:0", arguments=()):
        contact_points = ",".join(f"{gateway.host}:{gateway.cql_port}" for gateway in gateways)
        self._command = [BINARY, "store", "--scylladb-uri", contact_points, "--uri", address]
        self._command += ["--cdc-fine-safety-interval", "100ms", "--cdc-fine-sleep-interval", "200ms"]
        self._command += arguments
        self._directory = directory
        self._process = None
        self.address = None

    def __enter__(self):
        with open(self._directory / "store.log", "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self._directory
            )
        timer = threading.Timer(START_SECONDS, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                if ready := READY.search(line):
                    self.address = ready[1]
                    return self
        finally:
            timer.cancel()
        log = (self._directory / "store.log").read_text()
        raise AssertionError(f"no ready line; exit code {self._process.wait()}; {log[-2000:]}")

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.stdout.close()

    def status(self, keyspace, index):
        """The status of an index; None if the service does not know it."""
        try:
            return self._get(f"/api/v1/indexes/{keyspace}/{index}/status")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def serves(self, keyspace, index, rows):
        """Whether an index is ready and has so many rows."""
        status = self.status(keyspace, index) or {}
        return status.get("status") == "SERVING" and status.get("count") == rows

    def nearest(self, keyspace, index, vector, limit):
        """The keys of the nearest rows, by column."""
        body = json.dumps({"vector": vector, "limit": limit}).encode()
        request = urllib.request.Request(
            f"http://{self.address}/api/v1/indexes/{keyspace}/{index}/ann",
            body,
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["primary_keys"]

    def _get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)
