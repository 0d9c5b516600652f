"""Tests CREATE INDEX on columns that hold no vectors: of the class SAI, as frameworks issue it, and without a class."""

import pytest
from cassandra import InvalidRequest
from cassandra.protocol import ConfigurationException
from server import eventually

pytestmark = pytest.mark.embedded("a gateway hands these to Cassandra")

SAI = "org.apache.cassandra.index.sai.StorageAttachedIndex"


@pytest.fixture
def table(session):
    session.execute(
        "CREATE TABLE t (p int PRIMARY KEY, body_blob text, vector vector<float, 2>, attributes_blob text, metadata_s map<text, text>)"
    )
    return session


def indexes(session):
    """The indexes of the table as the driver knows them: the targets by name."""
    table = session.cluster.metadata.keyspaces[session.keyspace].tables["t"]
    return {name: index.index_options["target"] for name, index in table.indexes.items()}


def test_the_statements_of_cassio_make_indexes_that_the_driver_sees(table):
    for _ in range(2):
        table.execute(f"CREATE CUSTOM INDEX IF NOT EXISTS eidx_metadata_s_t ON {table.keyspace}.t (ENTRIES(metadata_s)) USING '{SAI}'")
        table.execute(f"CREATE CUSTOM INDEX IF NOT EXISTS idx_vector_t ON {table.keyspace}.t (vector) USING '{SAI}'")
    expected = {"eidx_metadata_s_t": "entries(metadata_s)", "idx_vector_t": "vector"}
    eventually(lambda: indexes(table) == expected)
    row = table.execute("DESCRIBE INDEX eidx_metadata_s_t").one()
    assert row.create_statement == f"CREATE CUSTOM INDEX eidx_metadata_s_t ON {table.keyspace}.t(entries(metadata_s)) USING '{SAI}';"
    table.execute("DROP INDEX eidx_metadata_s_t")
    table.execute("DROP INDEX IF EXISTS eidx_metadata_s_t")
    del expected["eidx_metadata_s_t"]
    eventually(lambda: indexes(table) == expected)


def test_what_cassandra_refuses_is_refused(table):
    analyzed = "CREATE CUSTOM INDEX ON t (body_blob) USING 'sai' WITH OPTIONS = {'index_analyzer': 'standard'}"
    with pytest.raises(ConfigurationException, match=r"Properties specified \[index_analyzer\] are not understood by StorageAttachedIndex"):
        table.execute(analyzed)
    with pytest.raises(InvalidRequest, match="only partition key column p"):
        table.execute("CREATE CUSTOM INDEX ON t (p) USING 'sai'")
    table.execute("CREATE CUSTOM INDEX i ON t (body_blob) USING 'sai'")
    with pytest.raises(InvalidRequest, match="t_body_blob_idx is a duplicate of existing index i"):
        table.execute("CREATE CUSTOM INDEX ON t (body_blob) USING 'sai'")
    with pytest.raises(InvalidRequest, match=r"dependent secondary indexes \(i\)"):
        table.execute("ALTER TABLE t DROP body_blob")


def test_a_search_is_filtered_by_a_column_with_an_index_of_its_own(table, server):
    for p in range(100):
        table.execute(
            "INSERT INTO t (p, vector, body_blob, metadata_s) VALUES (%s, %s, %s, %s)",
            (p, [1.0, p / 100], str(p % 10), {"kind": str(p % 2)}),
        )
    table.execute("CREATE CUSTOM INDEX ON t (vector) USING 'sai'")
    by_text = "SELECT p FROM t WHERE body_blob = '7' ORDER BY vector ANN OF [1.0, 0.0] LIMIT 3"
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        table.execute(by_text)
    table.execute("CREATE CUSTOM INDEX ON t (body_blob) USING 'sai'")
    table.execute("CREATE CUSTOM INDEX ON t (ENTRIES(metadata_s)) USING 'sai'")
    assert [row.p for row in table.execute(by_text)] == [7, 17, 27]
    by_entry = "SELECT p FROM t WHERE metadata_s['kind'] = '1' AND body_blob = '7' ORDER BY vector ANN OF [1.0, 0.0] LIMIT 2"
    assert [row.p for row in table.execute(by_entry)] == [7, 17]
    # Over HTTP the index keeps the columns, too.
    path = f"/api/v1/indexes/{table.keyspace}/t_vector_idx/ann"
    search = {
        "vector": [1.0, 0.0],
        "limit": 2,
        "filter": {"restrictions": [{"type": "==", "lhs": "body_blob", "rhs": "7"}], "allow_filtering": True},
    }
    eventually(lambda: server.http(path, search)[0] == 200)
    table.execute("DROP INDEX t_body_blob_idx")
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        table.execute(by_text)
    assert [row.p for row in table.execute(by_text + " ALLOW FILTERING")] == [7, 17, 27]


def test_an_index_without_a_class_finds_rows_and_the_driver_sees_it(table):
    table.execute("INSERT INTO t (p, body_blob, metadata_s) VALUES (1, 'a', {'k': 'v'})")
    table.execute("CREATE INDEX ON t (body_blob)")
    table.execute("CREATE INDEX by_value ON t (VALUES(metadata_s))")
    table.execute("INSERT INTO t (p, body_blob, metadata_s) VALUES (2, 'b', {'l': 'v'})")
    eventually(lambda: indexes(table) == {"t_body_blob_idx": "body_blob", "by_value": "values(metadata_s)"})
    metadata = table.cluster.metadata.keyspaces[table.keyspace].tables["t"].indexes["by_value"]
    assert metadata.kind == "COMPOSITES"
    assert metadata.as_cql_query() == f"CREATE INDEX by_value ON {table.keyspace}.t (values(metadata_s))"
    assert [row.p for row in table.execute("SELECT p FROM t WHERE body_blob = 'a'")] == [1]
    assert {row.p for row in table.execute("SELECT p FROM t WHERE metadata_s CONTAINS 'v'")} == {1, 2}
    both = "SELECT p FROM t WHERE body_blob = 'b' AND metadata_s CONTAINS 'v'"
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        table.execute(both)
    assert [row.p for row in table.execute(f"{both} ALLOW FILTERING")] == [2]


def test_an_index_takes_letters_for_those_that_they_resemble(table):
    options = "{'case_sensitive': 'false', 'normalize': 'true', 'ascii': 'true'}"
    table.execute(f"CREATE CUSTOM INDEX ON t (body_blob) USING 'sai' WITH OPTIONS = {options}")
    for p, text in enumerate(["\u00c9t\u00e9", "e\u0301te\u0301", "ete", "etes"]):
        table.execute("INSERT INTO t (p, body_blob) VALUES (%s, %s)", (p, text))
    rows = table.execute("SELECT p FROM t WHERE body_blob = %s", ("ET\u00c9",))
    assert {row.p for row in rows} == {0, 1, 2}
