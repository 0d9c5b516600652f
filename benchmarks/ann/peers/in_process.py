"""The libraries hnswlib and Faiss (HNSW) as contenders. All queries of a turn are one call on one
thread, so that Python's own time hardly counts."""

import faiss
import hnswlib
import numpy as np

import clock
from data_set import DataSet

CONNECTIONS = 16
BUILD_BEAM = 128


class Hnswlib:
    queries_max = None
    cpu = staticmethod(clock.own)

    def __init__(self, data: DataSet):
        self._index = hnswlib.Index(space="cosine" if data.cosine else "l2", dim=data.dimensions)
        self._index.init_index(max_elements=len(data.base), M=CONNECTIONS, ef_construction=BUILD_BEAM)

    def build(self, data: DataSet, threads: int) -> None:
        self._index.add_items(data.base, np.arange(len(data.base)), num_threads=threads)

    def search(self, queries: np.ndarray, k: int, beam: int) -> np.ndarray:
        self._index.set_ef(max(beam, k))
        return self._index.knn_query(queries, k=k, num_threads=1)[0]

    def bytes_on_disk(self) -> int:
        return 0


class Faiss:
    queries_max = None
    cpu = staticmethod(clock.own)

    def __init__(self, data: DataSet):
        self._cosine = data.cosine
        # The inner product of vectors of one length orders like the cosine.
        metric = faiss.METRIC_INNER_PRODUCT if data.cosine else faiss.METRIC_L2
        self._index = faiss.IndexHNSWFlat(data.dimensions, CONNECTIONS, metric)
        self._index.hnsw.efConstruction = BUILD_BEAM

    def build(self, data: DataSet, threads: int) -> None:
        faiss.omp_set_num_threads(threads)
        self._index.add(self._of_one_length(data.base))

    def search(self, queries: np.ndarray, k: int, beam: int) -> np.ndarray:
        faiss.omp_set_num_threads(1)
        self._index.hnsw.efSearch = max(beam, k)
        return self._index.search(self._of_one_length(queries), k)[1]

    def bytes_on_disk(self) -> int:
        return 0

    def _of_one_length(self, vectors: np.ndarray) -> np.ndarray:
        vectors = np.array(vectors, dtype=np.float32)
        if self._cosine:
            faiss.normalize_L2(vectors)
        return vectors
