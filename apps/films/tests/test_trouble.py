"""A database and a model that are down, come back, or answer wrongly."""

from __future__ import annotations

import json
import pathlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from annulus_embedder.model import Embedder
from annulus_embedder.testing import running_embedder
from annulus_films.config import Settings
from annulus_films.database import DatabaseError, FilmDatabase
from annulus_films.embedding import EmbeddingError, RemoteEmbedder, creator
from annulus_films.migrate import migrate
from annulus_films.models import Wish
from annulus_films.recommender import Recommender
from conftest import ServerAt, settings_of
from pages import free_port
from pydantic import ValidationError
from server import eventually


def test_no_database_is_said_with_the_remedy() -> None:
    with pytest.raises(DatabaseError, match=r"No database answers at 127\.0\.0\.1:\d+\. Start one with: make run"):
        FilmDatabase(Settings(port=free_port()))


def test_a_database_that_comes_back_is_found_again(tmp_path: pathlib.Path, embedder: Embedder) -> None:
    server = ServerAt(tmp_path / "data", free_port()).start()
    try:
        with FilmDatabase(settings_of(server)) as database:
            migrate(database, embedder, lambda done, all: None)
            recommender, wish = Recommender(database, embedder), Wish(sentence="a lonely robot learns to love")
            before = recommender.recommend(wish)
            server.stop()
            with pytest.raises(DatabaseError, match="No database answers"):
                recommender.recommend(wish)
            server.start()

            def answer() -> object:
                try:
                    return recommender.recommend(wish)
                except DatabaseError:
                    return None

            assert eventually(answer, seconds=60, every=0.2) == before
    finally:
        if server.is_running:
            server.stop()


def test_a_server_in_openais_form_embeds_as_the_model_itself(embedder: Embedder) -> None:
    with running_embedder() as server:
        settings = Settings(embeddings_url=server.base_url, embeddings_model="all-MiniLM-L6-v2")
        remote = creator(settings)
        assert remote.name == embedder.name
        texts = [f"film number {number}" for number in range(100)]
        assert np.allclose(remote.embed(texts), embedder.embed(texts), atol=1e-4)
        assert remote.embed([]).shape == (0, 384)
        server.stop()
        with pytest.raises(EmbeddingError, match="No embedding server at .* Unset FILMS_EMBEDDINGS_URL"):
            remote.embed(["x"])


class Provider(HTTPServer):
    """Answers every request with what a test says, and remembers the last one."""

    status, answer = 200, b""
    key: str | None = None
    body: dict[str, object] = {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        provider = self.server
        assert isinstance(provider, Provider)
        provider.key = self.headers["Authorization"]
        provider.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(provider.status)
        self.send_header("Content-Length", str(len(provider.answer)))
        self.end_headers()
        self.wfile.write(provider.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Writes nothing."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield provider
    provider.shutdown()
    thread.join()
    provider.server_close()


def remote(provider: Provider) -> RemoteEmbedder:
    return RemoteEmbedder(
        Settings(embeddings_url=f"http://127.0.0.1:{provider.server_port}/v1", embeddings_key="secret")
    )


def test_a_provider_gets_the_key_and_the_dimensions_of_the_table(provider: Provider) -> None:
    # Out of order, and not of length 1.
    vectors = [{"index": 1, "embedding": [2.0] + [0.0] * 383}, {"index": 0, "embedding": [0.0] * 383 + [3.0]}]
    provider.answer = json.dumps({"data": vectors}).encode()
    found = remote(provider).embed(["a", "b"])
    assert [found[0][383], found[1][0]] == [1.0, 1.0]
    assert provider.key == "Bearer secret"
    assert provider.body == {"model": "text-embedding-3-small", "input": ["a", "b"], "dimensions": 384}


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (401, b'{"error": {"message": "no such key"}}', "answers 401: .*no such key"),
        (200, b"<html>", "does not answer in OpenAI's form"),
        (200, b'{"data": [{"index": 0}]}', "does not answer in OpenAI's form"),
        (200, b'{"data": [{"index": 0, "embedding": [1.0, 2.0]}]}', r"shape \(1, 2\), and the table takes 384"),
        (200, b'{"data": []}', "the table takes 384"),
    ],
)
def test_a_provider_that_answers_wrongly_is_an_error_in_words(
    provider: Provider, status: int, answer: bytes, says: str
) -> None:
    provider.status, provider.answer = status, answer
    with pytest.raises(EmbeddingError, match=says) as error:
        remote(provider).embed(["a"])
    assert "secret" not in str(error.value)


def test_a_login_needs_a_name_and_a_password() -> None:
    with pytest.raises(ValidationError, match="FILMS_USERNAME and FILMS_PASSWORD"):
        Settings(username="ada")
