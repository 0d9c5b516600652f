"""Starts and stops real index services that follow a cluster through gateways."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

from server import BINARY, STOP_SECONDS, eventually


class Store:
    """One `annulus store`, whose contact point is a gateway."""

    def __init__(self, address, directory):
        self.host, self.http_port = address
        self._directory = directory
        self._process = None

    @property
    def uri(self):
        return f"http://{self.host}:{self.http_port}"

    def start(self, gateway):
        settings = {
            "VECTOR_STORE_URI": f"{self.host}:{self.http_port}",
            "VECTOR_STORE_SCYLLADB_URI": f"{gateway.host}:{gateway.cql_port}",
        }
        with open(self._directory / "store.log", "ab") as log:
            self._process = subprocess.Popen(
                [BINARY, "store"], cwd=self._directory, env=os.environ | settings, stdout=log, stderr=log
            )
        eventually(lambda: self.get("status") == "SERVING", seconds=60)
        return self

    def get(self, path):
        """What it says under a path of its API; None if it says nothing, or that there is nothing."""
        try:
            with urllib.request.urlopen(f"{self.uri}/api/v1/{path}", timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError):
            return None

    def serves(self, keyspace, index, rows):
        """Whether an index is ready and has so many rows."""
        status = self.get(f"indexes/{keyspace}/{index}/status") or {}
        return status.get("status") == "SERVING" and status.get("count") == rows

    def stop(self):
        """SIGTERM; the exit code."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"the store still runs {STOP_SECONDS} s after SIGTERM") from None
