"""A database and a model that are down, come back, or answer wrongly."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from annulus_embedder.model import Embedder
from annulus_embedder.testing import running_embedder, running_scripted_server
from annulus_films.config import Settings
from annulus_films.database import DatabaseError, FilmDatabase
from annulus_films.embedding import EmbeddingError, creator
from annulus_films.migrate import migrate
from annulus_films.models import Wish
from annulus_films.recommender import Recommender
from conftest import settings_of
from pydantic import ValidationError
from server import Server, eventually
from serving import free_port


def test_no_database_is_said_with_the_remedy() -> None:
    with pytest.raises(DatabaseError, match=r"No database answers at 127\.0\.0\.1:\d+\. Start one with: make run"):
        FilmDatabase(Settings(port=free_port()))


def test_a_database_that_comes_back_is_found_again(tmp_path: pathlib.Path, embedder: Embedder) -> None:
    server = Server(tmp_path / "data", cql_port=free_port()).start()
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
        texts = [f"film number {number}" for number in range(3)]
        assert np.allclose(remote.embed(texts), embedder.embed(texts), atol=1e-4)


def test_a_model_that_is_down_is_said_and_found_again(database: FilmDatabase) -> None:
    wish = Wish(sentence="a lonely robot learns to love")
    with running_embedder() as server:
        settings = Settings(embeddings_url=server.base_url, embeddings_model="all-MiniLM-L6-v2")
        recommender = Recommender(database, creator(settings))
        before = [match.film for match in recommender.recommend(wish)]
        server.stop()
        with pytest.raises(EmbeddingError, match="No embedding server at .* Unset FILMS_EMBEDDINGS_URL"):
            recommender.recommend(wish)
        # A film has its vector already.
        assert recommender.recommend(Wish(like_film=before[0].id))
        server.start()
        assert [match.film for match in recommender.recommend(wish)] == before


def test_a_provider_gets_the_key_and_the_dimensions_of_the_table() -> None:
    with running_scripted_server() as provider:
        provider.embed([1.0] + [0.0] * 383)
        remote = creator(Settings(embeddings_url=provider.base_url, embeddings_key="secret"))
        assert remote.embed(["a"]).shape == (1, 384)
        assert provider.authorization == "Bearer secret"
        assert provider.body == {"model": "text-embedding-3-small", "input": ["a"], "dimensions": 384}


def test_a_login_needs_a_name_and_a_password() -> None:
    with pytest.raises(ValidationError, match="FILMS_USERNAME and FILMS_PASSWORD"):
        Settings(username="ada")
