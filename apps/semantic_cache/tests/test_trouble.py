"""The database and the embedding model down, and back: no request fails, and nothing is lost."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import time

import pytest
from conftest import FailingEmbeddings, SharedEmbeddings
from server import Server, eventually

from annulus_semantic_cache import DatabaseDownError, SemanticCache, Settings
from annulus_semantic_cache.embeddings import EmbeddingError

EGG, EGG_TOO = "How do I boil an egg?", "How can I boil an egg?"


@pytest.fixture
def own_server(tmp_path: pathlib.Path) -> Server:
    return Server(tmp_path / "data")


def test_answers_wait_for_a_database_that_is_down_and_are_there_when_it_is_back(
    own_server: Server, embeddings: SharedEmbeddings
) -> None:
    own_server.start()
    settings = Settings(cql_port=own_server.cql_port, database_timeout=5, embedding_timeout=30)
    with SemanticCache(settings, embeddings=embeddings) as cache:
        cache.put(EGG, "before")
        own_server.kill()
        assert cache.get(EGG) is None
        for number in range(20):
            assert cache.put(f"Question number {number}?", f"answer {number}") is not None
        with pytest.raises(DatabaseDownError):
            cache.invalidate(tag="food")
        began = time.monotonic()
        for _ in range(100):
            assert cache.get(EGG) is None
        assert time.monotonic() - began < 5, "look-ups wait for a database that is known to be down"
        assert "database" in cache.asynchronous.trouble
        with Server(own_server.data_dir, cql_port=own_server.cql_port):
            eventually(lambda: cache.get(EGG) is not None, 60)
            eventually(lambda: not cache.asynchronous._waiting, 60)
            for number in range(20):
                hit = cache.get(f"Question number {number}?")
                assert hit is not None and hit.response == f"answer {number}"
            assert cache.invalidate(everything=True) == 21


def test_an_erasure_takes_answers_that_wait(own_server: Server, embeddings: SharedEmbeddings) -> None:
    own_server.start()
    settings = Settings(cql_port=own_server.cql_port, database_timeout=5, embedding_timeout=30)
    with SemanticCache(settings, embeddings=embeddings) as cache:
        own_server.kill()
        cache.put(EGG, "secret", tenant="a")
        cache.put(EGG, "stays", tenant="b")
        with pytest.raises(DatabaseDownError):
            cache.invalidate(tenant="a")
        with Server(own_server.data_dir, cql_port=own_server.cql_port):
            eventually(lambda: cache.get(EGG, tenant="b") is not None, 60)
            assert cache.get(EGG, tenant="a") is None
            assert cache.invalidate(tenant="a") == 0


def test_a_bounded_number_of_answers_waits(settings: Settings, embeddings: SharedEmbeddings) -> None:
    nowhere = dataclasses.replace(settings, cql_port=1, waiting=3)
    cache = SemanticCache(nowhere, embeddings=embeddings)
    for number in range(5):
        cache.put(f"Question number {number}?", "answer")
    assert len(cache.asynchronous._waiting) == 3
    assert b"semantic_cache_lost_total 2.0" in cache.asynchronous.metrics.text()
    cache.close()


def test_a_database_that_comes_after_the_cache_is_found(own_server: Server, embeddings: SharedEmbeddings) -> None:
    with own_server:
        pass
    cache = SemanticCache(Settings(cql_port=own_server.cql_port, database_timeout=5), embeddings=embeddings)
    assert cache.get(EGG) is None
    cache.put(EGG, "answer")
    with Server(own_server.data_dir, cql_port=own_server.cql_port):
        eventually(lambda: cache.get(EGG) is not None, 60)
        cache.close()


def test_a_frozen_database_costs_its_timeout_once(own_server: Server, embeddings: SharedEmbeddings) -> None:
    with own_server:
        settings = Settings(cql_port=own_server.cql_port, database_timeout=0.3, embedding_timeout=30)
        with SemanticCache(settings, embeddings=embeddings) as cache:
            cache.put(EGG, "answer")
            eventually(lambda: cache.get(EGG) is not None)
            os.kill(own_server.pid, signal.SIGSTOP)
            try:
                # Its threads may answer once more.
                eventually(lambda: cache.get(EGG) is None)
                began = time.monotonic()
                for _ in range(50):
                    assert cache.get(EGG) is None
                assert time.monotonic() - began < 5, "each look-up waits for the timeout"
            finally:
                os.kill(own_server.pid, signal.SIGCONT)
            eventually(lambda: cache.get(EGG) is not None, 30)


def test_without_embeddings_the_exact_text_is_still_a_hit(settings: Settings, embeddings: SharedEmbeddings) -> None:
    failing = FailingEmbeddings(embeddings, EmbeddingError)
    with SemanticCache(settings, embeddings=failing) as cache:
        assert cache.put(EGG, "answer") is not None
        hit = cache.get(EGG)
        assert hit is not None and hit.kind == "exact"
        assert cache.get(EGG_TOO) is None
        failing.fails = False
        assert cache.get(EGG_TOO) is None, "the row has no vector"
        cache.put(EGG, "answer")
        assert cache.get(EGG_TOO) is not None


def test_a_table_that_was_dropped_is_made_again(cache: SemanticCache, settings: Settings) -> None:
    cache.put(EGG, "answer")
    session = cache.asynchronous._rows._connection.session  # type: ignore[union-attr]
    session.execute(f"DROP TABLE {settings.keyspace}.{settings.table}", timeout=30)
    assert cache.get(EGG) is None
    cache.put(EGG, "answer")
    eventually(lambda: cache.get(EGG) is not None, 30)
