"""Tests that searches for words, for vectors, and for both, through gateways and over HTTP, find
exactly what brute force finds where the rows lie in a real Cassandra, by the table of cases of
tests/full_text.

With one node, which is the short form, local indexes are searched by some kinds of statements only."""

import sys

import pytest
from conftest import NODES, TESTS
from server import eventually

for folder in ("full_text", "filters", "histories"):
    sys.path.append(str(TESTS / folder))

from cases import KINDS, by_cql, by_http, cases, none  # noqa: E402
from films import FORMS, LOCAL, Films  # noqa: E402
from service import Service  # noqa: E402

KEYSPACE = "full_text_cases"
OF_LOCAL = {"WordsInBoth", "NearWithWords", "AllWithWords", "Fused"}


@pytest.fixture(scope="module")
def films(session, stores):
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}}")
    films = Films(KEYSPACE, "films", partitions=3, rows_each=30)
    films.create(session)
    for store in stores:
        films.wait(lambda *index: eventually(lambda: store.serves(*index), seconds=120))  # noqa: B023
    yield films
    session.execute(f"DROP KEYSPACE {KEYSPACE}")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_searches_find_what_brute_force_finds(session, stores, films, form):
    for kind in KINDS:
        if NODES > 1 or form is not LOCAL or type(kind).__name__ in OF_LOCAL:
            none(by_cql(session, kind, cases(films, form, each=1)))
    none(by_http(Service(stores[0]), films, form, each=1))
