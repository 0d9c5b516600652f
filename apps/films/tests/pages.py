"""Starts a Streamlit page as a process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys

from serving import free_port, serving

APPLICATION = pathlib.Path(__file__).resolve().parents[1]


def running_page(
    command: list[str], directory: pathlib.Path, port: int, log: pathlib.Path, **variables: str
) -> contextlib.AbstractContextManager[str]:
    """Yields the URL of a page that a command serves on a port."""
    return serving(command, port, "_stcore/health", log, {**os.environ, **variables}, directory)


def running_app(
    host: str, cql_port: int, log: pathlib.Path, **variables: str
) -> contextlib.AbstractContextManager[str]:
    """Yields the URL of the application's page."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "annulus_films/app.py", "--server.port", str(port)]
    path = os.pathsep.join([str(APPLICATION), str(APPLICATION.parent / "embedder")])
    settings = {"PYTHONPATH": path, "FILMS_HOST": host, "FILMS_PORT": str(cql_port), **variables}
    return running_page(command, APPLICATION, port, log, **settings)
