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
REPAIR_SECONDS = 300


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
        return self.start()

    def __exit__(self, *_):
        if self._process.poll() is None:
            self.stop()

    def start(self):
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
        raise AssertionError(f"no ready line; exit code {self._process.wait()}; {self.log()[-2000:]}")

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

    def log(self):
        return (self._directory / "store.log").read_text()

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

    def metric(self, name):
        """The sum of a metric's series."""
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}[{{ ]", line))

    def repair(self, keyspace, index, *options):
        """The task of an `annulus repair` that ended well; its counters say what was found."""
        command = [BINARY, "repair", f"{keyspace}.{index}", "--http", f"http://{self.address}", "--json", *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=REPAIR_SECONDS)
        assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
        return json.loads(ended.stdout)

    def task_tree(self, task):
        """A task with its parts."""
        return self._get(f"/api/v1/tasks/{task}/tree")

    def _get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)
