"""`annulus mcp` with logins and TLS: a password, and a client's certificate."""

import asyncio

from model import opened, refused, shown

STATEMENTS = """
CREATE KEYSPACE notes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE notes.texts (id int PRIMARY KEY, body text, v vector<float, 2>);
CREATE CUSTOM INDEX by_v ON notes.texts (v) USING 'vector_index';
INSERT INTO notes.texts (id, body, v) VALUES (1, 'tea', [1, 0]);
INSERT INTO notes.texts (id, body, v) VALUES (2, 'sand', [0, 1]);
"""


def talk(way, flags, conversation):
    """Runs a conversation, a function of a client, with `annulus mcp` of some flags."""

    async def whole():
        async with opened(way.cql, *flags) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(whole(), 120))


def test_a_model_searches_as_the_role_that_logged_in(way):
    way.shell("-e", STATEMENTS)

    async def searches(client):
        tables = await shown(client, "list_tables", keyspace="notes")
        found = await shown(client, "search", keyspace="notes", table="texts", vector=[0.1, 0.9], limit=1)
        return tables["tables"], found["rows"], await shown(client, "cql", query="SELECT body FROM notes.texts WHERE id = 1")

    (table,), (row,), answer = talk(way, way.flags, searches)
    assert (table["table"], row["body"]) == ("texts", "sand")
    assert [row["body"] for row in answer["rows"]] == ["tea"]


def test_an_incomplete_login_is_named_to_the_model(way):
    async def fails(client):
        return await refused(client, "list_tables")

    for words, flags in way.refused.items():
        error, hint = talk(way, flags, fails)
        assert words in error + hint, (words, error, hint)
