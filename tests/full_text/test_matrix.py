"""Tests that searches for words, for vectors, and for both find exactly what brute force finds: every
form of statement, with filters of every kind, by global and by local indexes; and over HTTP, also
with filters that CQL has not.

With QUERIES_EACH=n (`make test-full-text-all`) each has n queries."""

import pytest
from cases import KINDS, by_cql, by_http, cases, none
from films import FORMS, Films


@pytest.fixture(scope="module")
def films(session, service, keyspace):
    films = Films(keyspace, "films")
    films.create(session)
    films.wait(service.wait)
    return films


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_a_statement_finds_what_brute_force_finds(session, films, kind, form):
    none(by_cql(session, kind, cases(films, form)))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_request_finds_what_brute_force_finds(service, films, form):
    none(by_http(service, films, form))
