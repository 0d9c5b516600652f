"""Tests filters on a table of some thousand rows, where a search may walk the graph: the rows that
come match and are as many as there are, and nearly all of them are the nearest."""

import random

import numpy
import pytest
from cassandra.concurrent import execute_concurrent_with_args

ROWS, DIMENSIONS, LIMIT, QUERIES = 4000, 16, 10, 20
RECALL_MIN = 0.95
SHARES = [0.9, 0.5, 0.3, 0.1, 0.01, 0.001, 0]


@pytest.fixture(scope="module")
def vectors():
    return numpy.random.default_rng(1).normal(size=(ROWS, DIMENSIONS)).astype(numpy.float32)


@pytest.fixture(scope="module")
def table(server, session, vectors):
    """Rows with a random rank, which lies in `f` as it is, and in the clustering key."""
    session.execute("CREATE KEYSPACE walks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(f"CREATE TABLE walks.t (p int, c int, f int, v vector<float, {DIMENSIONS}>, PRIMARY KEY (p, c))")
    session.execute("CREATE CUSTOM INDEX near ON walks.t (v, f) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}")
    insert = session.prepare("INSERT INTO walks.t (p, c, f, v) VALUES (?, ?, ?, ?)")
    ranks = random.Random(1).sample(range(ROWS), ROWS)
    rows = [(rank % 3, rank, rank, vector.tolist()) for rank, vector in zip(ranks, vectors)]
    execute_concurrent_with_args(session, insert, rows, concurrency=32)
    server.wait_for_index("walks", "near", ROWS, seconds=120)
    return session, numpy.array(ranks)


@pytest.mark.parametrize("column", ["f", "c"])
@pytest.mark.parametrize("share", SHARES)
def test_answers_are_full_and_near(table, vectors, column, share):
    session, ranks = table
    matching = ranks < share * ROWS
    query = session.prepare(
        f"SELECT {column}, similarity_euclidean(v, ?) FROM walks.t WHERE {column} < ? ORDER BY v ANN OF ? LIMIT {LIMIT}"
    )
    hits = 0
    for vector in numpy.random.default_rng(2).normal(size=(QUERIES, DIMENSIONS)).astype(numpy.float32):
        answer = [tuple(row) for row in session.execute(query, (vector.tolist(), int(share * ROWS), vector.tolist()))]
        found = [rank for rank, _ in answer]
        distances = ((vectors - vector) ** 2).sum(axis=1)
        assert len(found) == len(set(found)) == min(LIMIT, matching.sum())
        assert all(rank < share * ROWS for rank in found)
        own = {rank: 1 / (1 + distance) for rank, distance in zip(ranks.tolist(), distances)}
        assert all(abs(own[rank] - score) < 1e-5 for rank, score in answer)
        assert [score for _, score in answer] == sorted((score for _, score in answer), reverse=True)
        nearest = ranks[matching][numpy.argsort(distances[matching])[:LIMIT]]
        hits += len(set(found) & set(nearest.tolist()))
    assert hits >= RECALL_MIN * QUERIES * min(LIMIT, matching.sum())
