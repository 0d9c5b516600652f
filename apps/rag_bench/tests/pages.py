"""Starts the service and the page as processes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

from serving import free_port, serving

APPLICATION = pathlib.Path(__file__).resolve().parents[1]


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


def running(
    command: str, health: str, cql_port: int, log: pathlib.Path, **variables: str
) -> contextlib.AbstractContextManager[str]:
    """Yields the URL of what `serve` or `page` serves."""
    port = free_port()
    arguments = [sys.executable, "-m", "annulus_rag_bench", command, "--port", str(port)]
    return serving(arguments, port, health, log, environment(cql_port, **variables))


def running_service(cql_port: int, log: pathlib.Path, **variables: str) -> contextlib.AbstractContextManager[str]:
    return running("serve", "metrics", cql_port, log, **variables)


def running_page(cql_port: int, log: pathlib.Path, **variables: str) -> contextlib.AbstractContextManager[str]:
    return running("page", "_stcore/health", cql_port, log, **variables)
