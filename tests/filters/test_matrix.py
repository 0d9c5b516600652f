"""Tests that a search with a filter finds exactly what brute force finds: every operator, on columns
of every type, by indexes of every form, over CQL and over HTTP."""

import pytest
from edges import BY_NAME
from matrix import INDEXES, OWN_INDEXES, Table, WithOwnIndexes, by_cql, by_http, by_index_alone, none, searches


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
    wanted = list(searches(table, index))
    none(by_cql(session, wanted))
    none(by_index_alone(session, wanted))
    none(by_http(server, wanted))


def test_a_column_with_an_index_of_its_own_counts_as_named(server, session, table):
    if not table.cql_type.can_be_declared:
        pytest.skip(f"no index is on a column of type {table.cql_type.name}")
    for target in OWN_INDEXES:
        table.create_own_index(session, target)
    wanted = list(searches(table, WithOwnIndexes()))
    none(by_cql(session, wanted))
    none(by_http(server, wanted))
