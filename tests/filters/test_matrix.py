"""Tests that a search with a filter finds exactly what brute force finds: every operator, on columns
of every type, by indexes of every form, over CQL and over HTTP.

Columns of a few types are searched by indexes of every form, and those of the others by one. With
ALL_FORMS=1 (`make test-filters-all`) each type has all forms."""

import os

import pytest
from edges import BY_NAME
from matrix import INDEXES, OWN_INDEXES, Table, WithOwnIndexes, by_cql, by_http, by_index_alone, none, searches
from server import eventually

IN_FULL = BY_NAME.keys() if "ALL_FORMS" in os.environ else {"int", "text", "float", "timeuuid", "duration"}


def skip_unless_in_full(table):
    if table.cql_type.name not in IN_FULL:
        pytest.skip("only with ALL_FORMS=1")


@pytest.fixture(scope="module")
def keyspace(session):
    session.execute("CREATE KEYSPACE filters WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    return "filters"


@pytest.fixture(scope="module", params=BY_NAME)
def table(session, keyspace, request):
    table = Table(BY_NAME[request.param], keyspace, f"of_{request.param}")
    table.create(session)
    yield table
    session.execute(f"DROP TABLE {keyspace}.{table.name}")


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index.name)
def test_a_filter_finds_what_brute_force_finds(server, session, table, index):
    if index not in table.indexes:
        pytest.skip(f"no index names a column of type {table.cql_type.name}")
    if index is not INDEXES[0]:
        skip_unless_in_full(table)
    wanted = list(searches(table, index))
    none(by_cql(session, wanted))
    none(by_index_alone(session, wanted))
    none(by_http(server, wanted))


def test_a_column_with_an_index_of_its_own_counts_as_named(server, session, keyspace, table):
    if not table.cql_type.can_be_declared:
        pytest.skip(f"no index is on a column of type {table.cql_type.name}")
    skip_unless_in_full(table)
    own = WithOwnIndexes()
    table.drop_indexes_but(session, own)
    for target in OWN_INDEXES:
        table.create_own_index(session, target)
    wanted = list(searches(table, own))
    none(by_cql(session, wanted))
    # The index on vectors is built anew with these columns.
    path = f"/api/v1/indexes/{keyspace}/{table.index_name(own)}/ann"
    eventually(lambda: server.http(path, {"vector": [0, 0], "return_columns": table.others})[0] == 200, seconds=60)
    none(by_index_alone(session, wanted))
    none(by_http(server, wanted))
