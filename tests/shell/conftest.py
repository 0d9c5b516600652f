"""Fixtures of `annulus shell`: a server with a small table, and scripts and a terminal for the shell."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))

from conftest_server import server  # noqa: E402, F401
from script import shows  # noqa: E402
from secured import secured, way  # noqa: E402, F401

SCHEMA = """
CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE shop.goods (id int PRIMARY KEY, "Name" text, price decimal, tags set<text>,
    embedding vector<float, 12>); -- a vector that is too long for a table
INSERT INTO shop.goods (id, "Name", price, tags, embedding)
    VALUES (1, 'tea; "green"', 2.50, {'hot', 'leaf'}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5]);
INSERT INTO shop.goods (id, "Name") VALUES (2, '');
INSERT INTO shop.goods (id) VALUES (3);
CREATE TABLE shop.numbers (p int, n int, PRIMARY KEY (p, n));
"""


@pytest.fixture(scope="session")
def shop(server):  # noqa: F811
    """The server, with the keyspace `shop`."""
    numbers = "".join(f"INSERT INTO shop.numbers (p, n) VALUES (0, {n});\n" for n in range(250))
    assert shows(server, "-f", "-", stdin=SCHEMA + numbers) == ""
    return server
