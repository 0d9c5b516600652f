"""Tests the C++ driver by its Python binding, acsylla: `make test-acsylla`."""

import pathlib
import sys

import pytest

import sectioned
from conftest_server import server  # noqa: F401

PROGRAM = sectioned.TESTS / "clients" / "acsylla" / "main.py"
# The venvs lie side by side.
PYTHON = pathlib.Path(sys.prefix).parent / "acsylla" / "bin" / "python"
TYPES = (
    "ascii|bigint|blob|boolean|date|decimal|double|duration|float|inet|int|smallint|text|time|timestamp|timeuuid|tinyint|"
    "uuid|varint|list<int>|set<text>|map<text, int>|tuple<int, text>"
).split("|")
SECTIONS = [
    "metadata",
    "schema events",
    *(f"type {name}" for name in TYPES),
    *"user types,batches,conditions,counters,paging,errors,vector search,login,TLS".split(","),
]

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="acsylla is not installed: make test-acsylla")


@pytest.fixture(scope="module")
def ended(server, tmp_path_factory):  # noqa: F811
    return sectioned.outcomes([PYTHON, PROGRAM], server, "of_acsylla", tmp_path_factory.mktemp("acsylla"))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section(section, ended):
    assert ended.get(section, "it did not run") == "ok"


def test_no_section_is_left_out(ended):
    assert set(ended) == set(SECTIONS)
