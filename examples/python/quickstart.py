"""Finds books by vectors and by words."""

import os

from cassandra.cluster import Cluster, ResultSet

SCHEMA = [
    """
    CREATE KEYSPACE IF NOT EXISTS quickstart
        WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
    """,
    """
    CREATE TABLE IF NOT EXISTS quickstart.books
        (id int PRIMARY KEY, title text, year int, about text, embedding vector<float, 3>)
    """,
    # The columns after the first are those that searches filter by.
    """
    CREATE CUSTOM INDEX IF NOT EXISTS books_by_embedding ON quickstart.books (embedding, year)
        USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}
    """,
    """
    CREATE CUSTOM INDEX IF NOT EXISTS books_by_words ON quickstart.books (about, year)
        USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}
    """,
]
INSERT = "INSERT INTO quickstart.books (id, title, year, about, embedding) VALUES (?, ?, ?, ?, ?)"
FILTERED = "SELECT title, year FROM quickstart.books WHERE year >= ? ORDER BY embedding ANN OF ? LIMIT 2"
HYBRID = "SELECT title, year FROM quickstart.books ORDER BY RRF(ANN(embedding, ?), BM25(about, ?)) LIMIT 2"

# A model makes such vectors of texts. Here the numbers say how much sea, space and love is in a book.
BOOKS = [
    (1, "Moby-Dick", 1851, "A captain hunts a white whale across the oceans.", [0.9, 0.0, 0.1]),
    (2, "Pride and Prejudice", 1813, "Two proud people learn to love.", [0.0, 0.0, 1.0]),
    (3, "The Old Man and the Sea", 1952, "An old man rows out alone for one great fish.", [0.9, 0.0, 0.3]),
    (4, "Solaris", 1961, "Far from the Earth, an ocean thinks.", [0.5, 0.8, 0.4]),
]
SEA = [1.0, 0.0, 0.0]


def show(question: str, books: ResultSet) -> None:
    print(question)
    for book in books:
        print(f"  {book.title} ({book.year})")


host, port = os.environ.get("ANNULUS_CQL", "127.0.0.1:9042").split(":")
with Cluster([host], port=int(port)) as cluster:
    session = cluster.connect()
    for statement in SCHEMA:
        session.execute(statement)

    # A driver learns from a prepared statement that a marker is a vector.
    insert = session.prepare(INSERT)
    for book in BOOKS:
        session.execute(insert, book)

    filtered = session.prepare(FILTERED)
    show("Near the sea, since 1900:", session.execute(filtered, (1900, SEA)))

    hybrid = session.prepare(HYBRID)
    show("Near the sea, or about an ocean:", session.execute(hybrid, (SEA, "ocean")))
