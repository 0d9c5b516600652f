"""Tests the whole way of a row: connect, create, insert, CDC row, index, ANN OF."""

import random

import pytest
from cassandra import InvalidRequest
from server import eventually


def make_items(session, options=""):
    session.execute("CREATE TABLE items (id int PRIMARY KEY, name text, v vector<float, 3>)")
    session.execute(f"CREATE CUSTOM INDEX items_v ON items (v) USING 'vector_index' {options}")
    return session.prepare("INSERT INTO items (id, name, v) VALUES (?, ?, ?)")


def nearest(session, vector, limit=3):
    query = session.prepare("SELECT id FROM items ORDER BY v ANN OF ? LIMIT ?")
    return [row.id for row in session.execute(query, (vector, limit))]


def test_nearest_rows_come_back_in_order(server, session):
    insert = make_items(session)
    session.execute(insert, (1, "x", [1, 0, 0]))
    session.execute(insert, (2, "y", [0, 1, 0]))
    session.execute(insert, (3, "xy", [1, 1, 0]))
    server.wait_for_index(session.keyspace, "items_v", 3)
    assert nearest(session, [1, 0.1, 0]) == [1, 3, 2]


def test_rows_written_before_the_index_are_found(server, session):
    session.execute("CREATE TABLE items (id int PRIMARY KEY, name text, v vector<float, 3>)")
    insert = session.prepare("INSERT INTO items (id, v) VALUES (?, ?)")
    for id in range(100):
        session.execute(insert, (id, [id, 1, 0]))
    session.execute("CREATE CUSTOM INDEX items_v ON items (v) USING 'vector_index'")
    server.wait_for_index(session.keyspace, "items_v", 100)
    assert len(nearest(session, [1, 1, 0], 1000)) == 100


def test_updates_and_deletes_are_followed(server, session):
    insert = make_items(session)
    for id in range(10):
        session.execute(insert, (id, "", [1, id, 0]))
    server.wait_for_index(session.keyspace, "items_v", 10)
    session.execute("UPDATE items SET v = [0, 0, 1] WHERE id = 7")
    eventually(lambda: nearest(session, [0, 0, 1], 1) == [7])
    session.execute("DELETE FROM items WHERE id = 7")
    assert 7 not in nearest(session, [0, 0, 1], 10)
    session.execute("DELETE v FROM items WHERE id = 3")
    server.wait_for_index(session.keyspace, "items_v", 8)
    session.execute("TRUNCATE items")
    server.wait_for_index(session.keyspace, "items_v", 0)
    assert nearest(session, [0, 0, 1], 10) == []


@pytest.mark.parametrize("function", ["cosine", "euclidean", "dot_product"])
def test_the_order_is_that_of_the_similarity_function(server, session, function):
    insert = make_items(session, f"WITH OPTIONS = {{'similarity_function': '{function}'}}")
    numbers = random.Random(7)
    for id in range(200):
        session.execute(insert, (id, "", [numbers.gauss(0, 1) for _ in range(3)]))
    server.wait_for_index(session.keyspace, "items_v", 200)
    query = [0.3, -0.2, 0.9]
    scored = session.prepare(f"SELECT id, similarity_{function}(v, ?) AS s FROM items")
    best = sorted(session.execute(scored, (query,)), key=lambda row: -row.s)
    assert nearest(session, query, 10) == [row.id for row in best[:10]]


def test_without_an_index_the_error_says_so(session):
    session.execute("CREATE TABLE items (id int PRIMARY KEY, v vector<float, 3>)")
    with pytest.raises(InvalidRequest, match="ANN ordering by vector requires the column to be indexed"):
        session.execute("SELECT id FROM items ORDER BY v ANN OF [1, 2, 3] LIMIT 1")
