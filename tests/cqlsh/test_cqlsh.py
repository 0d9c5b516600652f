"""Tests Apache Cassandra's own shell: statements, and DESCRIBE, which it leaves to the server."""

import pytest
from shell import cqlsh

SCHEMA = """
CREATE KEYSPACE shell WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'};
CREATE TABLE shell.notes (
    owner text, at timestamp, "Mixed" int, tags set<text>, kind text STATIC, v vector<float, 3>,
    PRIMARY KEY (owner, at)
) WITH CLUSTERING ORDER BY (at DESC) AND comment = 'it''s a note' AND default_time_to_live = 3600;
CREATE CUSTOM INDEX notes_v ON shell.notes(v) USING 'vector_index'
    WITH OPTIONS = {'similarity_function': 'euclidean', 'search_beam_width': '100'};
"""


@pytest.fixture(scope="module")
def schema(server):
    code, _, errors = cqlsh(server, SCHEMA.strip())
    assert (code, errors) == (0, "")
    yield
    cqlsh(server, "DROP KEYSPACE shell;")


def describe(server, what):
    code, text, errors = cqlsh(server, f"DESCRIBE {what};")
    assert (code, errors) == (0, "")
    return text


def test_lists(server, schema):
    assert "shell" in describe(server, "KEYSPACES")
    assert "notes" in describe(server, "TABLES")
    assert "Cluster:" in describe(server, "CLUSTER")


def test_a_described_table_can_be_created_again(server, schema):
    text = describe(server, "TABLE shell.notes")
    assert '"Mixed" int' in text and "notes_v" in text and "'search_beam_width': '100'" in text
    assert "index_version" not in text
    again = text.replace("shell.notes", "shell.copies").replace("notes_v", "copies_v")
    code, _, errors = cqlsh(server, again.strip())
    assert (code, errors) == (0, ""), again
    assert describe(server, "TABLE shell.copies") == again
    cqlsh(server, "DROP TABLE shell.copies;")


@pytest.mark.parametrize("what", ["SCHEMA", "FULL SCHEMA", "KEYSPACE shell", "shell", "INDEX shell.notes_v"])
def test_describes_what_holds_the_index(server, schema, what):
    assert "CREATE CUSTOM INDEX notes_v ON shell.notes(v) USING 'vector_index'" in describe(server, what)


def test_rows_are_shown(server, schema):
    code, text, errors = cqlsh(
        server,
        "INSERT INTO shell.notes (owner, at, tags, v) VALUES ('ann', '2026-01-02', {'b', 'a'}, [1, 2, 3]);"
        "SELECT owner, at, tags, v FROM shell.notes;"
        "SELECT owner FROM shell.notes WHERE owner = 'nobody';",
    )
    assert (code, errors) == (0, "")
    assert "2026-01-02" in text and "{'a', 'b'}" in text and "[1, 2, 3]" in text and "(0 rows)" in text


def test_a_syntax_error_says_where(server):
    code, _, errors = cqlsh(server, "SELECT FROM WHERE;")
    assert code == 2 and "SyntaxException" in errors and "line 1" in errors


def test_a_described_type_can_be_created_again(server, schema):
    created = "CREATE TYPE shell.inner (a int); CREATE TYPE shell.outer (i frozen<inner>, l list<text>);"
    assert cqlsh(server, created)[0] == 0
    text = describe(server, "TYPE shell.outer")
    assert text.split() == "CREATE TYPE shell.outer ( i frozen<inner>, l list<text> );".split()
    whole = describe(server, "KEYSPACE shell")
    assert whole.index("TYPE shell.inner") < whole.index("TYPE shell.outer") < whole.index("TABLE shell.notes")
    code, _, errors = cqlsh(server, f"DROP TYPE shell.outer;\n{text.strip()}")
    assert (code, errors) == (0, "")
    assert describe(server, "TYPE shell.outer") == text
    inserted = "INSERT INTO shell.of_types (k, o) VALUES (1, {i: {a: 2}, l: ['x']}); SELECT o FROM shell.of_types;"
    code, text, errors = cqlsh(server, f"CREATE TABLE shell.of_types (k int PRIMARY KEY, o frozen<outer>); {inserted}")
    assert (code, errors) == (0, "")
    assert "{i: {a: 2}, l: ['x']}" in text
