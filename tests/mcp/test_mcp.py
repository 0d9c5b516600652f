"""`annulus mcp`, by the client of the protocol's own project."""

import asyncio
import json
import os
import signal
import subprocess

import pytest
from cassandra.cluster import Cluster

from model import MCPError, opened, refused, shown
from process import BINARY
from server import Server



class OnPort(Server):
    """A server on a port of CQL that is known before."""

    def __init__(self, data_dir, port):
        super().__init__(data_dir)
        self._command[self._command.index("--cql-port") + 1] = port


TOOLS = ["list_tables", "list_indexes", "describe", "search", "cql"]
STATEMENTS = """
CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE shop.products (id int PRIMARY KEY, name text, colour text, price int, about text, v vector<float, 3>);
CREATE CUSTOM INDEX by_v ON shop.products (v, colour, price) USING 'vector_index'
    WITH OPTIONS = {'similarity_function': 'euclidean'};
CREATE CUSTOM INDEX by_words ON shop.products (about) USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'};
INSERT INTO shop.products (id, name, colour, price, about, v) VALUES (1, 'tea', 'green', 4, 'Drink tea', [0.9, 0.1, 0.0]);
INSERT INTO shop.products (id, name, colour, price, about, v) VALUES (2, 'cocoa', 'brown', 5, 'Hot cocoa', [0.8, 0.3, 0]);
INSERT INTO shop.products (id, name, colour, price, about, v) VALUES (3, 'spade', 'red', 18, 'It digs', [0.0, 0.2, 0.9]);
CREATE TABLE shop."Odd" ("Key" text PRIMARY KEY, long text, m map<text, frozen<list<int>>>, t timestamp, b blob, d decimal)
"""


@pytest.fixture(scope="module")
def address(server):  # noqa: F811
    with Cluster([server.host], port=server.cql_port) as cluster:
        session = cluster.connect()
        for statement in STATEMENTS.split(";"):
            session.execute(statement)
        insert = session.prepare('INSERT INTO shop."Odd" ("Key", long) VALUES (?, ?)')
        for number in range(300):
            session.execute(insert, (f"k{number}", "x" * 2000))
    return f"{server.host}:{server.cql_port}"


@pytest.fixture
def talk(address):
    """Runs a conversation, a function of a client, with `annulus mcp` of some flags."""

    def run(conversation, *arguments, at=address, mode="auto"):
        async def whole():
            async with opened(at, *arguments, mode=mode) as client:
                return await conversation(client)

        return asyncio.run(asyncio.wait_for(whole(), 120))

    return run


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_listed_by_both_generations_of_the_protocol(talk, mode):
    async def listed(client):
        return (await client.list_tools()).tools, await shown(client, "list_tables", keyspace="shop")

    tools, tables = talk(listed, mode=mode)
    assert [tool.name for tool in tools] == TOOLS
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)
    assert {table["table"] for table in tables["tables"]} == {"products", "Odd"}


def test_a_model_finds_tables_indexes_and_their_descriptions(talk):
    async def look(client):
        tables = await shown(client, "list_tables")
        indexes = await shown(client, "list_indexes", keyspace="shop", table="products")
        return tables, indexes, await shown(client, "describe", keyspace="shop", table="products")

    tables, indexes, table = talk(look)
    assert not any(each["keyspace"].startswith("system") for each in tables["tables"])
    (products,) = (each for each in tables["tables"] if each["table"] == "products")
    assert products["primary_key"] == ["id"]
    assert list(products["columns"])[0] == "id" and products["columns"]["v"] == "vector<float, 3>"
    kinds = {index["index"]: (index["kind"], index["column"]) for index in indexes["indexes"]}
    assert kinds == {"by_v": ("vector", "v"), "by_words": ("text", "about")}
    assert "CREATE TABLE shop.products" in table["cql"] and "by_words" in table["cql"]
    (by_v,) = (index for index in table["indexes"] if index["index"] == "by_v")
    assert by_v["filter_columns"] == ["colour", "price"]


def test_searches_by_vector_words_and_both_with_filters(talk):
    async def search(client):
        products = {"keyspace": "shop", "table": "products"}

        async def names(**arguments):
            rows = (await shown(client, "search", **products, **arguments))["rows"]
            return [row["name"] for row in rows], rows

        near, rows = await names(vector=[1, 0, 0], limit=2)
        assert near == ["tea", "cocoa"] and "v" not in rows[0] and rows[0]["_score"] > rows[1]["_score"]
        assert (await names(vector=[1, 0, 0], filter={"price": {"gt": 4, "lte": 18}}))[0] == ["cocoa", "spade"]
        assert (await names(vector=[1, 0, 0], filter={"colour": {"in": ["red"]}}, columns=["name"]))[0] == ["spade"]
        assert (await names(text='drinking? AND "', limit=5))[0] == ["tea"]
        assert (await names(text_query="hot AND cocoa"))[0] == ["cocoa"]
        both, rows = await names(vector=[0, 0, 1], text="tea", limit=2)
        assert set(both) <= {"tea", "spade"} and {"_vector_score", "_text_score"} <= set(rows[0])

    talk(search)


def test_cql_reads_with_bound_values_of_every_form(talk):
    async def read(client):
        query = "SELECT name, v FROM shop.products WHERE id = ?"
        assert await shown(client, "cql", query=query, parameters=[1]) == {"rows": [{"name": "tea", "v": [0.9, 0.1, 0.0]}]}
        count = await shown(client, "cql", query="SELECT count(*) AS n FROM shop.products")
        assert count == {"rows": [{"n": 3}]}
        described = await shown(client, "cql", query="DESCRIBE KEYSPACE shop")
        assert any("CREATE TABLE shop.products" in row["create_statement"] for row in described["rows"])

    talk(read)


def test_every_statement_that_may_change_something_is_refused(talk):
    async def write(client):
        for query in [
            "INSERT INTO shop.products (id, name) VALUES (9, 'x')",
            "DELETE FROM shop.products WHERE id = 1",
            "TRUNCATE shop.products",
            "DROP TABLE shop.products",
            "-- \r DROP TABLE shop.products \n SELECT",
            "/* */ SELECT * FROM shop.products",
        ]:
            error, hint = await refused(client, "cql", query=query)
            assert "--allow-writes" in hint or "SELECT" in error, (query, error, hint)
        for query in ["SELECT * FROM shop.products; DROP TABLE shop.products", "SELECT 1 DELETE"]:
            await refused(client, "cql", query=query)
        return await shown(client, "cql", query="SELECT count(*) AS n FROM shop.products")

    assert talk(write) == {"rows": [{"n": 3}]}


def test_allow_writes_lifts_the_refusal(talk):
    async def write(client):
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools if not tool.annotations.read_only_hint] == ["cql"]
        row = ["a \"b\" ü", {"x": [1, 2]}, "2026-01-02 03:04:05.678Z", "0x00ff", 1.50]
        insert = 'INSERT INTO shop."Odd" ("Key", m, t, b, d) VALUES (?, ?, ?, ?, ?)'
        assert await shown(client, "cql", query=insert, parameters=row) == {"done": True}
        select = 'SELECT "Key", m, t, b, d FROM shop."Odd" WHERE "Key" = ?'
        read = (await shown(client, "cql", query=select, parameters=row[:1]))["rows"][0]
        assert (read["Key"], read["m"], read["b"], float(read["d"])) == (row[0], row[1], row[3], 1.5)
        assert read["t"] == row[2]
        await shown(client, "cql", query='DELETE FROM shop."Odd" WHERE "Key" = ?', parameters=row[:1])
        await refused(client, "cql", query="USE shop")

    talk(write, "--allow-writes")


def test_answers_end_at_their_bounds_and_say_so(talk):
    async def rows(client):
        return await shown(client, "cql", query='SELECT "Key", long FROM shop."Odd"')

    async def one_row(client):
        return await refused(client, "cql", query='SELECT long FROM shop."Odd" LIMIT 1')

    answer = talk(rows)
    assert answer["more"] and 100 < len(answer["rows"]) < 140 and "fewer columns" in answer["hint"]
    assert len(json.dumps(answer, separators=(",", ":"))) <= 256 * 1024
    answer = talk(rows, "--max-rows", 7)
    assert answer["more"] and len(answer["rows"]) == 7
    error, hint = talk(one_row, "--max-bytes", 1024)
    assert "2011 bytes" in error and "columns" in hint


def test_a_call_that_takes_too_long_is_given_up(talk, tmp_path):
    with Server(tmp_path / "data") as server:

        async def wait(client):
            await shown(client, "list_tables")
            os.kill(server.pid, signal.SIGSTOP)
            # Until all of its threads have stopped, it may answer.
            os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
            try:
                error, hint = await refused(client, "cql", query="SELECT * FROM system.local")
            finally:
                os.kill(server.pid, signal.SIGCONT)
            assert "longer than 1 s" in error and "--timeout" in hint
            return await shown(client, "cql", query="SELECT key FROM system.local")

        answer = talk(wait, "--timeout", 1, at=f"{server.host}:{server.cql_port}")
        assert answer == {"rows": [{"key": "local"}]}


def test_bad_calls_name_the_thing_and_the_remedy(talk):
    async def mistakes(client):
        products = {"keyspace": "shop", "table": "products"}
        for tool, arguments, in_error, in_hint in [
            ("describe", {"keyspace": "shop", "table": "product"}, "no table product", "list_tables"),
            ("describe", {"keyspace": "shop"}, "table", "schema"),
            ("search", products, "vector", "cql"),
            ("search", products | {"vector": [1, 0]}, "2 numbers", "model"),
            ("search", products | {"vector": [1, 0, 0], "filter": {"colour": 5}}, "colour", "types"),
            ("search", products | {"text": "a", "filter": {"name": "x"}}, "ALLOW FILTERING", "allow_filtering"),
            ("search", products | {"text_query": "AND"}, "AND", "names"),
            ("search", products | {"text": "a", "colour": "red"}, "colour", "schema"),
            ("cql", {"query": "SELECT * FROM shop.nothing"}, "nothing", "list_tables"),
            ("cql", {"query": "SELECT FROM"}, "", "CQL"),
            ("cql", {"query": "SELECT * FROM shop.products WHERE id = ?"}, "", ""),
            ("cql", {"query": "SELECT * FROM shop.products WHERE id = ?", "parameters": [1, 2]}, "1 markers", "each ?"),
            ("cql", {"query": "SELECT * FROM shop.products WHERE id = ?", "parameters": ["x"]}, "id", "SELECT JSON"),
            ("cql", {"query": "SELECT * FROM shop.products WHERE price = 4"}, "ALLOW FILTERING", "index"),
        ]:
            error, hint = await refused(client, tool, **arguments)
            assert in_error in error and in_hint in hint, (tool, arguments, error, hint)
        with pytest.raises(MCPError, match="no tool drop_table"):
            await client.call_tool("drop_table", {})

    talk(mistakes)


def test_a_role_can_do_what_it_may_and_a_login_is_named(talk, tmp_path):
    file = tmp_path / "superuser"
    file.write_text("boss\nsesame-open\n")
    file.chmod(0o600)
    password = tmp_path / "password"
    password.write_text("sesame-open\n")
    password.chmod(0o600)

    async def failed(client):
        return await refused(client, "list_tables")

    async def tables(client):
        return await shown(client, "list_tables")

    with Server(tmp_path / "data", "--login", "--superuser-file", file) as guarded:
        at = f"{guarded.host}:{guarded.cql_port}"
        assert "--password-file" in talk(failed, at=at)[0]
        assert talk(tables, "--user", "boss", "--password-file", password, at=at) == {"tables": []}


def test_a_server_that_starts_later_is_found_by_the_next_call(talk, tmp_path):
    server = Server(tmp_path / "data").start()
    at, port = f"{server.host}:{server.cql_port}", str(server.cql_port)
    server.stop()

    async def both(client):
        error, _ = await refused(client, "list_tables")
        assert "annulus serve" in error and at in error
        with OnPort(tmp_path / "data", port):
            return await shown(client, "list_tables")

    assert talk(both, at=at) == {"tables": []}


def test_stdout_has_nothing_but_the_protocol_and_a_closed_stdin_is_the_end(address):
    process = subprocess.Popen(
        [BINARY, "mcp", "--cql", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    messages = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "cql", "arguments": {"query": "DROP TABLE shop.products"}}},
    ]
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"]["name"] == "annulus"
    rest, errors = process.communicate(timeout=30)
    assert (rest, errors, process.returncode) == ("", "", 0)


def test_a_missing_file_of_a_login_is_named_to_the_model(talk):
    async def failed(client):
        return await refused(client, "list_tables")

    error, hint = talk(failed, "--user", "a", "--password-file", "/nowhere/password")
    assert "/nowhere/password" in error and "annulus mcp" in hint
