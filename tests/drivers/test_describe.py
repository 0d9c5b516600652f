"""Tests DESCRIBE as a statement: rows of names, and CQL that makes the same schema again."""

import pathlib
import re

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


def one_line(text):
    return " ".join(text.split())


def test_a_keyspace_is_described_as_cassandra_takes_it(shared_session):
    """tests/compat asks Cassandra for the statements of the area `described`, which are those of DESCRIBE here."""
    area = pathlib.Path(__file__).parents[1] / "compat" / "statements" / "described.cql"
    lines = [line for line in area.read_text().splitlines() if not line.startswith("--")]
    statements = [one_line(text) for text in re.split(r"\n(?! )", "\n".join(lines))]
    session, keyspace = shared_session, "compat_described"
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    for statement in statements:
        session.execute(statement)
    described = [row.create_statement for row in describe(session, f"KEYSPACE {keyspace}")]
    assert [one_line(text) for text in described[1:]] == statements
    # The whole can be pasted.
    session.execute(f"DROP KEYSPACE {keyspace}")
    for text in described:
        session.execute(text)
    assert [row.create_statement for row in describe(session, f"KEYSPACE {keyspace}")] == described
    session.execute(f"DROP KEYSPACE {keyspace}")


def test_internals_show_the_id_and_dropped_columns(schema):
    schema.execute("CREATE TABLE dr (k int, c int, a int, b text, s int static, v int, PRIMARY KEY (k, c))")
    schema.execute("ALTER TABLE dr DROP a USING TIMESTAMP 1000")
    schema.execute("ALTER TABLE dr DROP s USING TIMESTAMP 3000")
    schema.execute("ALTER TABLE dr DROP b USING TIMESTAMP 2000")
    schema.execute("ALTER TABLE dr ADD b text")
    plain = describe(schema, "TABLE dr")[0].create_statement
    text = describe(schema, "TABLE dr WITH INTERNALS")[0].create_statement
    table = f"{schema.keyspace}.dr"
    assert "WITH ID = " in text and "ALTER" not in plain
    for line in ["    a int", "    s int static"]:
        assert line in text and line not in plain
    assert text.endswith(
        f"ALTER TABLE {table} DROP a USING TIMESTAMP 1000;\n"
        f"ALTER TABLE {table} DROP b USING TIMESTAMP 2000;\n"
        f"ALTER TABLE {table} ADD b text;\n"
        f"ALTER TABLE {table} DROP s USING TIMESTAMP 3000;"
    )
    schema.execute("DROP TABLE dr")
    for statement in text.split(";\n"):
        schema.execute(statement)
    assert describe(schema, "TABLE dr WITH INTERNALS")[0].create_statement == text


def test_logs_are_out_of_the_way(schema):
    assert "u_scylla_cdc_log" not in {row.name for row in describe(schema, "TABLES")}
    assert not [row for row in describe(schema, "SCHEMA") if "_scylla_cdc_log" in row.name]
