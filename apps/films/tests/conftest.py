"""A server with the films, and a browser."""

from __future__ import annotations

import pathlib
import shutil
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
from playwright.sync_api import Browser, sync_playwright  # noqa: E402
from process import Process  # noqa: E402
from server import READY, Server  # noqa: E402


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return Embedder(threads=2)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    yield server
    assert server.stop() == 0, server.log()


class ServerAt(Server):
    """A server on a CQL port that stays the same when it starts again."""

    def __init__(self, data_dir: pathlib.Path, port: int) -> None:
        self.data_dir, self.cql_port = data_dir, None
        command = ["serve", "--data-dir", data_dir, "--cql-port", str(port), "--http-port", "0"]
        Process.__init__(self, command, READY, data_dir.with_suffix(".log"))


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
    """Debian's Chromium: playwright's own is a download that no registry of packages has."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
