"""Tests that the state of a connection, and traces and warnings beside an answer, stay intact."""

import pytest
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.query import SimpleStatement

KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS kept WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture(params=[(4, False), (4, "lz4"), (4, "snappy"), (5, False), (5, "lz4")], ids="{0[0]}-{0[1]}".format)
def session(gateway, request):
    version, compression = request.param
    with Cluster([gateway.host], port=gateway.cql_port, protocol_version=version, compression=compression) as cluster:
        session = cluster.connect()
        session.default_timeout = 60
        session.execute(KEYSPACE)
        session.execute("USE kept")
        session.execute("CREATE TABLE IF NOT EXISTS texts (part int, number int, text text, PRIMARY KEY (part, number))")
        session.execute("TRUNCATE texts")
        yield session


def test_use_paging_and_large_rows(session):
    insert = session.prepare("INSERT INTO texts (part, number, text) VALUES (1, ?, ?)")
    texts = {number: str(number) * 20_000 for number in range(40)}
    for number, text in texts.items():
        session.execute(insert, (number, text))
    select = SimpleStatement("SELECT number, text FROM texts WHERE part = 1", fetch_size=7)
    result = session.execute(select)
    assert result.paging_state
    assert {row.number: row.text for row in result} == texts
    in_one_page = session.execute(SimpleStatement(select.query_string, fetch_size=None))
    assert {row.number: row.text for row in in_one_page} == texts


def test_traces_and_warnings(session):
    result = session.execute("SELECT * FROM texts WHERE part = 1", trace=True)
    assert result.get_query_trace(max_wait_sec=30).events
    [warning] = session.execute("SELECT count(*) FROM texts").response_future.warnings
    assert "Aggregation query used without partition key" in warning


def test_errors_are_the_nodes_own(session, gateway):
    with Cluster([gateway.node[0]], port=gateway.node[1], protocol_version=4) as direct:
        for statement in ("SELEC", "SELECT * FROM kept.nowhere", "INSERT INTO kept.texts (part) VALUES (1)"):
            errors = []
            for asked in (session, direct.connect()):
                with pytest.raises(Exception) as raised:
                    asked.execute(statement)
                errors.append((type(raised.value), str(raised.value)))
            assert errors[0] == errors[1]
