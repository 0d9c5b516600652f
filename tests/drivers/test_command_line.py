"""What the operator sees: exit codes and errors that name the remedy."""

import signal
import socket
import subprocess

import pytest
from server import BINARY, Server


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
