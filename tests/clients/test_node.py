"""Tests the driver of Node with its mapper, and express-cassandra: `make test-node`."""

import shutil

import pytest

import sectioned
from conftest_server import server  # noqa: F401

FOLDER = sectioned.TESTS / "clients"
TYPES = (
    "ascii|bigint|blob|boolean|date|decimal|double|duration|float|inet|int|smallint|text|time|timestamp|timeuuid|tinyint|"
    "uuid|varchar|varint|list<int>|set<text>|map<text, double>|frozen<list<frozen<map<int, text>>>>|"
    "tuple<int, text, frozen<list<uuid>>>|frozen<person>|person|vector<float, 2>|vector<text, 2>"
).split("|")
SECTIONS = {
    "node": [
        *"metadata,prepared statements,batches,conditions,counters,paging,errors,warnings and traces".split(","),
        *"vector search,schema events,user types".split(","),
        *(f"type {name}" for name in TYPES),
        *"keys of each type,login,TLS,mapper".split(","),
    ],
    "express": [
        *"sync of a schema,save and find,indexes,conditions,collections,batches,pages and streams,counters".split(","),
        *"migration,delete and truncate".split(","),
    ],
}
CASES = [(program, section) for program, sections in SECTIONS.items() for section in sections]

pytestmark = pytest.mark.skipif(
    not (FOLDER / "node" / "node_modules").exists() or shutil.which("node") is None,
    reason="the packages of Node are not installed: make test-node",
)


@pytest.fixture(scope="module")
def ended(server, tmp_path_factory):  # noqa: F811
    known = {}

    def of(program):
        if program not in known:
            command = ["node", FOLDER / program / "main.js"]
            known[program] = sectioned.outcomes(command, server, f"of_{program}", tmp_path_factory.mktemp(program))
        return known[program]

    return of


@pytest.mark.parametrize("program,section", CASES, ids=["-".join(case) for case in CASES])
def test_a_section(program, section, ended):
    assert ended(program).get(section, "it did not run") == "ok"


@pytest.mark.parametrize("program", SECTIONS)
def test_no_section_is_left_out(program, ended):
    assert set(ended(program)) == set(SECTIONS[program])
