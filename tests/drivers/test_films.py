"""Tests real data: 10,000 films with embeddings of their plots, of which 200 are held out as
queries."""

import pathlib

import numpy
import pyarrow.parquet
from cassandra.concurrent import execute_concurrent_with_args
from server import eventually

FILMS = pathlib.Path(__file__).resolve().parents[2] / "samples/movies/movies.parquet"
HELD_OUT = 200
NEIGHBOURS = 10


def test_recall_on_films_is_at_least_99_percent(server, session):
    table = pyarrow.parquet.read_table(FILMS, columns=["id", "title", "plot_embedding"])
    ids = table["id"].to_numpy()
    vectors = numpy.stack(table["plot_embedding"].to_numpy())
    order = numpy.random.default_rng(1).permutation(len(ids))
    queries, kept = order[:HELD_OUT], order[HELD_OUT:]

    session.execute("CREATE TABLE films (id int PRIMARY KEY, title text, v vector<float, 384>)")
    session.execute("CREATE CUSTOM INDEX films_v ON films (v) USING 'vector_index'")
    insert = session.prepare("INSERT INTO films (id, v) VALUES (?, ?)")
    rows = [(int(ids[at]), vectors[at].tolist()) for at in kept]
    execute_concurrent_with_args(session, insert, rows, concurrency=64, raise_on_first_error=True)
    server.wait_for_index(session.keyspace, "films_v", len(rows), seconds=120)

    search = session.prepare(f"SELECT id FROM films ORDER BY v ANN OF ? LIMIT {NEIGHBOURS}")
    found = 0
    for at in queries:
        best = kept[numpy.argsort(-(vectors[kept] @ vectors[at]), kind="stable")[:NEIGHBOURS]]
        answer = {row.id for row in session.execute(search, (vectors[at].tolist(),))}
        found += len(answer & {int(id) for id in ids[best]})
    recall = found / (HELD_OUT * NEIGHBOURS)
    print(f"recall@{NEIGHBOURS} {recall:.4f}")
    assert recall >= 0.99
