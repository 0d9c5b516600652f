"""Tests drivers of other languages. Each is a program with sections, and a section is a test.

A program is called with a way of connecting (a MODE), and prints a line for each section: "NAME ok"
or "NAME failed: REASON". SUITES names the programs to run (default: all of them), and SMOKE
those of them that run a few sections."""

import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "drivers"))

from conftest_server import server  # noqa: E402, F401
from process import BINARY  # noqa: E402
from server import Server  # noqa: E402

BUILT = TESTS.parent / "target" / "clients"
SECONDS = 180
SUPERUSER = ("ada", "lovelace")

STATEMENTS = "connect metadata events types prepare batches conditions counters paging errors vectors".split()
OF_ALL = {
    "plain": STATEMENTS,
    "login": ["login", "wrong-password", "rights"],
    "tls": ["tls", "tls-not-trusted", "tls-in-clear"],
    "tls-client": ["tls-client", "tls-no-client"],
}
# By program, with what a driver has beyond the others.
#
# cdrs-tokio can't do all that these sections ask of others, so its program leaves out:
# - tables in "metadata": the driver knows keyspaces and nodes, and the program reads what a
#   statement's variables are instead;
# - durations in version 4 of the protocol, which the driver takes for vectors, and durations with
#   a number beyond 63, which it encodes in another way than the protocol;
# - vectors of other elements than floats, which the driver doesn't read;
# - refused sessions in "wrong-password" and under TLS: a session tries for ever, so that a single
#   connection is asked instead.
SECTIONS = {
    "scylla": OF_ALL,
    "cdrs": {**OF_ALL, "plain": [*STATEMENTS, "version-5"]},
    "java": {**OF_ALL, "plain": [*STATEMENTS, "query-builder", "schema-builder", "mapper"]},
    "gocql": OF_ALL,
    "gocql1": OF_ALL,
}
SUITES = os.environ.get("SUITES", " ".join(SECTIONS)).split()
SMOKE = os.environ.get("SMOKE", "").split()
OF_SMOKE = {
    "plain": "connect types prepare batches paging errors vectors".split(),
    "login": ["login"],
    "tls": ["tls"],
}


@pytest.fixture(scope="session")
def with_login(tmp_path_factory):
    directory = tmp_path_factory.mktemp("login")
    (directory / "superuser").write_text("\n".join(SUPERUSER))
    with Server(directory / "data", "--login", "--superuser-file", directory / "superuser") as started:
        yield started


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls") / "certificates"
    command = [BINARY, "certificate", "--out", directory, "--name", "localhost", "--name", "127.0.0.1", "--client", "app"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert made.returncode == 0, made.stderr
    return directory


def start_tls(directory, certificates, *arguments):
    files = ["--tls-cert-path", certificates / "server.pem", "--tls-key-path", certificates / "server.key"]
    return Server(directory / "data", *files, *arguments)


@pytest.fixture(scope="session")
def secured(tmp_path_factory, certificates):
    with start_tls(tmp_path_factory.mktemp("secured"), certificates) as started:
        yield started


@pytest.fixture(scope="session")
def asking(tmp_path_factory, certificates):
    """A server that asks its clients for certificates."""
    authorities = ["--tls-client-ca-cert-path", certificates / "ca.pem"]
    with start_tls(tmp_path_factory.mktemp("asking"), certificates, *authorities) as started:
        yield started


def sections_of(client):
    return OF_SMOKE if client in SMOKE else SECTIONS[client]


class Runs:
    """Runs a program once for all the sections of a mode."""

    def __init__(self, request):
        self._request, self._answers = request, {}

    def _arguments(self, client, mode):
        get = self._request.getfixturevalue
        if mode == "plain":
            return get("server"), [f"suite_of_{client}"]
        if mode == "login":
            return get("with_login"), SUPERUSER
        return get("secured" if mode == "tls" else "asking"), [get("certificates")]

    def answers(self, client, mode):
        """How each section ended, and what the program said beside."""
        if (client, mode) not in self._answers:
            started, arguments = self._arguments(client, mode)
            command = [BUILT / client, mode, f"{started.host}:{started.cql_port}", *arguments]
            # A client that waits for an answer without end fails like any other.
            named = " ".join(sections_of(client)[mode]) if client in SMOKE else ""
            environment = {**os.environ, "SECTIONS": named}
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
            lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
            self._answers[client, mode] = lines, done.stderr
        return self._answers[client, mode]


@pytest.fixture(scope="session")
def runs(request):
    return Runs(request)


CASES = [(client, mode, name) for client in SUITES for mode, names in sections_of(client).items() for name in names]


@pytest.mark.parametrize("client,mode,section", CASES, ids=["-".join((client, name)) for client, _, name in CASES])
def test_a_section(client, mode, section, runs):
    answers, errors = runs.answers(client, mode)
    assert answers.get(section) == "ok", f"{answers.get(section, 'it did not run')}\n{errors[-3000:]}"
