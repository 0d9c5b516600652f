"""Runs an engine as a contender of `bench-ann`. It reads requests from standard input and writes
replies to standard output, a line of JSON each.

    peer.py contend NAME FOLDER        NAME is hnswlib, faiss, pgvector, clickhouse or cassandra

The messages are those of `contender/src/protocol.rs`. An answer with fewer than k vectors counts
with the recall that it has.
"""

import importlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path

import numpy as np

import clock
from data_set import DataSet

# For each name: the module, the class, and the package whose version is reported.
PEERS = {
    "hnswlib": ("in_process", "Hnswlib", "hnswlib"),
    "faiss": ("in_process", "Faiss", "faiss-cpu"),
    "pgvector": ("postgres", "Pgvector", "pgserver"),
    "clickhouse": ("clickhouse", "ClickHouse", "chdb"),
    "cassandra": ("cassandra_sai", "Cassandra", "cassandra-driver"),
}


def anonymous_bytes() -> int:
    """The bytes of this process that cannot be dropped and read again from a file."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


class Contender:
    def __init__(self, name: str, folder: Path):
        module, peer, package = PEERS[name]
        self._make = getattr(importlib.import_module(module), peer)
        self._about = f"{package} {importlib.metadata.version(package)}"
        self._data = DataSet(folder)
        self._peer = None

    def answer(self, request: dict) -> dict:
        (word, arguments), = request.items()
        return {"Build": self._build, "Search": self._search, "Effort": self._effort}[word](**arguments)

    def close(self) -> None:
        if hasattr(self._peer, "close"):
            self._peer.close()
        self._peer = None

    def _build(self, threads: int) -> dict:
        self.close()
        before = anonymous_bytes()
        self._peer = self._make(self._data)
        stopwatch = clock.Stopwatch(self._peer.cpu)
        self._peer.build(self._data, threads)
        return {
            "Built": {
                "elapsed": stopwatch.elapsed(),
                "memory": {"anonymous": 0, "mapped": self._peer.bytes_on_disk()},
                "components": [],
                "anonymous_grown": max(anonymous_bytes() - before, 0),
                "kernels": self._about,
            }
        }

    def _search(self, k: int, width: dict, pick: dict) -> dict:
        searched = []
        for rows in self._data.picked(pick, self._peer.queries_max):
            queries = np.ascontiguousarray(self._data.queries[rows])
            stopwatch = clock.Stopwatch(self._peer.cpu)
            found = self._peer.search(queries, k, width["beam"])
            elapsed = stopwatch.elapsed()
            truth = self._data.neighbours[rows, :k]
            common = sum(len(np.intersect1d(a, b)) for a, b in zip(truth, found))
            searched.append({"queries": len(rows), "found": common, "elapsed": elapsed})
        return {"Searched": searched}

    def _effort(self, **_) -> dict:
        return {"Effort": None}


def main() -> None:
    _, _, name, folder, *_ = sys.argv
    # Output of libraries must not come between the replies, so it goes to standard error.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contender = Contender(name, Path(folder))
    for line in sys.stdin:
        try:
            reply = contender.answer(json.loads(line))
        except Exception as error:  # The benchmark gets the error and decides.
            reply = {"Failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)
    contender.close()


if __name__ == "__main__":
    main()
