"""The application on a real Apache Cassandra 5 node: searches by vectors and filters, without words.

WITHOUT_CASSANDRA=1 leaves it out, as Java 17 and Maven are needed.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator

import pyarrow.parquet
import pytest
from annulus_embedder.model import Embedder
from annulus_films.config import SAMPLE, Dialect, Settings
from annulus_films.database import FilmDatabase
from annulus_films.migrate import migrate
from annulus_films.models import Wish
from annulus_films.recommender import Recommender
from conftest import ROOT

sys.path.append(str(ROOT / "tests/cassandra"))

from ring import Ring, cassandra_ring  # noqa: E402

pytestmark = pytest.mark.skipif(bool(os.environ.get("WITHOUT_CASSANDRA")), reason="WITHOUT_CASSANDRA is set")

# The node inserts a few hundred vectors a second. These hold the film about robots in love.
FIRST, FILMS = 6_000, 1_000


@pytest.fixture(scope="module")
def ring() -> Iterator[Ring]:
    with cassandra_ring(1) as ring:
        yield ring


@pytest.fixture(scope="module")
def recommender(ring: Ring, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recommender]:
    some: pathlib.Path = tmp_path_factory.mktemp("films") / "some.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(SAMPLE).slice(FIRST, FILMS), some)
    settings = Settings(dialect=Dialect.CASSANDRA, host=ring.hosts[0], port=ring.port)
    with FilmDatabase(settings) as database:
        for _ in range(2):
            assert migrate(database, embedder, lambda done, all: None, some) == FILMS
        yield Recommender(database, embedder)


def test_a_sentence_finds_robots_by_vectors(recommender: Recommender) -> None:
    matches = recommender.recommend(Wish(sentence="two robots fall in love", limit=5))
    assert matches[0].film.title == "Heartbeeps"
    cosines = [match.cosine for match in matches]
    assert cosines == sorted(cosines, reverse=True) and 0.4 < cosines[0] < 1
    # Words are not searched, whatever the wish says.
    assert all(match.highlight is None and match.words_score is None for match in matches)


def test_filters_hold(recommender: Recommender) -> None:
    matches = recommender.recommend(
        Wish(sentence="a monster attacks", genre="Horror", year_from=1975, year_to=1980, limit=5)
    )
    assert len(matches) == 5
    for film in (match.film for match in matches):
        assert "Horror" in film.genres and 1975 <= film.release_date.year <= 1980


def test_likes_and_more_like_this_work(recommender: Recommender) -> None:
    assert len(recommender.recommend(Wish(like_film=6830, limit=3))) == 3
    found = [match.film.id for match in recommender.recommend(Wish(sentence="love", liked=frozenset({6830}), limit=3))]
    assert len(found) == 3 and 6830 not in found
