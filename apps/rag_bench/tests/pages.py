"""Starts the service and the page as processes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from server import eventually

APPLICATION = pathlib.Path(__file__).resolve().parents[1]
START_SECONDS, STOP_SECONDS = 180, 15


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def environment(cql_port: int, **variables: str) -> dict[str, str]:
    """The environment of a command of this application."""
    path = os.pathsep.join([str(APPLICATION), str(APPLICATION.parent / "embedder")])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
    return {**inherited, "PYTHONPATH": path, "RAG_HOST": "127.0.0.1", "RAG_PORT": str(cql_port), **variables}


def ran(cql_port: int, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    command = [sys.executable, "-m", "annulus_rag_bench", *arguments]
    return subprocess.run(
        command, env=environment(cql_port, **variables), capture_output=True, text=True, timeout=180, check=False
    )


def asked(url: str, path: str, body: object = None) -> tuple[int, Any]:
    """The status and the JSON of a GET, or of a POST with a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@contextlib.contextmanager
def running(command: str, health: str, cql_port: int, log: pathlib.Path, **variables: str) -> Iterator[str]:
    """Yields the URL of what `serve` or `page` serves. Ends it by its id afterwards."""
    port = free_port()
    arguments = [sys.executable, "-m", "annulus_rag_bench", command, "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, env=environment(cql_port, **variables), stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}/"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(url + health, timeout=5):
            return True
        return False

    try:
        eventually(answers, seconds=START_SECONDS, every=0.1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def running_service(cql_port: int, log: pathlib.Path, **variables: str) -> contextlib.AbstractContextManager[str]:
    return running("serve", "metrics", cql_port, log, **variables)


def running_page(cql_port: int, log: pathlib.Path, **variables: str) -> contextlib.AbstractContextManager[str]:
    return running("page", "_stcore/health", cql_port, log, **variables)
