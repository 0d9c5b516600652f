"""The migration: a schema as published, a load that may be repeated, and a model that may change."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet
import pytest
from annulus_embedder.model import Embedder
from annulus_films.config import SAMPLE, Dialect
from annulus_films.database import DatabaseError, FilmDatabase
from annulus_films.embedding import Vectors
from annulus_films.migrate import migrate, statements
from annulus_films.models import Wish
from annulus_films.recommender import Recommender
from conftest import settings_of
from server import Server, eventually

FILMS = 300


class OtherModel:
    """A model of another name, whose vectors mean nothing."""

    name = "other-model"

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.random.default_rng(len(texts)).normal(size=(len(texts), 384)).astype(np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


@pytest.fixture
def few_films(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "few.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(SAMPLE).slice(0, FILMS), path)
    return path


@pytest.fixture
def empty(tmp_path: pathlib.Path) -> FilmDatabase:
    with Server(tmp_path / "data") as server, FilmDatabase(settings_of(server)) as database:
        yield database


def silent(done: int, all: int) -> None:
    """Shows nothing."""


def test_the_table_has_the_published_columns_with_a_change_log(database: FilmDatabase) -> None:
    rows = database.execute(
        "SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = 'recommend' AND table_name = 'movies'"
    )
    columns = {row.column_name: row.type for row in rows}
    assert columns.pop("genres") == "set<text>"
    assert columns == {
        "id": "int",
        "release_date": "date",
        "title": "text",
        "genre": "text",
        "plot": "text",
        "plot_embedding": "vector<float, 384>",
    }
    assert database.execute("SELECT * FROM recommend.movies_scylla_cdc_log LIMIT 1")
    assert database.count() == 10_000


def test_the_published_statement_finds_a_film_first_by_its_own_vector(database: FilmDatabase) -> None:
    vector = database.embeddings([2567])[2567]
    rows = database.execute(f"SELECT * FROM recommend.movies ORDER BY plot_embedding ANN OF {vector} LIMIT 5")
    assert [len(rows), rows[0].title] == [5, "King Kong"]


def test_a_second_migration_loads_nothing(empty: FilmDatabase, embedder: Embedder, few_films: pathlib.Path) -> None:
    steps: list[int] = []
    for _ in range(2):
        assert migrate(empty, embedder, lambda done, all: steps.append(done), few_films) == FILMS
    assert steps == [FILMS]
    assert empty.count() == FILMS


def test_two_migrations_at_once_load_each_film_once(
    empty: FilmDatabase, embedder: Embedder, few_films: pathlib.Path
) -> None:
    with FilmDatabase(empty.settings) as other, ThreadPoolExecutor(2) as threads:
        done = threads.map(lambda database: migrate(database, embedder, silent, few_films), [empty, other])
        assert list(done) == [FILMS, FILMS]
    assert empty.count() == FILMS
    wish = Wish(sentence="a film", limit=20)
    assert eventually(lambda: len(Recommender(empty, embedder).recommend(wish)) == 20)


def test_a_load_that_was_cut_short_is_finished(
    empty: FilmDatabase, embedder: Embedder, few_films: pathlib.Path
) -> None:
    migrate(empty, embedder, silent, few_films)
    empty.execute("DELETE FROM recommend.movies WHERE id = 7")
    migrate(empty, embedder, silent, few_films)
    assert empty.count() == FILMS


def test_vectors_of_another_model_are_never_compared(
    empty: FilmDatabase, embedder: Embedder, few_films: pathlib.Path
) -> None:
    migrate(empty, embedder, silent, few_films)
    with pytest.raises(DatabaseError, match="embedded by all-MiniLM-L6-v2, and sentences would be by other-model"):
        Recommender(empty, OtherModel())
    migrate(empty, OtherModel(), silent, few_films)
    with pytest.raises(DatabaseError, match="embedded by other-model"):
        Recommender(empty, embedder)
    migrate(empty, embedder, silent, few_films)
    assert Recommender(empty, embedder).recommend(Wish(sentence="a film"))


def test_a_database_without_films_says_how_to_load_them(empty: FilmDatabase, embedder: Embedder) -> None:
    with pytest.raises(DatabaseError, match="python -m annulus_films migrate"):
        Recommender(empty, embedder)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_each_dialect_has_a_schema_of_the_same_columns(dialect: Dialect) -> None:
    made = list(statements(dialect.schema.read_text()))
    table = next(statement for statement in made if "recommend.movies (\n" in statement)
    assert "plot_embedding vector<float, 384>" in table
    assert ("fulltext_index" in "".join(made)) == dialect.has_hybrid
    assert ("StorageAttachedIndex" in "".join(made)) == (dialect is Dialect.CASSANDRA)
