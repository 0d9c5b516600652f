"""Tests that searches with a filter, through gateways and over HTTP, find exactly what brute force
finds where the rows lie in a real Cassandra, by the table of cases of tests/filters.

With one node, which is the short form, columns are of some types only."""

import sys

import pytest
from conftest import NODES, TESTS
from server import eventually

for folder in ("filters", "histories"):
    sys.path.append(str(TESTS / folder))

from edges import BY_NAME  # noqa: E402
from matrix import Table as Cases  # noqa: E402
from matrix import by_cql, by_http, none, searches  # noqa: E402

TYPES = ["int", "text", "decimal", "uuid"] if NODES == 1 else list(BY_NAME)


@pytest.fixture(scope="module")
def keyspace(session):
    session.execute("CREATE KEYSPACE filter_cases WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}")
    return "filter_cases"


@pytest.mark.parametrize("name", TYPES)
def test_filters_find_what_brute_force_finds(session, stores, keyspace, name):
    cases = Cases(BY_NAME[name], keyspace, f"of_{name}")
    cases.create(session)
    for index in cases.indexes:
        for store in stores:
            eventually(lambda: store.serves(keyspace, cases.index_name(index), cases.count(index)), seconds=120)
    for index in cases.indexes:
        wanted = list(searches(cases, index))
        none(by_cql(session, wanted))
        none(by_http(stores[0], wanted))
    session.execute(f"DROP TABLE {keyspace}.{cases.name}")
