"""Tests searches for words, for vectors, and for both, through a gateway before a real Cassandra: by
the table of cases of tests/full_text, with fewer rows and fewer queries, and what a gateway adds."""

import sys

import pytest
from cassandra import InvalidRequest
from clients import client_of_one
from conftest import TESTS
from server import eventually

for folder in ("full_text", "filters", "histories"):
    sys.path.append(str(TESTS / folder))

from cases import KINDS, by_cql, by_http, cases, none  # noqa: E402
from films import FORMS, GLOBAL, Films  # noqa: E402
from service import Service  # noqa: E402

KEYSPACE = "words_of_films"
SERVES_SECONDS = 120


@pytest.fixture(scope="module")
def session(gateways):
    with client_of_one(gateways[0].address) as cluster:
        session = cluster.connect()
        session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        yield session
        session.execute(f"DROP KEYSPACE {KEYSPACE}")


@pytest.fixture(scope="module")
def films(session, store):
    films = Films(KEYSPACE, "films", partitions=4, rows_each=30)
    films.create(session)
    films.wait(lambda *index: eventually(lambda: store.serves(*index), seconds=SERVES_SECONDS))
    return films


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_a_statement_finds_what_brute_force_finds(session, films, kind, form):
    none(by_cql(session, kind, cases(films, form, each=1)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_request_finds_what_brute_force_finds(store, films, form):
    none(by_http(Service(store), films, form, each=1))


def test_an_excerpt_comes_with_a_row(session, films):
    word = "moon"
    wanted = films.words(word)
    text = f"SELECT p, c, BM25_HIGHLIGHT(body, %s) AS mark FROM {KEYSPACE}.films ORDER BY BM25(body, %s) LIMIT 1000"
    rows = session.execute(text, (word, word)).all()
    assert {(row.p, row.c) for row in rows} == set(wanted)
    assert all("<b>moon</b>" in row.mark.lower() for row in rows)


def test_rows_are_as_they_are_now(session, films, store):
    """The index learns of a write later, but a row that is gone or has no text comes no more."""
    session.execute(f"INSERT INTO {KEYSPACE}.films (p, c, body, title) VALUES (0, 9000, 'unheard zebra', 'zebra')")
    select = f"SELECT p, c FROM {KEYSPACE}.films WHERE BM25(body, 'zebra') > 0 ORDER BY BM25(body, 'zebra') LIMIT 10"
    found = lambda: [(row.p, row.c) for row in session.execute(select)]  # noqa: E731
    eventually(lambda: found() == [(0, 9000)], seconds=SERVES_SECONDS)
    session.execute(f"UPDATE {KEYSPACE}.films SET body = null WHERE p = 0 AND c = 9000")
    eventually(lambda: found() == [], seconds=SERVES_SECONDS)
    session.execute(f"DELETE FROM {KEYSPACE}.films WHERE p = 0 AND c = 9000")
    assert found() == []


def test_what_cannot_be_asked(session, films):
    for rest, words in [
        ("ORDER BY BM25(body, 'x')", "must have a limit specified"),
        ("ORDER BY BM25(body, '(x') LIMIT 3", "at character 1 of the query"),
        ("ORDER BY RRF(ANN(v, [1]), BM25(body, 'x')) LIMIT 3", "dimension"),
        ("ORDER BY BM25(lang, 'x') LIMIT 3", "requires the column to be indexed using 'fulltext_index'"),
        ("WHERE BM25(body, 'x') > 1", "literal 0"),
    ]:
        with pytest.raises(InvalidRequest, match=words):
            session.execute(f"SELECT p FROM {KEYSPACE}.films {rest}").all()


def test_an_index_comes_and_goes(session, films, store):
    session.execute(f"CREATE TABLE {KEYSPACE}.notes (id int PRIMARY KEY, body text)")
    session.execute(f"INSERT INTO {KEYSPACE}.notes (id, body) VALUES (1, 'running cats')")
    select = f"SELECT id FROM {KEYSPACE}.notes ORDER BY BM25(body, 'cat') LIMIT 3"
    with pytest.raises(InvalidRequest, match="requires the column to be indexed using 'fulltext_index'"):
        session.execute(select)
    session.execute(
        f"CREATE CUSTOM INDEX notes_body ON {KEYSPACE}.notes (body) USING 'fulltext_index' WITH OPTIONS = {{'analyzer': 'english'}}"
    )
    eventually(lambda: store.serves(KEYSPACE, "notes_body", 1), seconds=SERVES_SECONDS)
    assert [row.id for row in session.execute(select)] == [1]
    [row] = session.execute(
        "SELECT options FROM system_schema.indexes WHERE keyspace_name = %s AND table_name = 'notes' AND index_name = 'notes_body'",
        (KEYSPACE,),
    )
    options = dict(row.options)
    assert options.pop("index_version")
    assert options == {"class_name": "fulltext_index", "target": "body", "analyzer": "english"}
    session.execute(f"DROP INDEX {KEYSPACE}.notes_body")
    with pytest.raises(InvalidRequest, match="requires the column to be indexed using 'fulltext_index'"):
        session.execute(select)
    assert store.index_status(KEYSPACE, GLOBAL.words_index(films))["status"] == "SERVING"
