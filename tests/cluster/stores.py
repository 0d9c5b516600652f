"""Starts and stops real index services that follow a cluster through gateways."""

import json
import re
import subprocess

from gateways import Gateway
from process import BINARY, Process
from server import IndexService

READY = re.compile(r"store is ready: HTTP on ([\d.]+):(\d+)")
REPAIR_SECONDS = 300


class Following(IndexService):
    """Requests to an index service that follows a cluster."""

    def serves(self, keyspace, index, rows):
        """Whether an index serves and has that many rows."""
        status = self.index_status(keyspace, index)
        return (status["status"], status["count"]) == ("SERVING", rows)

    def neighbours(self, keyspace, index, vector, limit):
        """The service's answer with the nearest rows; None while the index does not serve."""
        path = f"/api/v1/indexes/{keyspace}/{index}/ann"
        status, text = self.http(path, {"vector": vector, "limit": limit})
        return json.loads(text) if status == 200 else None

    def nearest(self, keyspace, index, vector, limit):
        """The keys of the nearest rows, by column; None while the index does not serve."""
        answer = self.neighbours(keyspace, index, vector, limit)
        return answer and answer["primary_keys"]

    def metric(self, name):
        """The sum of the values of all series of a metric."""
        _, text = self.http("/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{name}[{{ ]", line))

    def repair(self, keyspace, index, *options):
        """Runs `annulus repair`, which must end well, and returns its task. The counters of the
        task tell what was found."""
        service = f"http://{self.host}:{self.http_port}"
        command = [BINARY, "repair", f"{keyspace}.{index}", "--http", service, "--json", *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=REPAIR_SECONDS)
        assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
        return json.loads(ended.stdout)

    def task_tree(self, task):
        """A task with its parts, as a tree."""
        status, text = self.http(f"/api/v1/tasks/{task}/tree")
        assert status == 200, text
        return json.loads(text)


class Store(Process, Following):
    """One `annulus store` whose contact points are gateways. It listens on `address` (HOST:PORT),
    and `settings` are further arguments."""

    def __init__(self, gateways, directory, address="127.0.0.1:0", settings=()):
        contact_points = ",".join(f"{gateway.host}:{gateway.cql_port}" for gateway in gateways)
        arguments = ["store", "--scylladb-uri", contact_points, "--uri", address]
        arguments += ["--cdc-fine-safety-interval", "100ms", "--cdc-fine-sleep-interval", "200ms"]
        super().__init__([*arguments, *settings], READY, directory / "store.log", directory)

    def became_ready(self, host, http_port):
        self.host, self.http_port = host, int(http_port)


class GatewayWithStore(Gateway, Following):
    """One `annulus gateway --with-store` before one node. Its index service listens on `http_port`
    of the same address, and keeps its files in `directory`."""

    ready = READY

    def __init__(self, address, http_port, node, directory, settings=()):
        self.http_port = http_port
        file = directory / "gateway.toml"
        file.write_text(f'with-store = true\n[store]\nuri = "{address[0]}:{http_port}"\nindex-dir = "indexes"\n')
        settings = ["--config", str(file), *settings]
        super().__init__(address, node, [(node, address)], directory / "gateway.log", (), settings, directory)
