"""ClickHouse as the library `chdb` in this process. Its processor time includes the planning of a
query."""

import shutil
import tempfile

import numpy as np
import pyarrow
from chdb.session import Session

import clock
from data_set import DataSet

INDEX = "vector_similarity('hnsw', '{distance}', {dimensions}, 'f32', 16, 128)"


class ClickHouse:
    queries_max = 200
    cpu = staticmethod(clock.own)

    def __init__(self, data: DataSet):
        self._folder = tempfile.mkdtemp(prefix="annulus-clickhouse-")
        self._session = Session(self._folder)
        self._distance = "cosineDistance" if data.cosine else "L2Distance"
        index = INDEX.format(distance=self._distance, dimensions=data.dimensions)
        self._session.query("CREATE DATABASE peers ENGINE = Atomic")
        # A part of the table has one index for all its rows.
        self._session.query(
            f"CREATE TABLE peers.items (id UInt32, v Array(Float32), INDEX i v TYPE {index} GRANULARITY 100000000)"
            " ENGINE = MergeTree ORDER BY id"
        )

    def build(self, data: DataSet, threads: int) -> None:
        """Fills the table, which builds its index too."""
        vectors = pyarrow.array(np.ascontiguousarray(data.base).ravel())
        lists = pyarrow.FixedSizeListArray.from_arrays(vectors, data.dimensions)
        ids = pyarrow.array(np.arange(len(data.base), dtype=np.uint32))
        # `Python(items)` finds this variable by its name.
        items = pyarrow.table({"id": ids, "v": lists.cast(pyarrow.list_(pyarrow.float32()))})
        insert = "INSERT INTO peers.items SELECT id, v FROM Python(items)"
        self._session.query(f"{insert} SETTINGS max_threads = {threads}")
        self._session.query("OPTIMIZE TABLE peers.items FINAL")

    def search(self, queries: np.ndarray, k: int, beam: int) -> np.ndarray:
        found = np.full((len(queries), k), -1, dtype=np.int64)
        for row, query in enumerate(queries):
            vector = ",".join(map(repr, query.tolist()))
            answer = self._session.query(
                f"SELECT id FROM peers.items ORDER BY {self._distance}(v, [{vector}]) LIMIT {k}"
                f" SETTINGS hnsw_candidate_list_size_for_search = {max(beam, k)}, max_threads = 1",
                "CSV",
            )
            ids = str(answer).split()
            found[row, : len(ids)] = ids
        return found

    def bytes_on_disk(self) -> int:
        sizes = "SELECT sum(secondary_indices_compressed_bytes) FROM system.parts WHERE active AND table = 'items'"
        return int(str(self._session.query(sizes, "CSV")).strip())

    def close(self) -> None:
        self._session.close()
        shutil.rmtree(self._folder, ignore_errors=True)
