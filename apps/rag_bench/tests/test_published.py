"""The statements of the published code for Cassandra, unchanged: on Annulus, and on a real Cassandra 5 node."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from annulus_rag_bench.article import Article
from annulus_rag_bench.embeddings import Vectors
from annulus_rag_bench.stores.published import (
    CREATE_INDEX,
    CREATE_KEYSPACE,
    CREATE_TABLE,
    INSERT,
    KEYSPACE,
    SELECT,
)
from annulus_rag_bench.stores.server_process import AnnulusProcess, CassandraProcess
from cassandra.cluster import Cluster, Session
from cassandra.query import SimpleStatement
from conftest import skip_without
from process import BINARY
from server import eventually

ARTICLES = 40
REQUEST_SECONDS = 60


@pytest.fixture(params=["annulus", "cassandra"])
def session(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Session]:
    """The driver, connected as the published code connects, but patient with a node on a busy machine."""
    skip_without(request.param)
    server: AnnulusProcess | CassandraProcess
    if request.param == "annulus":
        server = AnnulusProcess(BINARY, tmp_path)
        host = "127.0.0.1"
    else:
        server = CassandraProcess(tmp_path)
        host = server.host
    cluster = Cluster([host], port=server.port)
    try:
        connected = cluster.connect()
        connected.default_timeout = REQUEST_SECONDS
        yield connected
    finally:
        cluster.shutdown()
        server.stop()


def test_the_published_statements_run_unchanged(session: Session, articles: list[Article], vectors: Vectors) -> None:
    for _ in range(2):
        session.execute(CREATE_KEYSPACE)
        session.execute(CREATE_TABLE)
        session.set_keyspace(KEYSPACE)
        session.execute(CREATE_INDEX)
    insert = SimpleStatement(INSERT)
    for article, vector in zip(articles[:ARTICLES], vectors[:ARTICLES].tolist(), strict=True):
        values = (article.url, article.title, article.body, article.publication_date, vector)
        assert session.execute(insert, values).was_applied
    first = articles[0]
    again = session.execute(insert, (first.url, "Another title", "", first.publication_date, vectors[1].tolist()))
    assert not again.was_applied and again.one().title == first.title
    prepared = session.prepare(SELECT)
    for at in (0, 17, ARTICLES - 1):
        found = eventually(lambda at=at: session.execute(prepared, (vectors[at].tolist(), 5)).all())
        assert len(found) == 5
        wanted = articles[at]
        assert (found[0].url, found[0].title, found[0].body) == (wanted.url, wanted.title, wanted.body)
        assert found[0].publication_date == wanted.publication_date.replace(tzinfo=None)
    assert len(session.execute(prepared, (vectors[0].tolist(), 2)).all()) == 2
