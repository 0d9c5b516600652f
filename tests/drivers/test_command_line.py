"""Tests the command line: exit codes, and errors that name the remedy."""

import configparser
import os
import signal
import socket
import subprocess

import pytest
from conftest import connect
from process import BINARY, ROOT, Process
from server import READY, Server, eventually

pytestmark = pytest.mark.embedded("its own command line")


def run(*arguments, **options):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=30, **options)


def test_version_and_help():
    assert run("--version").stdout.startswith("annulus ")
    assert "--data-dir" in run("serve", "--help").stdout


def test_another_address_than_loopback_needs_insecure(tmp_path):
    result = run("serve", "--data-dir", tmp_path / "d", "--listen", "0.0.0.0")
    assert result.returncode == 2 and "--insecure" in result.stderr


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("serve", "--data-dir", tmp_path / "d", "--cql-port", str(port), "--http-port", "0")
    assert result.returncode == 3 and str(port) in result.stderr and "--cql-port" in result.stderr


def test_a_data_directory_in_use_is_named(server):
    result = run("serve", "--data-dir", server.data_dir, "--cql-port", "0", "--http-port", "0")
    assert result.returncode == 4 and str(server.data_dir) in result.stderr


def test_a_directory_that_indexes_cannot_use_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ["serve", "--data-dir", tmp_path / "d", "--index-dir", tmp_path / "file", "--cql-port", "0", "--http-port", "0"]
    result = run(*arguments)
    assert result.returncode == 2 and f"{tmp_path}/file" in result.stderr and "--index-dir" in result.stderr


def test_a_directory_from_a_newer_version_is_named_and_left_alone(tmp_path):
    server = Server(tmp_path / "data").start()
    assert server.stop() == 0
    marker = tmp_path / "data" / "annulus-storage"
    marker.write_text("annulus storage 4000\n")
    result = run("serve", "--data-dir", tmp_path / "data", "--cql-port", "0", "--http-port", "0")
    assert result.returncode == 5 and "newer version" in result.stderr and "4000" in result.stderr
    assert marker.read_text() == "annulus storage 4000\n"


def test_a_hang_up_ends_no_server_without_tls(tmp_path):
    with Server(tmp_path / "data") as server:
        os.kill(server.pid, signal.SIGHUP)
        eventually(lambda: "SIGHUP: there is no certificate to read again" in server.log())
        cluster = connect(server)
        cluster.connect().execute("SELECT key FROM system.local")
        cluster.shutdown()


def test_the_unit_for_systemd_is_complete(tmp_path):
    """Runs what the unit of the Debian package runs, with a directory and ports of its own."""
    unit = configparser.ConfigParser(strict=True)
    unit.optionxform = str
    unit.read_string((ROOT / "packaging/deb/annulus.service").read_text())
    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    service = unit["Service"]
    program, *arguments = service["ExecStart"].split()
    assert program.endswith("/annulus") and arguments[:2] == ["serve", "--config"]
    (tmp_path / "serve.toml").write_text('cql-port = 0\nhttp-port = 0\n')
    process = Process([*arguments[:2], tmp_path / "serve.toml", *arguments[3:]], READY, tmp_path / "log", directory=tmp_path)
    with process:
        reload = [word.replace("$MAINPID", str(process.pid)) for word in service["ExecReload"].split()]
        assert subprocess.run(reload).returncode == 0
        eventually(lambda: "SIGHUP" in process.log())
        assert (tmp_path / "annulus-data").is_dir()
        assert process.stop() == 0


def test_durations_in_days_and_weeks_are_taken(tmp_path):
    arguments = ["--repair-interval", "7d", "--scrub-interval", "1w", "--partition-walk-interval", "2w 1d"]
    with Server(tmp_path / "data", *arguments) as server:
        cluster = connect(server)
        settings = dict(cluster.connect().execute("SELECT name, value FROM system_views.settings"))
        cluster.shutdown()
    days = {name: settings[name] for name in ("repair-interval", "scrub-interval", "partition-walk-interval")}
    assert days == {"repair-interval": "604800s", "scrub-interval": "604800s", "partition-walk-interval": "1296000s"}
    refused = run("serve", "--data-dir", tmp_path / "d", "--scrub-interval", "7 dogs")
    assert refused.returncode == 2 and "such as 10s or 7d" in refused.stderr
    refused = run("repair", "update", "s.i", "--every", "1mo")
    assert refused.returncode == 2 and "write days or weeks" in refused.stderr


def test_settings_come_from_flags_then_the_environment_then_the_file(tmp_path, monkeypatch):
    # Were the address of the file taken, it would be refused.
    (tmp_path / "annulus.toml").write_text(f'data-dir = "{tmp_path}/file"\nlisten = "0.0.0.0"\nlog-format = "json"\n')
    monkeypatch.setenv("ANNULUS_CONFIG", str(tmp_path / "annulus.toml"))
    monkeypatch.setenv("ANNULUS_LISTEN", "127.0.0.1")
    monkeypatch.setenv("ANNULUS_DATA_DIR", str(tmp_path / "environment"))
    server = Server(tmp_path / "flag").start()
    assert server.stop() == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["flag"]
    assert server.log().startswith("{")


@pytest.mark.parametrize("address", ["127.0.0.2", "0.0.0.0"])
def test_other_addresses_are_served(tmp_path, address):
    """The two halves of the server find each other on any address."""
    server = Server(tmp_path / "data", "--listen", address, "--insecure").start()
    assert server.host == address
    server.host = "127.0.0.2"
    try:
        cluster = connect(server)
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE k.t (k int PRIMARY KEY, v vector<float, 2>)")
        session.execute("CREATE CUSTOM INDEX i ON k.t (v) USING 'vector_index'")
        session.execute("INSERT INTO k.t (k, v) VALUES (1, [1, 0])")
        server.wait_for_index("k", "i", 1)
        assert session.execute("SELECT k FROM k.t ORDER BY v ANN OF [1, 0] LIMIT 1").one().k == 1
        cluster.shutdown()
    finally:
        assert server.stop() == 0


def test_an_unknown_setting_in_the_file_is_named(tmp_path):
    file = tmp_path / "annulus.toml"
    file.write_text("cql-prot = 1\n")
    result = run("serve", "--config", file)
    assert result.returncode == 2 and "cql-prot" in result.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_it_cleanly(tmp_path, how):
    server = Server(tmp_path / "data", "--log-format", "json").start()
    assert server._end(how) == 0
    assert all(line.startswith("{") for line in server.log().splitlines())
