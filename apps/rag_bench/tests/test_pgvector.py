"""The connection to PostgreSQL: an error leaves it as it was, and one that broke is opened again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from annulus_rag_bench.article import Article
from annulus_rag_bench.embeddings import Vectors
from annulus_rag_bench.stores import StoreError
from annulus_rag_bench.stores.pgvector import PgvectorStore, PostgresConnection
from conftest import own_settings

END_OTHERS = """SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgvectorStore]:
    store = PgvectorStore.start(tmp_path_factory.mktemp("pgvector"), own_settings())
    store.create()
    yield store
    store.close()


def test_a_connection_that_broke_is_opened_again(
    store: PgvectorStore, articles: list[Article], vectors: Vectors
) -> None:
    store.insert(articles[:3], vectors[:3])
    other = PostgresConnection(store._server)
    other.rows(END_OTHERS)
    other.close()
    # The reader's and the writer's.
    with pytest.raises(StoreError, match="PostgreSQL does not answer"):
        store.count()
    with pytest.raises(StoreError, match="PostgreSQL does not answer"):
        store.insert(articles[3:5], vectors[3:5])
    assert store.count() == 3
    store.insert(articles[3:5], vectors[3:5])
    assert store.count() == 5


def test_an_insert_that_fails_leaves_no_article_and_the_next_one_works(
    store: PgvectorStore, articles: list[Article], vectors: Vectors
) -> None:
    before = store.count()
    with pytest.raises(StoreError, match="PostgreSQL refuses: expected 384 dimensions, not 3"):
        store.insert(articles[10:12], [vectors[10], vectors[11][:3]])  # type: ignore[arg-type]
    assert store.count() == before
    store.insert(articles[10:12], vectors[10:12])
    assert store.count() == before + 2
