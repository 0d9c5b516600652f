"""Tests DESCRIBE as a statement: rows of names, and CQL that makes the same schema again."""

import pytest
from cassandra import InvalidRequest

pytestmark = pytest.mark.embedded("CQL of its own options of tables; a gateway's DESCRIBE is in tests/cluster")

TABLE = """CREATE TABLE t (
    p int, "Q" text, c timeuuid, s int STATIC, m map<text, frozen<list<int>>>, v vector<float, 3>,
    PRIMARY KEY ((p, "Q"), c)
) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s' AND default_time_to_live = 60"""


@pytest.fixture(scope="module")
def schema(shared_session):
    session = shared_session
    session.execute(TABLE)
    session.execute(
        "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
    )
    session.execute("CREATE TABLE u (k int PRIMARY KEY) WITH cdc = {'enabled': true, 'preimage': true}")
    return session


def describe(session, what):
    return list(session.execute(f"DESCRIBE {what}"))


def test_lists_of_names(schema):
    keyspaces = describe(schema, "KEYSPACES")
    assert keyspaces[0]._fields == ("keyspace_name", "type", "name")
    assert {"system", "system_schema", schema.keyspace} <= {row.name for row in keyspaces}
    tables = [(row.keyspace_name, row.type, row.name) for row in describe(schema, "TABLES")]
    assert (schema.keyspace, "table", "t") in tables and (schema.keyspace, "table", "u") in tables


def test_the_cluster(schema):
    row = describe(schema, "CLUSTER")[0]
    assert row.partitioner.endswith("Murmur3Partitioner") and row.cluster


def test_the_statements_of_a_table_make_it_again(schema):
    rows = describe(schema, "TABLE t")
    assert [(row.keyspace_name, row.type, row.name) for row in rows] == [
        (schema.keyspace, "table", "t"),
        (schema.keyspace, "index", "i"),
    ]
    texts = [row.create_statement for row in rows]
    for word in ['"Q" text', "static", "vector<float, 3>", "CLUSTERING ORDER BY (c DESC)", "comment = 'it''s'"]:
        assert word in texts[0]
    assert "'similarity_function': 'euclidean'" in texts[1]
    for internal in ["index_version", "class_name", "target"]:
        assert internal not in texts[1]
    schema.execute("DROP TABLE t")
    for text in texts:
        schema.execute(text)
    assert [row.create_statement for row in describe(schema, "TABLE t")] == texts


def test_a_keyspace_comes_with_its_tables_in_an_order_that_works(schema):
    rows = describe(schema, f"KEYSPACE {schema.keyspace}")
    assert [row.type for row in rows] == ["keyspace", "table", "index", "table"]
    only = describe(schema, f"ONLY KEYSPACE {schema.keyspace}")
    assert [row.type for row in only] == ["keyspace"] and only[0].create_statement == rows[0].create_statement
    whole = [row.create_statement for row in describe(schema, "SCHEMA")]
    at = whole.index(rows[0].create_statement)
    assert whole[at : at + 4] == [row.create_statement for row in rows]


def test_the_log_of_a_table_is_shown_as_its_option(schema):
    (row,) = describe(schema, "TABLE u")
    assert "cdc = {" in row.create_statement and "'preimage': " in row.create_statement
    schema.execute("DROP TABLE u")
    schema.execute(row.create_statement)
    assert describe(schema, "TABLE u") == [row]


def test_an_index(schema):
    (row,) = describe(schema, "INDEX i")
    assert (row.type, row.name) == ("index", "i") and row.create_statement.startswith("CREATE CUSTOM INDEX i ON")


@pytest.mark.parametrize("what", ["TABLE nowhere", "KEYSPACE nokeyspace", "INDEX nothing", "nowhere"])
def test_unknown_names_are_named(schema, what):
    with pytest.raises(InvalidRequest, match=what.split()[-1]):
        describe(schema, what)
