"""Tests bad input: the database's own error code, a text that helps, and a connection that goes
on."""

import re

import pytest
import wire
from cassandra import InvalidRequest
from cassandra.protocol import SyntaxException
from wire import Wire


@pytest.fixture(scope="module")
def table(shared_session):
    session = shared_session
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, n int, x text, b blob, at timestamp, u uuid, i inet, v vector<float, 3>, l list<int>)"
    )
    session.execute("CREATE TABLE texts (p text, c text, v int, PRIMARY KEY (p, c))")
    return session


@pytest.mark.embedded("the words of its own parser")
@pytest.mark.parametrize(
    "statement, where, found",
    [
        ("SELEC * FROM t", "line 1:1", "SELEC"),
        ("SELECT * FRM t", "line 1:10", "FRM"),
        ("SELECT *\nFROM t\n  WHERE k == 1", "line 3:", "="),
        ("SELECT * FROM t WHERE k = 1 LIMIT", "line 1:", ""),
        ("INSERT INTO t (k, n) VALUES (1, )", "line 1:33", r"\)"),
        ("UPDATE t SET WHERE k = 1", "line 1:14", "WHERE"),
        ("SELECT * FROM t WHERE x = 'open", "line 1:27", ""),
        ("CREATE TABLE u (k int PRIMARY KEY", "line 1:", ""),
        ("SELECT * FROM t; SELECT * FROM t", "line 1:18", "SELECT"),
        ("", "line 1:1", ""),
        ("SELECT * FROM t WHERE k = $", "line 1:27", r"\$"),
    ],
)
def test_a_syntax_error_says_where_and_what_was_expected(table, statement, where, found):
    with pytest.raises(SyntaxException) as error:
        table.execute(statement)
    message = error.value.message
    assert where in message and re.search(found, message), message
    assert "expected" in message or "open" in statement, message


@pytest.mark.parametrize(
    "statement, text",
    [
        # Errors name unknown names.
        ("SELECT nothing FROM t", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT * FROM nokeyspace.t", "nokeyspace"),
        ("INSERT INTO t (k, nothing) VALUES (1, 2)", "nothing"),
        ("UPDATE t SET nothing = 1 WHERE k = 1", "nothing"),
        ("DELETE nothing FROM t WHERE k = 1", "nothing"),
        ("SELECT nofunction(k) FROM t", "nofunction"),
        # Values of a wrong type name the column or the type.
        ("INSERT INTO t (k, n) VALUES (1, 'text')", "n|int"),
        ("INSERT INTO t (k, x) VALUES (1, 5)", "x|text"),
        ("INSERT INTO t (k, n) VALUES (1, 99999999999)", "int"),
        ("INSERT INTO t (k, n) VALUES (1, 1.5)", "int"),
        ("INSERT INTO t (k, b) VALUES (1, 'text')", "blob"),
        ("INSERT INTO t (k, at) VALUES (1, 'yesterday')", "yesterday|date"),
        ("INSERT INTO t (k, u) VALUES (1, 'x')", "uuid"),
        ("INSERT INTO t (k, i) VALUES (1, 'nohost.invalid.')", "inet|nohost"),
        ("INSERT INTO t (k, l) VALUES (1, {1})", "l|list"),
        ("INSERT INTO t (k, l) VALUES (1, ['a'])", "l|int"),
        ("SELECT * FROM t WHERE k = 'text'", "k|int"),
        # Vectors.
        ("INSERT INTO t (k, v) VALUES (1, [1, 2])", "3"),
        ("INSERT INTO t (k, v) VALUES (1, [1, 2, 3, 4])", "3"),
        ("INSERT INTO t (k, v) VALUES (1, [])", "3|vector"),
        ("INSERT INTO t (k, v) VALUES (1, [1, 2, 'x'])", "vector|float|v"),
        ("INSERT INTO t (k, v) VALUES (1, [1, null, 3])", "(?i)null"),
        ("INSERT INTO t (k, v) VALUES (1, 5)", "vector"),
        ("UPDATE t SET v[0] = 1 WHERE k = 1", "v"),
        ("UPDATE t SET v = v + [1, 1, 1] WHERE k = 1", "v"),
        # Something is missing, or there is too much.
        ("INSERT INTO t (n) VALUES (1)", "k"),
        ("INSERT INTO t (k, n) VALUES (1)", "(?i)values"),
        ("INSERT INTO t (k, k) VALUES (1, 1)", "(?i)duplicate|multiple|twice"),
        ("UPDATE t SET n = 1", "k|WHERE"),
        ("UPDATE t SET n = 1 WHERE n = 1", "k|n"),
        ("UPDATE t SET k = 2 WHERE k = 1", "k"),
        ("UPDATE t SET n = 1, n = 2 WHERE k = 1", "n"),
        ("INSERT INTO t (k, n) VALUES (null, 1)", "k"),
        ("INSERT INTO texts (p, c, v) VALUES ('', 'x', 1)", "(?i)empty"),
        # Unbound variables.
        ("SELECT * FROM t WHERE k = ?", "(?i)bound|bind|variable|value"),
        ("INSERT INTO t (k, n) VALUES (?, ?)", "(?i)bound|bind|variable|value"),
    ],
)
def test_an_invalid_statement_names_what_is_wrong(table, statement, text):
    with pytest.raises((InvalidRequest, SyntaxException), match=text) as error:
        table.execute(statement)
    if isinstance(error.value, SyntaxException):
        assert statement.startswith("UPDATE t SET n = 1") or "null, 1" in statement, "only these may be of syntax"
    assert not list(table.execute("SELECT * FROM t"))


@pytest.mark.embedded("another index than Cassandra's")
@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "1e39"])
def test_vector_elements_must_be_finite_where_they_are_indexed(table, bad):
    table.execute("CREATE TABLE IF NOT EXISTS indexed (k int PRIMARY KEY, v vector<float, 3>)")
    table.execute("CREATE CUSTOM INDEX IF NOT EXISTS of_finite ON indexed (v) USING 'vector_index'")
    value = float(bad)
    literal = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(bad, bad)
    with pytest.raises(InvalidRequest, match="(?i)finite|NaN|infinit|out of range"):
        table.execute(f"INSERT INTO indexed (k, v) VALUES (1, [1, {literal}, 3])")
    with pytest.raises(InvalidRequest, match="(?i)finite|NaN|infinit|out of range"):
        table.execute(f"SELECT k FROM indexed ORDER BY v ANN OF [1, {literal}, 3] LIMIT 1")
    if bad != "1e39":
        with pytest.raises(InvalidRequest, match="(?i)finite|NaN|infinit"):
            table.execute(table.prepare("INSERT INTO indexed (k, v) VALUES (1, ?)"), ([1, value, 3],))
        with pytest.raises(InvalidRequest, match="(?i)finite|NaN|infinit"):
            table.execute(table.prepare("SELECT k FROM indexed ORDER BY v ANN OF ? LIMIT 1"), ([1, value, 3],))
    assert not list(table.execute("SELECT * FROM indexed"))


@pytest.mark.embedded("which statements name what is wrong is its own")
def test_bytes_of_a_wrong_length_are_refused(table):
    with Wire(table_server(table)) as connection:
        connection.query(f"USE {table.keyspace}")
        for column, content in [("n", b"\x00\x01"), ("v", b"\x00" * 8), ("v", b"\x00" * 16), ("u", b"\x00"), ("x", b"\xff\xfe"), ("i", b"123")]:
            values = b"\x00\x02" + wire.value(b"\x00\x00\x00\x01") + wire.value(content)
            answer = connection.query(f"INSERT INTO t (k, {column}) VALUES (?, ?)", wire.VALUES, values)
            assert answer.error and answer.error[0] == wire.INVALID, column
        assert connection.query("SELECT * FROM t").kind == wire.ROWS
    assert not list(table.execute("SELECT * FROM t"))


def table_server(session):
    """The address of a session's server."""
    endpoint = session.cluster.contact_points[0]

    class Address:
        host, cql_port = endpoint, session.cluster.port

    return Address


@pytest.mark.embedded("limits of its own storage")
@pytest.mark.parametrize("p, c", [("x" * 70_000, "c"), ("p", "x" * 70_000), ("p" * 40_000, "c" * 40_000)])
def test_oversized_keys_are_refused(table, p, c):
    insert = table.prepare("INSERT INTO texts (p, c, v) VALUES (?, ?, 1)")
    with pytest.raises(InvalidRequest, match="(?i)key"):
        table.execute(insert, (p, c))
    assert not list(table.execute("SELECT * FROM texts"))


def test_large_keys_and_values_below_the_limit_are_kept(table):
    key, text = "k" * 30_000, "v" * 5_000_000
    table.execute(table.prepare("INSERT INTO texts (p, c, v) VALUES (?, ?, 1)"), (key, key))
    assert table.execute(table.prepare("SELECT c FROM texts WHERE p = ?"), (key,)).one().c == key
    table.execute(table.prepare("DELETE FROM texts WHERE p = ?"), (key,))
    table.execute(table.prepare("INSERT INTO t (k, x) VALUES (5, ?)"), (text,))
    assert table.execute("SELECT x FROM t WHERE k = 5").one().x == text
    table.execute("DELETE FROM t WHERE k = 5")


def test_the_connection_goes_on_after_every_kind_of_error(table):
    statements = [
        "NONSENSE",
        "SELECT * FROM nowhere",
        f"INSERT INTO {table.keyspace}.t (k, n) VALUES (1, 'x')",
        "SELECT * FROM system.local WHERE key = ?",
        "CREATE KEYSPACE system WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        f"CREATE TABLE {table.keyspace}.t (k int PRIMARY KEY)",
        "SELECT " + "(" * 100_000,
        "\x00\x01\x02",
        "USE nokeyspace",
    ]
    with Wire(table_server(table)) as connection:
        for _ in range(3):
            for statement in statements:
                assert connection.query(statement).error, statement
                assert connection.ask(wire.PREPARE, wire.long_string(statement)).opcode in (wire.ERROR, wire.RESULT)
                assert connection.query("SELECT key FROM system.local").kind == wire.ROWS


# Statements that are not carried out, with the reason and the way round that the error tells.
UNSUPPORTED = {
    "CREATE MATERIALIZED VIEW m AS SELECT * FROM t WHERE k IS NOT NULL PRIMARY KEY (k)": "copy of a table.*index.*second table",
    "ALTER MATERIALIZED VIEW m WITH comment = 'x'": "copy of a table.*index.*second table",
    "DROP MATERIALIZED VIEW m": "copy of a table.*index.*second table",
    "PRUNE MATERIALIZED VIEW m WHERE k = 1": "no views.*leave the statement out",
    "CREATE FUNCTION f (x int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return x;'": "no code.*built-in",
    "CREATE OR REPLACE FUNCTION f (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS $$ return x $$": "no code.*built-in",
    "DROP FUNCTION f (int)": "no code.*built-in",
    "CREATE AGGREGATE a (int) SFUNC f STYPE int": "no code.*built-in",
    "CREATE OR REPLACE AGGREGATE a (int) SFUNC f STYPE int": "no code.*built-in",
    "DROP AGGREGATE a": "no code.*built-in",
    "CREATE TRIGGER r ON t USING 'org.example.Trigger'": "no code.*CDC log",
    "DROP TRIGGER r ON t": "no code.*CDC log",
    "CREATE SERVICE LEVEL s WITH shares = 100": "one node.*--search-share",
    "CREATE SERVICE_LEVEL s WITH timeout = 5s": "one node.*--search-share",
    "ALTER SERVICE LEVEL s WITH workload_type = 'batch'": "one node.*--search-share",
    "DROP SERVICE LEVEL IF EXISTS s": "one node.*--search-share",
    "ATTACH SERVICE LEVEL s TO r": "one node.*--search-share",
    "DETACH SERVICE LEVEL FROM r": "one node.*--search-share",
    "LIST SERVICE LEVEL s": "one node.*--search-share",
    "LIST ALL SERVICE LEVELS": "one node.*--search-share",
    "LIST ATTACHED SERVICE LEVEL OF r": "one node.*--search-share",
    "LIST ALL ATTACHED SERVICE LEVELS": "one node.*--search-share",
    "LIST EFFECTIVE SERVICE LEVEL OF r": "one node.*--search-share",
    "ALTER INDEX i WITH OPTIONS = {'a': 'b'}": "is built for.*create it again",
    "REBUILD INDEX i": "follows its table.*create it again",
    "CREATE TABLE {ks}.c (k int PRIMARY KEY, v int) WITH COMPACT STORAGE": "Thrift.*leave the option out",
    "ALTER TABLE {ks}.t DROP COMPACT STORAGE": "Thrift.*leave the statement out",
    "CREATE TABLE {ks}.c (k int PRIMARY KEY, v text MASKED WITH DEFAULT)": "mask.*mask_default",
    "ALTER TABLE {ks}.t ALTER x MASKED WITH DEFAULT": "mask.*mask_default",
}


@pytest.mark.embedded("Cassandra and ScyllaDB have all of these")
@pytest.mark.parametrize("statement, told", UNSUPPORTED.items())
def test_what_is_not_supported_is_refused_by_name_also_when_it_is_prepared(table, statement, told):
    statement = statement.replace("{ks}", table.keyspace)
    for text in [statement, statement + ";", statement.lower()]:
        with Wire(table_server(table)) as connection:
            code, message = connection.query(text).error
            assert code == wire.INVALID and "not supported" in message and re.search(told, message), message
            assert connection.ask(wire.PREPARE, wire.long_string(text)).error == (code, message)
    named = re.match(r"(.*) is not supported by Annulus: ", message)
    if named:
        words = named[1].removeprefix("ALTER TABLE ... DROP ")
        assert words in statement
    with pytest.raises(InvalidRequest, match="not supported"):
        table.execute(statement)
    with pytest.raises(InvalidRequest, match="not supported"):
        table.prepare(statement)
