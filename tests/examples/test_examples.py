"""Runs the programs of `examples` by the commands of their README, each at a server without their keyspace, and again.

`make test-examples` fetches what they need. EXAMPLES names the languages to run (default: all)."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
from cassandra.cluster import Cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/drivers"))

from conftest_server import server  # noqa: E402, F401

EXAMPLES = ROOT / "examples"
README = (EXAMPLES / "README.md").read_text()
PROGRAMS = {
    "python": "quickstart.py",
    "java": "src/main/java/Quickstart.java",
    "go": "main.go",
    "node": "quickstart.mjs",
    "rust": "src/main.rs",
}
LANGUAGES = os.environ.get("EXAMPLES", " ".join(PROGRAMS)).split()
# The first run builds the program.
SECONDS = 600
ADDRESS = "127.0.0.1:9042"

# Maven ends with it, and a terminal doesn't show it.
RESET_OF_COLOURS = "\x1b[0m"

# Where a driver's version is written, and where the version that other tests use.
VERSIONS = {
    "python": ("requirements.txt", "drivers/requirements-cassandra.txt", r"cassandra-driver==(\S+)"),
    "java": ("pom.xml", "clients/java/pom.xml", r"version>(4\.\d+\.\d+)<"),
    "go": ("go.mod", "clients/gocql/go.mod", r"cassandra-gocql-driver/v2 v(\S+)"),
    "node": ("package.json", "clients/node/package.json", r'"cassandra-driver": "(\S+)"'),
    "rust": ("Cargo.lock", "clients/rust/Cargo.lock", r'name = "scylla"\nversion = "(\S+)"'),
}


def program(language):
    return (EXAMPLES / language / PROGRAMS[language]).read_text()


def command(language):
    """The last column of the program's row in the README."""
    (found,) = re.findall(rf"^\| \[\w+\]\({language}/{PROGRAMS[language]}\).* \| `([^`|]+)` \|$", README, re.MULTILINE)
    return found


def printed():
    """The lines that the README shows."""
    (block,) = re.findall(r"(?:^    .*\n)+", README, re.MULTILINE)
    return textwrap.dedent(block)


def in_one_line(text):
    return re.sub(r"\s+", " ", text)


def statements_and_texts():
    """The strings of the program in Python but its docstring: statements, what the books say, and questions."""
    nodes = (node for part in ast.parse(program("python")).body[1:] for node in ast.walk(part))
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [in_one_line(string).strip() for string in strings if len(string.split()) > 1]


def run(language, server):  # noqa: F811
    # The Python of the tests comes first, as it has the driver.
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"ANNULUS_CQL": f"{server.host}:{server.cql_port}", "PATH": path}
    options = {"cwd": EXAMPLES / language, "env": environment, "timeout": SECONDS}
    done = subprocess.run(command(language).split(), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.replace(RESET_OF_COLOURS, "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_prints_what_the_readme_shows_each_time(language, server):  # noqa: F811
    with Cluster([server.host], port=server.cql_port) as cluster:
        cluster.connect().execute("DROP KEYSPACE IF EXISTS quickstart")
    assert [run(language, server), run(language, server)] == [printed()] * 2


@pytest.mark.parametrize("language", PROGRAMS)
def test_all_programs_have_the_same_statements_and_texts(language):
    wanted, text = statements_and_texts(), in_one_line(program(language))
    assert len(wanted) > 10
    assert [one for one in wanted if one not in text] == []


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_has_the_default_address_once(language):
    assert program(language).count(ADDRESS) == 1


@pytest.mark.parametrize("language", VERSIONS)
def test_an_example_has_the_driver_that_is_tested(language):
    example, tested, version = VERSIONS[language]
    texts = [(EXAMPLES / language / example).read_text(), (ROOT / "tests" / tested).read_text()]
    used, known = (re.search(version, text)[1] for text in texts)
    assert used == known
