"""The real texts of the benchmarks in 384 dimensions, with queries that are not among them."""

import pathlib

import numpy
from pyarrow import parquet

DATA = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/ann/data"


class Texts:
    """The first `rows` of 50,000 texts, and 2,000 queries, with their true neighbours by cosine."""

    def __init__(self, rows):
        base = parquet.read_table(DATA / "texts50k_base.parquet", columns=["id", "text", "embedding"]).slice(0, rows)
        self.ids = base["id"].to_pylist()
        self.texts = base["text"].to_pylist()
        self.vectors = vectors(base)
        self.queries = vectors(parquet.read_table(DATA / "texts50k_queries.parquet", columns=["embedding"]))
        self.dimensions = self.vectors.shape[1]

    def nearest(self, queries, k):
        """The ids of the true `k` nearest texts of some queries."""
        cosines = unit(queries) @ unit(self.vectors).T
        return [{self.ids[at] for at in row} for row in numpy.argpartition(-cosines, k - 1, axis=1)[:, :k]]


def vectors(table):
    column = table["embedding"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(column), -1).astype(numpy.float32)


def unit(vectors):
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
