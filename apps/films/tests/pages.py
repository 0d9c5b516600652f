"""Starts a Streamlit page as a process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

from server import eventually

APPLICATION = pathlib.Path(__file__).resolve().parents[1]
STOP_SECONDS = 15


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def running_page(
    command: list[str], directory: pathlib.Path, port: int, log: pathlib.Path, **variables: str
) -> Iterator[str]:
    """Yields the URL of a page that a command serves on a port. Ends it by its id afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=directory, env={**os.environ, **variables}, stdout=output, stderr=output
        )
    url = f"http://127.0.0.1:{port}/"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(url + "_stcore/health", timeout=5) as response:
            return bool(response.status == 200)
        return False

    try:
        eventually(answers, seconds=60, every=0.1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def running_app(host: str, cql_port: int, log: pathlib.Path, **variables: str) -> Iterator[str]:
    """Yields the URL of the application's page."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "annulus_films/app.py", "--server.port", str(port)]
    path = os.pathsep.join([str(APPLICATION), str(APPLICATION.parent / "embedder")])
    settings = {"PYTHONPATH": path, "FILMS_HOST": host, "FILMS_PORT": str(cql_port), **variables}
    with running_page(command, APPLICATION, port, log, **settings) as url:
        yield url
