"""Tests the commands of cqlsh that change how it asks and what it shows, its logins, and TLS."""

import re
import subprocess

import pytest
from process import BINARY
from server import Server
from shell import cqlsh, shows

USER, PASSWORD = "ada", "lovelace"
ROWS = 25


@pytest.fixture(scope="module")
def numbers(server):
    rows = "".join(f"INSERT INTO commands.numbers (k, n, name) VALUES (1, {n}, 'number {n}');" for n in range(ROWS))
    shows(
        server,
        "CREATE KEYSPACE commands WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'};"
        f"CREATE TABLE commands.numbers (k int, n int, name text, PRIMARY KEY (k, n)); {rows}",
    )
    yield "commands.numbers"
    shows(server, "DROP KEYSPACE commands;")


def test_expand_shows_a_row_as_lines(server, numbers):
    text = shows(server, f"EXPAND ON; SELECT * FROM {numbers} LIMIT 2;")
    assert "EXPAND set to ON" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["@", "Row", "1"] in lines and ["@", "Row", "2"] in lines and ["n", "|", "1"] in lines, text
    assert "@ Row" not in shows(server, f"EXPAND OFF; SELECT * FROM {numbers} LIMIT 2;")


@pytest.mark.parametrize("paging", ["PAGING 7", "PAGING 25", "PAGING ON", "PAGING OFF"])
def test_paging_leaves_no_row_out(server, numbers, paging):
    text = shows(server, f"{paging}; SELECT n, name FROM {numbers} WHERE k = 1;")
    assert [int(n) for n in re.findall(r"\| +number (\d+)", text)] == list(range(ROWS))
    if paging[-1].isdigit():
        assert f"Page size: {paging.split()[1]}" in text


def test_tracing_shows_the_steps(server, numbers):
    text = shows(server, f"TRACING ON; SELECT name FROM {numbers} WHERE k = 1 AND n = 3; TRACING OFF;")
    assert "TRACING set to ON" in text and "number 3" in text and "TRACING set to OFF" in text
    session = re.search(r"Tracing session: ([0-9a-f-]{36})", text)
    assert session and "Execute CQL3 query" in text and "Request complete" in text, text
    again = shows(server, f"SHOW SESSION {session[1]};")
    assert f"Tracing session: {session[1]}" in again and "Request complete" in again
    written = shows(server, f"TRACING ON; UPDATE {numbers} SET name = 'number 3' WHERE k = 1 AND n = 3;")
    assert "Request complete" in written


def test_consistency_goes_along(server, numbers):
    text = shows(
        server,
        f"CONSISTENCY QUORUM; CONSISTENCY; SELECT name FROM {numbers} WHERE k = 1 AND n = 3;"
        f"SERIAL CONSISTENCY LOCAL_SERIAL; UPDATE {numbers} SET name = 'new' WHERE k = 1 AND n = 9 IF name = 'other';",
    )
    assert "Current consistency level is QUORUM." in text and "number 3" in text
    assert "Serial consistency level set to LOCAL_SERIAL." in text and "False" in text
    code, _, errors = cqlsh(server, f"CONSISTENCY SERIAL; INSERT INTO {numbers} (k, n) VALUES (9, 9);")
    assert code == 2 and "You must use conditional updates for serializable writes" in errors


def test_source_and_capture(server, numbers, tmp_path):
    source, captured = tmp_path / "source.cql", tmp_path / "captured"
    source.write_text(
        f"-- a comment\nSELECT name FROM {numbers}\n WHERE k = 1 AND n = 5;\nSELECT nothing FROM {numbers};\n"
    )
    code, text, errors = cqlsh(server, f"SOURCE '{source}'; CAPTURE '{captured}'; SELECT n FROM {numbers} LIMIT 1;")
    assert "number 5" in text and "Undefined column name nothing" in errors, (code, text, errors)
    assert "(1 rows)" in captured.read_text()


def test_a_file_of_statements(server, numbers, tmp_path):
    file = tmp_path / "file.cql"
    file.write_text(
        "USE commands;\nBEGIN BATCH\n UPDATE numbers SET name = 'x;y' WHERE k = 2 AND n = 1;\nAPPLY BATCH;\n"
        f"SELECT name FROM {numbers} WHERE k = 2;\n"
    )
    assert "x;y" in shows(server, f"SOURCE '{file}'; DELETE FROM {numbers} WHERE k = 2;", "-k", "system")


def test_versions_and_host(server):
    text = shows(server, "SHOW VERSION; SHOW HOST;")
    assert "CQL spec 3.4" in text and "Native protocol v5" in text and f"{server.host}:{server.cql_port}" in text


@pytest.fixture(scope="module")
def with_login(tmp_path_factory):
    directory = tmp_path_factory.mktemp("login")
    (directory / "superuser").write_text(f"{USER}\n{PASSWORD}")
    with Server(directory / "data", "--login", "--superuser-file", directory / "superuser") as started:
        yield started


def test_logins(with_login):
    # cqlsh advises against passwords on the command line, which are its own affair.
    options = ("-u", USER, "-p", PASSWORD, "--insecure-password-without-warning")
    text = shows(with_login, "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'reads'; LIST ROLES;", *options)
    assert USER in text and "reader" in text
    code, _, errors = cqlsh(with_login, "LOGIN reader 'reads'; DROP ROLE reader;", *options)
    assert code == 2 and "Unauthorized" in errors
    code, _, errors = cqlsh(with_login, "LOGIN reader 'wrong';", *options)
    assert code != 0 and "incorrect" in errors
    code, _, errors = cqlsh(with_login, "SELECT key FROM system.local;")
    assert code == 1 and "AuthenticationFailed" in errors


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls") / "certificates"
    command = [BINARY, "certificate", "--out", directory, "--name", "localhost", "--name", "127.0.0.1", "--client", "app"]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return directory


def test_tls_with_and_without_a_clients_certificate(certificates, tmp_path):
    asked, files = "SELECT key FROM system.local;", {"SSL_CERTFILE": str(certificates / "ca.pem")}
    tls = ["--tls-cert-path", certificates / "server.pem", "--tls-key-path", certificates / "server.key"]
    with Server(tmp_path / "data", *tls) as server:
        assert "local" in shows(server, asked, "--ssl", environment=files)
        assert cqlsh(server, asked)[0] == 1
    with Server(tmp_path / "asking", *tls, "--tls-client-ca-cert-path", certificates / "ca.pem") as server:
        assert "local" in shows(server, asked, "--ssl", "--cqlshrc", certificates / "app.cqlshrc")
        assert cqlsh(server, asked, "--ssl", environment=files)[0] == 1
