"""Packs movies.parquet into the two files that are compiled into `annulus`.

`texts.lz4` has title, genre, release date and plot of each film, each text with a NUL after it, as
one block of LZ4 after its plain length (u32, little-endian). `vectors.i8` has the embeddings, each
rounded to a byte per element: the largest of a vector is 127 or -127. As every embedding has length
1, a reader scales it to that length, and no scale is stored. The films are in the order of their
ids, which are 1, 2, 3 ...

    .venv/cassandra/bin/python samples/movies/pack.py
"""

import pathlib

import lz4.block
import numpy
import pyarrow.parquet

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ["title", "genre", "release_date", "plot"]


def texts(table):
    """Returns the texts of all films, each with a NUL after it."""
    rows = zip(*(table[column].to_pylist() for column in TEXTS), strict=True)
    fields = [field for row in rows for field in row]
    if any("\0" in field for field in fields):
        raise ValueError("a text of the sample contains a NUL")
    return "".join(field + "\0" for field in fields).encode()


def vectors(table):
    """Returns the embeddings of all films, rounded to a byte per element."""
    exact = numpy.stack(table["plot_embedding"].to_numpy())
    largest = numpy.abs(exact).max(axis=1, keepdims=True)
    return numpy.rint(exact * (127 / largest)).astype(numpy.int8).tobytes()


def read():
    """Returns the films of movies.parquet."""
    table = pyarrow.parquet.read_table(HERE / "movies.parquet")
    if table["id"].to_pylist() != list(range(1, len(table) + 1)):
        raise ValueError("the ids of the sample are not 1, 2, 3 ...")
    return table


def main():
    table = read()
    packed = lz4.block.compress(texts(table), mode="high_compression", compression=12, store_size=True)
    (HERE / "texts.lz4").write_bytes(packed)
    (HERE / "vectors.i8").write_bytes(vectors(table))


if __name__ == "__main__":
    main()
