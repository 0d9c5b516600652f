"""A server with the films, and a browser."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/drivers"))

from annulus_embedder.model import Embedder  # noqa: E402
from annulus_films.config import Settings  # noqa: E402
from annulus_films.database import FilmDatabase  # noqa: E402
from annulus_films.migrate import migrate  # noqa: E402
from annulus_films.recommender import Recommender  # noqa: E402
from playwright.sync_api import Browser  # noqa: E402
from server import Server  # noqa: E402
from serving import chromium  # noqa: E402


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return Embedder(threads=2)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    yield server
    assert server.stop() == 0, server.log()


def settings_of(server: Server, **others: object) -> Settings:
    return Settings(host=server.host, port=server.cql_port, **others)


@pytest.fixture(scope="session")
def database(server: Server, embedder: Embedder) -> Iterator[FilmDatabase]:
    """The database with all films."""
    with FilmDatabase(settings_of(server)) as database:
        migrate(database, embedder, lambda done, all: None)
        yield database


@pytest.fixture(scope="session")
def recommender(database: FilmDatabase, embedder: Embedder) -> Recommender:
    return Recommender(database, embedder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
