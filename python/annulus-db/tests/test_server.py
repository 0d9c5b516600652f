"""A server that is started, ends, and fails to start."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from annulus_db import Server, StartError

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
# A program that starts a server, prints its process, and waits for a line.
HOLDER = """
import sys
from annulus_db import Server
server = Server(sys.argv[1], binary=sys.argv[2]).start()
print(server.pid, flush=True)
sys.stdin.readline()
"""


def status(url, path="/health/ready"):
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        return answer.status


def wait_for_end(pid, seconds=20):
    """Waits until a process that is not a child of this one has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        assert select.select([descriptor], [], [], seconds)[0], f"process {pid} runs after {seconds} s"
    finally:
        os.close(descriptor)


def test_a_server_is_ready_within_the_block_and_its_temporary_directory_goes_with_it(binary):
    begin = time.monotonic()
    with Server(binary=binary) as server:
        took = time.monotonic() - begin
        assert status(server.http_url) == 200
        assert server.is_running and server.host == "127.0.0.1"
        assert server.cql_port != server.http_port
        directory, log = server.data_dir, server.log_path
        assert directory.is_dir() and "listening" in log.read_text()
    assert not server.is_running
    assert not directory.exists() and not log.exists()
    # Half a second, by a debug build on busy cores.
    assert took < 10


def test_a_given_directory_stays_and_the_server_starts_again_on_it(binary, tmp_path):
    server = Server(tmp_path / "deep" / "data", binary=binary)
    for _ in range(2):
        with server:
            assert status(server.http_url) == 200
    assert (tmp_path / "deep" / "data").is_dir()
    assert (tmp_path / "deep" / "data.log").read_text().count("listening") == 2


def test_a_server_that_fails_says_why(binary, tmp_path):
    with pytest.raises(StartError, match=r"ended with code 2 before it was ready(.|\n)*--no-such-flag"):
        Server(tmp_path / "data", binary=binary, arguments=["--no-such-flag"]).start()
    with Server(tmp_path / "data", binary=binary) as server:
        with pytest.raises(StartError, match="ended with code 4"):
            Server(tmp_path / "data", binary=binary, log=tmp_path / "other.log").start()
        with pytest.raises(StartError, match=f"ended with code 3(.|\n)*127.0.0.1:{server.http_port}"):
            Server(tmp_path / "other", binary=binary, http_port=server.http_port).start()
        with pytest.raises(StartError, match="runs already"):
            server.start()
        assert status(server.http_url) == 200


def test_a_start_that_takes_too_long_is_ended(tmp_path):
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho waiting >&2\nexec sleep 1000\n")
    silent.chmod(0o755)
    with pytest.raises(StartError, match=r"not ready within 0.5 s(.|\n)*"):
        Server(tmp_path / "data", binary=silent, start_timeout=0.5).start()


def test_a_binary_that_is_none_is_named(tmp_path, monkeypatch):
    with pytest.raises(StartError, match="is no program"):
        Server(binary=tmp_path / "absent").start()
    with pytest.raises(StartError, match=r"before it was ready(.|\n)*nothing can't be run: .* Exec format error"):
        Server(tmp_path / "data", binary=_unreadable(tmp_path)).start()
    monkeypatch.delenv("ANNULUS_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("annulus_db._binary._OF_PACKAGE", tmp_path / "absent")
    with pytest.raises(StartError, match="there is no program(.|\n)*ANNULUS_BINARY"):
        Server().start()
    script = tmp_path / "annulus"
    script.write_text("#!/usr/bin/python\n")
    script.chmod(0o755)
    with pytest.raises(StartError, match="there is no program"):
        Server().start()


def _unreadable(tmp_path):
    """A file that may be run, and is no program."""
    path = tmp_path / "nothing"
    path.write_bytes(b"\x7fnothing")
    path.chmod(0o755)
    return path


def test_properties_of_a_server_that_does_not_run_say_so(binary):
    with pytest.raises(StartError, match="does not run; start\\(\\) it"):
        Server(binary=binary).http_url


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "ended"])
def test_a_server_ends_with_its_parent(binary, tmp_path, how):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "data", binary],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
    )
    with holder:
        pid = int(holder.stdout.readline())
        if how is None:
            holder.stdin.write("\n")
            holder.stdin.flush()
        else:
            holder.send_signal(how)
        holder.wait(30)
        try:
            wait_for_end(pid)
        except ProcessLookupError:
            pass


def test_a_server_outlives_the_thread_that_started_it(binary, tmp_path):
    server = Server(tmp_path / "data", binary=binary)
    starting = threading.Thread(target=server.start)
    starting.start()
    starting.join()
    try:
        assert status(server.http_url) == 200
        with pytest.raises(AssertionError, match="runs after"):
            wait_for_end(server.pid, seconds=0.3)
    finally:
        server.stop()


def test_a_process_that_is_forked_off_leaves_the_server_running(binary, tmp_path):
    with Server(tmp_path / "data", binary=binary) as server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert status(server.http_url) == 200
