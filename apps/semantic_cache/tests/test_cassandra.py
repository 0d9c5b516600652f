"""The same cache on a real Cassandra 5 node, by one setting."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator

import pytest
from conftest import ROOT, SharedEmbeddings

sys.path.append(str(ROOT / "tests/cassandra"))
from ring import cassandra_ring  # noqa: E402
from server import eventually  # noqa: E402

from annulus_semantic_cache import SemanticCache, Settings  # noqa: E402

EGG, EGG_TOO = "How do I boil an egg?", "How can I boil an egg?"
LIBRARY = pathlib.Path(os.environ.get("CASSANDRA_LIB", ROOT / "target/cassandra-lib"))

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("WITHOUT_CASSANDRA")) or not (LIBRARY / ".complete").exists(),
    reason="no Cassandra: make cassandra",
)


@pytest.fixture(scope="module")
def on_cassandra(embeddings: SharedEmbeddings) -> Iterator[SemanticCache]:
    with cassandra_ring(1) as ring:
        settings = Settings(
            dialect="cassandra", hosts=(ring.hosts[0],), cql_port=ring.port, database_timeout=30, embedding_timeout=30
        )
        with SemanticCache(settings, embeddings=embeddings) as cache:
            assert cache.ready(120), cache.asynchronous.trouble
            yield cache


def test_hits_tenants_and_invalidations_are_the_same(on_cassandra: SemanticCache) -> None:
    cache = on_cassandra
    key = cache.put(EGG, "Ten minutes.", tags=["kitchen"], tenant="a", user="ann")
    exact = cache.get(EGG, tenant="a")
    assert exact is not None and (exact.prompt_id, exact.kind) == (key, "exact")
    similar = eventually(lambda: cache.get(EGG_TOO, tenant="a"))
    assert similar.kind == "similar"
    assert 0.9 < similar.similarity < 1
    for text in (EGG, EGG_TOO):
        assert cache.get(text, tenant="b") is None
        assert cache.get(text, tenant="a", model="other") is None
    assert cache.invalidate(tag="none") == 0
    for which in (
        {"tag": "kitchen"},
        {"text": EGG},
        {"tenant": "a", "user": "ann"},
        {"older_than": 0},
        {"everything": True},
    ):
        cache.put(EGG, "Ten minutes.", tags=["kitchen"], tenant="a", user="ann")
        assert cache.invalidate(**which) == 1, which
        assert cache.get(EGG, tenant="a") is None
        assert cache.get(EGG_TOO, tenant="a") is None


def test_answers_expire(on_cassandra: SemanticCache) -> None:
    on_cassandra.put(EGG, "Ten minutes.", ttl=2, tenant="short")
    assert on_cassandra.get(EGG, tenant="short") is not None
    eventually(
        lambda: on_cassandra.get(EGG, tenant="short") is None and on_cassandra.get(EGG_TOO, tenant="short") is None, 20
    )
