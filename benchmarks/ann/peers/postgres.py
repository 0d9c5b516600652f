"""PostgreSQL with pgvector as a contender, both from the PyPI package `pgserver`.

Processor time is that of the connection's own server process, which does all work of a query.
Vectors are sent in binary.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pgserver
import psycopg
from pgvector.psycopg import register_vector

import clock
from data_set import DataSet

EF_MAX = 1000
WITH = "m = 16, ef_construction = 128"


class Pgvector:
    queries_max = 500

    def __init__(self, data: DataSet):
        self._folder = tempfile.mkdtemp(prefix="annulus-pgvector-")
        self._server = pgserver.get_server(Path(self._folder) / "data", cleanup_mode="stop")
        self._db = psycopg.connect(self._server.get_uri(), autocommit=True)
        self._db.execute("CREATE EXTENSION vector")
        register_vector(self._db)
        self.cpu = clock.of_process(self._db.info.backend_pid)
        self._operator, self._class = ("<=>", "vector_cosine_ops") if data.cosine else ("<->", "vector_l2_ops")
        self._db.execute(f"CREATE TABLE items (id int, v vector({data.dimensions}))")
        # A vector kept within the row needs no second look-up during a search.
        self._db.execute("ALTER TABLE items ALTER COLUMN v SET STORAGE PLAIN")
        with self._db.cursor().copy("COPY items FROM STDIN WITH (FORMAT BINARY)") as copy:
            copy.set_types(["int4", "vector"])
            for row, vector in enumerate(data.base):
                copy.write_row((row, vector))

    def build(self, data: DataSet, threads: int) -> None:
        """Builds the index only, as the table is already filled."""
        self._db.execute("SET maintenance_work_mem = '1GB'")
        self._db.execute(f"SET max_parallel_maintenance_workers = {threads - 1}")
        self._db.execute(f"CREATE INDEX items_v ON items USING hnsw (v {self._class}) WITH ({WITH})")
        self._db.execute("VACUUM ANALYZE items")
        self._db.execute("SET enable_seqscan = off")

    def search(self, queries: np.ndarray, k: int, beam: int) -> np.ndarray:
        self._db.execute(f"SET hnsw.ef_search = {min(max(beam, k), EF_MAX)}")
        statement = f"SELECT id FROM items ORDER BY v {self._operator} %s LIMIT {k}"
        found = np.full((len(queries), k), -1, dtype=np.int64)
        for row, query in enumerate(queries):
            ids = [id for (id,) in self._db.execute(statement, (query,), prepare=True, binary=True)]
            found[row, : len(ids)] = ids
        return found

    def bytes_on_disk(self) -> int:
        return self._db.execute("SELECT pg_relation_size('items_v')").fetchone()[0]

    def close(self) -> None:
        self._db.close()
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)
