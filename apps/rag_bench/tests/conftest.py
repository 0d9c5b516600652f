"""Articles with vectors, each store with its files in a directory of the tests, a server, and a browser."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/drivers"))

from annulus_rag_bench.article import Article  # noqa: E402
from annulus_rag_bench.config import Settings  # noqa: E402
from annulus_rag_bench.corpus import CORPUS, embedding_text, load_articles  # noqa: E402
from annulus_rag_bench.embeddings import BundledModel, Vectors  # noqa: E402
from annulus_rag_bench.stores import STORES, Store, store_class  # noqa: E402
from playwright.sync_api import Browser  # noqa: E402
from process import BINARY  # noqa: E402
from server import Server  # noqa: E402
from serving import chromium  # noqa: E402

# Every twentieth: articles of all decades, and few enough for a node of Cassandra.
EVERY = 20
LOAD_SECONDS = 60


def own_settings(**others: object) -> Settings:
    """Settings by which a store starts a server of its own: the program that the tests of the server start, too."""
    return Settings(own_servers=True, annulus_binary=BINARY, **others)


def skip_without(name: str) -> None:
    """Leaves out Cassandra where Java 17 and Maven are not there."""
    if name == "cassandra" and os.environ.get("WITHOUT_CASSANDRA"):
        pytest.skip("WITHOUT_CASSANDRA is set")


@pytest.fixture(scope="session")
def articles() -> list[Article]:
    return load_articles()[::EVERY]


@pytest.fixture(scope="session")
def vectors() -> Vectors:
    """Those of the film sample, which are of the bodies alone: a test of a store needs any vectors."""
    column = pyarrow.parquet.read_table(CORPUS, columns=["plot_embedding"])["plot_embedding"]
    return np.stack(column.to_numpy()).astype(np.float32)[::EVERY]


@pytest.fixture(scope="session")
def embeddings() -> BundledModel:
    return BundledModel(threads=2)


# The store of ANOTHER_STORE.md, which is not a part of the application.
EXAMPLE = "sqlite"


def example_class(directory: pathlib.Path) -> type[Store]:
    """The class that ANOTHER_STORE.md shows, as a file next to the other stores would have it."""
    page = (ROOT / "apps/rag_bench/ANOTHER_STORE.md").read_text()
    code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert code is not None
    file = directory / "sqlite.py"
    file.write_text(code[1])
    spec = importlib.util.spec_from_file_location("annulus_rag_bench.stores.sqlite", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SqliteStore


@pytest.fixture(scope="module", params=[*STORES, EXAMPLE])
def empty_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Each store in turn, without tables."""
    skip_without(request.param)
    directory = tmp_path_factory.mktemp(request.param)
    kind = example_class(directory) if request.param == EXAMPLE else store_class(request.param)
    store = kind.start(directory / "store", own_settings())
    yield store
    store.close()


@dataclass(frozen=True)
class Library:
    """Few articles with vectors of the bundled model, for tests of the pipeline."""

    articles: list[Article]
    vectors: Vectors

    def load(self, store: Store) -> None:
        store.create()
        store.insert(self.articles, self.vectors)
        store.wait_until_searchable(len(self.articles), LOAD_SECONDS)
        store.set_embedding_model(BundledModel.name)

    def load_server(self, host: str, port: int) -> None:
        """Loads a server of Annulus."""
        store = store_class("annulus").start(pathlib.Path(), Settings(host=host, port=port))
        try:
            self.load(store)
        finally:
            store.close()


@pytest.fixture(scope="session")
def library(embeddings: BundledModel) -> Library:
    titles = {"Heartbeeps", "Mission to Mars"}
    everything = load_articles()
    chosen = [article for at, article in enumerate(everything) if article.title in titles or at % 150 == 0]
    return Library(chosen, embeddings.embed([embedding_text(article) for article in chosen]))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, library: Library) -> Iterator[Server]:
    """A server of Annulus with the library."""
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    library.load_server(server.host, server.cql_port)
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
