"""Fixtures: a real `annulus serve`, embeddings in this process, a stub model, and a proxy as a process."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

APP = pathlib.Path(__file__).resolve().parents[1]
ROOT = APP.parents[1]
sys.path += [str(ROOT / "tests/drivers"), str(ROOT / "tests/cassandra")]

from annulus_embedder.testing import StubModelServer, running_stub_model  # noqa: E402
from server import Server  # noqa: E402

from annulus_semantic_cache import SemanticCache, Settings  # noqa: E402
from annulus_semantic_cache.embeddings import Embedded, LocalEmbeddings  # noqa: E402

ADMIN = "token-of-the-tests"
READY = re.compile(r"ready: (http://[\d.]+:\d+)/v1")
STARTS_WITHIN = 60
_tables = itertools.count()


class SharedEmbeddings(LocalEmbeddings):
    """The bundled model, loaded once for all tests: a cache that closes leaves it open."""

    async def close(self) -> None:
        pass


class FailingEmbeddings:
    """Embeddings that fail while `fails` is set, and are those of another elsewhere."""

    def __init__(self, inner: LocalEmbeddings, error: type[Exception]) -> None:
        self.name, self._inner, self._error = inner.name, inner, error
        self.fails = True

    async def embed(self, texts: Any) -> list[Embedded]:
        if self.fails:
            raise self._error("down by the test's wish")
        return await self._inner.embed(texts)

    async def close(self) -> None:
        pass


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def embeddings() -> SharedEmbeddings:
    return SharedEmbeddings(threads=1)


@pytest.fixture(scope="session")
def model() -> Iterator[StubModelServer]:
    with running_stub_model(0.2) as running:
        yield running


@pytest.fixture
def settings(server: Server) -> Settings:
    """Settings with a table of the test's own."""
    return Settings(
        cql_port=server.cql_port, table=f"prompts_{next(_tables)}", database_timeout=10, embedding_timeout=30
    )


@pytest.fixture
def cache(settings: Settings, embeddings: SharedEmbeddings) -> Iterator[SemanticCache]:
    with SemanticCache(settings, embeddings=embeddings) as made:
        assert made.ready(60)
        yield made


class ProxyProcess:
    """The command `serve` in a process of its own."""

    def __init__(self, *arguments: str, variables: dict[str, str] | None = None) -> None:
        path = os.pathsep.join([str(APP), str(APP.parent / "embedder")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "annulus_semantic_cache", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "SEMANTIC_CACHE_ADMIN_TOKEN": ADMIN, **(variables or {})},
        )
        self._lines: list[str] = []
        self._listens = threading.Event()
        self.url = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._listens.wait(STARTS_WITHIN) or not self.url:
            self.stop()
            raise AssertionError(f"the proxy doesn't listen:\n{self.log}")

    @property
    def log(self) -> str:
        """All that it has printed."""
        return "".join(self._lines)

    @property
    def base_url(self) -> str:
        return self.url + "/v1"

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if ready := READY.search(line):
                self.url = ready[1]
                self._listens.set()
        self._listens.set()


StartProxy = Callable[..., ProxyProcess]


@pytest.fixture
def start_proxy(settings: Settings, model: StubModelServer) -> Iterator[StartProxy]:
    """Starts proxies on the test's table, before the stub model."""
    with contextlib.ExitStack() as running:

        def start(
            *arguments: str, upstream: str | None = None, variables: dict[str, str] | None = None
        ) -> ProxyProcess:
            proxy = ProxyProcess(
                "--upstream", upstream or model.base_url,
                "--cql-port", str(settings.cql_port),
                "--table", settings.table,
                "--database-timeout", "10",
                "--embedding-timeout", "30",
                *arguments,
                variables=variables,
            )  # fmt: skip
            running.callback(proxy.stop)
            return proxy

        yield start
