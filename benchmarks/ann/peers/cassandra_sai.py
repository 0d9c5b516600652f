"""Cassandra with its own index, SAI, as a contender. `CASSANDRA=ADDRESS:PORT:PID` names a node on
this machine.

SAI has no search width. In its place the query's limit is varied, and the first k rows of the
answer count. Its graph has the default parameters, 16 links and a beam of 100: other values need a
system property. Processor time is that of the node's whole process, background work included.
"""

import os
import time

import numpy as np
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args

import clock
from data_set import DataSet

LIMIT_MAX = 1000
BUILD_SECONDS_MAX = 1800


class Cassandra:
    queries_max = 200

    def __init__(self, data: DataSet):
        address, port, pid = os.environ["CASSANDRA"].split(":")
        self.cpu = clock.of_process(int(pid))
        self._similarity = "cosine" if data.cosine else "euclidean"
        self._cluster = Cluster([address], port=int(port), protocol_version=5)
        self._db = self._cluster.connect()
        self._db.default_timeout = 600
        self._db.execute(
            "CREATE KEYSPACE IF NOT EXISTS peers"
            " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        self._db.execute("DROP TABLE IF EXISTS peers.items")
        self._db.execute(f"CREATE TABLE peers.items (id int PRIMARY KEY, v vector<float, {data.dimensions}>)")
        insert = self._db.prepare("INSERT INTO peers.items (id, v) VALUES (?, ?)")
        rows = ((row, vector.tolist()) for row, vector in enumerate(data.base))
        execute_concurrent_with_args(self._db, insert, rows, concurrency=16)

    def build(self, data: DataSet, threads: int) -> None:
        """Builds the index only, as the table is already filled. The node decides how many threads
        it takes."""
        options = f"{{'similarity_function': '{self._similarity}'}}"
        self._db.execute(f"CREATE INDEX items_v ON peers.items (v) USING 'sai' WITH OPTIONS = {options}")
        built = "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = 'peers'"
        end = time.monotonic() + BUILD_SECONDS_MAX
        while "items_v" not in [row.index_name for row in self._db.execute(built)]:
            if time.monotonic() > end:
                raise TimeoutError(f"the index was not built within {BUILD_SECONDS_MAX} s")
            time.sleep(0.2)

    def search(self, queries: np.ndarray, k: int, beam: int) -> np.ndarray:
        limit = min(max(beam, k), LIMIT_MAX)
        statement = self._db.prepare(f"SELECT id FROM peers.items ORDER BY v ANN OF ? LIMIT {limit}")
        found = np.full((len(queries), k), -1, dtype=np.int64)
        for row, query in enumerate(queries):
            ids = [answer.id for answer in self._db.execute(statement, (query.tolist(),))][:k]
            found[row, : len(ids)] = ids
        return found

    def bytes_on_disk(self) -> int:
        return 0

    def close(self) -> None:
        self._cluster.shutdown()
