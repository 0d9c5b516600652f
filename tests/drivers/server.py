"""Starts a server to test, and sends it HTTP requests."""

import json
import pathlib
import re
import time
import urllib.error
import urllib.request

from process import Process

READY = re.compile(r"ready: CQL on ([\d.]+):(\d+), HTTP on [\d.]+:(\d+)")


class IndexService:
    """The HTTP API of a server, at `host`:`http_port`."""

    host, http_port = None, None

    def http(self, path, body=None, headers=None):
        """(status, text) of a GET, or of a POST if there is a body (a dict is sent as JSON)."""
        request = urllib.request.Request(f"http://{self.host}:{self.http_port}{path}", headers=headers or {})
        if body is not None:
            request.data = body if isinstance(body, bytes) else json.dumps(body).encode()
            request.headers.setdefault("Content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def index_status(self, keyspace, index):
        status, text = self.http(f"/api/v1/indexes/{keyspace}/{index}/status")
        return json.loads(text) if status == 200 else {"status": f"HTTP {status}", "count": -1}

    def wait_for_index(self, keyspace, index, count, seconds=20):
        """Waits until an index serves and has that many rows."""
        wanted = {"status": "SERVING", "count": count, "build_progress": 100.0}
        eventually(lambda: wanted.items() <= self.index_status(keyspace, index).items(), seconds)


class Server(Process, IndexService):
    """One `annulus serve` on loopback, by default on free ports."""

    def __init__(self, data_dir, *arguments, cql_port=0, http_port=0):
        self.data_dir = pathlib.Path(data_dir)
        command = ["serve", "--data-dir", self.data_dir, "--cql-port", str(cql_port), "--http-port", str(http_port)]
        super().__init__([*command, *arguments], READY, self.data_dir.with_suffix(".log"))
        self.cql_port = None

    def became_ready(self, host, cql_port, http_port):
        self.host, self.cql_port, self.http_port = host, int(cql_port), int(http_port)


class Elsewhere(IndexService):
    """A CQL server that runs already, and perhaps an index service, as HOST:PORT.

    Both must be on one host."""

    def __init__(self, cql, http=None):
        self.host, port = cql.rsplit(":", 1)
        self.cql_port = int(port)
        if http is not None:
            http_host, port = http.rsplit(":", 1)
            assert http_host == self.host, f"{http} is not on the host of {cql}"
            self.http_port = int(port)


# Options of cqlsh. Its own limits are 5 s and 10 s, which a busy machine takes for a login.
CQLSH_PATIENCE = ["--connect-timeout", "60", "--request-timeout", "60"]


def eventually(check, seconds=60, every=0.02):
    """Waits until `check()` is true and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"not so within {seconds} s: {check}"
        time.sleep(every)
