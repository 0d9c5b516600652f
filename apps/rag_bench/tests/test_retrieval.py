"""The function of the series on a server of Annulus: loading, questions of all kinds, and trouble."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest
from annulus_embedder.client import RemoteEmbedder
from annulus_embedder.testing import running_embedder
from annulus_rag_bench.article import Article
from annulus_rag_bench.config import Settings
from annulus_rag_bench.corpus import load_articles
from annulus_rag_bench.embeddings import BundledModel, EmbeddingError, embed_cached, embeddings_of
from annulus_rag_bench.load import load
from annulus_rag_bench.retrieval import related_articles
from annulus_rag_bench.stores import Store, StoreError, check_model, opened_store, store_class
from conftest import own_settings
from pydantic import ValidationError
from server import Server, eventually

# They are of the early years, and one is about Houdini.
FIRST, ARTICLES = 720, 80


def silent(what: str, done: int, all: int) -> None:
    """No progress is shown."""


@pytest.fixture(scope="module")
def some() -> list[Article]:
    return load_articles()[FIRST : FIRST + ARTICLES]


@pytest.fixture(scope="module")
def store(some: list[Article], embeddings: BundledModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = store_class("annulus").start(tmp_path_factory.mktemp("annulus"), own_settings())
    assert load(store, some, embeddings, silent) == ARTICLES
    yield store
    store.close()


@pytest.mark.smoke
def test_a_question_finds_its_article(store: Store, embeddings: BundledModel) -> None:
    for hybrid in (False, True):
        found = related_articles(store, embeddings, "an adventure with the escape artist Houdini", hybrid=hybrid)
        assert len(found) == 5
        assert found[0].title == "Terror Island" and 0 < found[0].distance < 1


def test_dates_limit_and_other_languages(store: Store, embeddings: BundledModel) -> None:
    # Only the year is known of most films, whose day is the first of it.
    first, last = datetime(1920, 1, 2, tzinfo=UTC), datetime(1920, 12, 31, tzinfo=UTC)
    found = related_articles(store, embeddings, "a comedy", 3, published_from=first, published_until=last)
    assert 0 < len(found) <= 3 and all(first <= article.publication_date <= last for article in found)
    for question in (
        "無声映画",
        "🎬🎩",
        "ein Film über Liebe",
        "half a character \ud800",
        "zero \0 zero",
        "x" * 100_000,
    ):
        assert len(related_articles(store, embeddings, question, hybrid=True)) == 5


def test_a_bad_question_is_refused_in_words(store: Store, embeddings: BundledModel) -> None:
    for empty in ("", " \n\t", "\0"):
        with pytest.raises(ValueError, match="the question is empty"):
            related_articles(store, embeddings, empty)
    for limit in (0, -1, 101):
        with pytest.raises(ValueError, match="the limit must be 1 to 100"):
            related_articles(store, embeddings, "x", limit)
    with pytest.raises(ValueError, match="no date is both after 1950-01-01 and before 1940-01-01"):
        days = {"published_from": datetime(1950, 1, 1, tzinfo=UTC), "published_until": datetime(1940, 1, 1, tzinfo=UTC)}
        related_articles(store, embeddings, "x", **days)


def test_hybrid_is_refused_where_a_store_has_none(embeddings: BundledModel, tmp_path: pathlib.Path) -> None:
    store = store_class("clickhouse").start(tmp_path, own_settings())
    try:
        with pytest.raises(StoreError, match="ClickHouse does not search by words as well"):
            related_articles(store, embeddings, "x", hybrid=True)
    finally:
        store.close()


def test_loading_again_changes_nothing_and_another_model_replaces_all(
    some: list[Article], embeddings: BundledModel, tmp_path: pathlib.Path
) -> None:
    class Backwards:
        """Another model: the same vectors, backwards."""

        name = "backwards"

        def embed(self, texts: list[str]) -> np.ndarray:
            return np.ascontiguousarray(embeddings.embed(texts)[:, ::-1])

    few = some[:20]
    store = store_class("qdrant").start(tmp_path, own_settings())
    try:
        steps: list[str] = []
        load(store, few, embeddings, lambda what, done, all: steps.append(what))
        assert "Loading" in steps
        steps.clear()
        load(store, few, embeddings, lambda what, done, all: steps.append(what))
        assert steps == []
        with pytest.raises(StoreError, match="embedded by all-MiniLM-L6-v2, and questions would be by backwards"):
            check_model(store, "backwards")
        load(store, few, Backwards(), silent)
        check_model(store, "backwards")
        assert store.count() == 20
        assert related_articles(store, Backwards(), few[3].body)[0].url == few[3].url
    finally:
        store.close()


def test_a_database_that_comes_back_is_found_again(
    some: list[Article], embeddings: BundledModel, tmp_path: pathlib.Path
) -> None:
    first = Server(tmp_path / "data").start()
    port = first.cql_port
    with opened_store(Settings(host=first.host, port=port)) as store:
        load(store, some[:20], embeddings, silent)
        first.stop()
        with pytest.raises(StoreError, match=rf"No Annulus answers at 127\.0\.0\.1:{port}\. Start one with: make run"):
            related_articles(store, embeddings, some[3].body)
        again = Server(tmp_path / "data", cql_port=port).start()
        try:

            def answer() -> object:
                try:
                    return related_articles(store, embeddings, some[3].body)[0].url
                except StoreError:
                    return None

            assert eventually(answer, seconds=60, every=0.2) == some[3].url
        finally:
            again.stop()
    with pytest.raises(StoreError, match="No Annulus answers"):
        store_class("annulus").start(tmp_path, Settings(port=port))


def test_articles_stay_when_a_store_is_opened_again(some: list[Article], tmp_path: pathlib.Path) -> None:
    vectors = np.eye(384, dtype=np.float32)[:10]
    for name in ("annulus", "clickhouse", "pgvector", "qdrant"):
        store = store_class(name).start(tmp_path / name, own_settings())
        store.create()
        store.insert(some[:10], vectors)
        store.wait_until_searchable(10, 60)
        store.set_embedding_model("a model")
        store.close()
        store = store_class(name).start(tmp_path / name, own_settings())
        try:
            store.create()
            assert (name, store.count(), store.embedding_model()) == (name, 10, "a model")
        finally:
            store.close()


def test_an_unknown_store_and_a_half_login_are_refused() -> None:
    with pytest.raises(StoreError, match="There is no store 'x': choose one of annulus, cassandra"):
        store_class("x")
    with pytest.raises(ValidationError, match="a login needs both RAG_USERNAME and RAG_PASSWORD"):
        Settings(username="x")


def test_a_program_that_is_not_there_is_said(tmp_path: pathlib.Path) -> None:
    settings = Settings(own_servers=True, annulus_binary=tmp_path / "annulus")
    with pytest.raises(StoreError, match="does not start.*cargo build --release -p annulus"):
        store_class("annulus").start(tmp_path, settings)


def test_a_server_of_embeddings_gives_the_same_vectors(embeddings: BundledModel) -> None:
    with running_embedder() as server:
        remote = embeddings_of(Settings(embeddings_url=server.base_url, embeddings_model="all-MiniLM-L6-v2"))
        assert isinstance(remote, RemoteEmbedder)
        texts = ["a film", "a horse"] * 40
        assert np.allclose(remote.embed(texts), embeddings.embed(texts), atol=1e-5)
        assert remote.embed([]).shape == (0, 384)
    with pytest.raises(EmbeddingError, match="No embedding server at .*Unset RAG_EMBEDDINGS_URL"):
        remote.embed(["a film"])


def test_vectors_are_computed_once(embeddings: BundledModel, tmp_path: pathlib.Path) -> None:
    class Counting:
        """The model, which counts its texts."""

        name, texts = "counting", 0

        def embed(self, texts: list[str]) -> np.ndarray:
            self.texts += len(texts)
            return embeddings.embed(texts)

    model = Counting()
    first = embed_cached(model, ["a", "b"], tmp_path)
    assert np.array_equal(embed_cached(model, ["a", "b"], tmp_path), first) and model.texts == 2
    embed_cached(model, ["a", "c"], tmp_path)
    model.name = "another"
    embed_cached(model, ["a", "b"], tmp_path)
    assert model.texts == 6
