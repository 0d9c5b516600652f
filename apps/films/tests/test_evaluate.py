"""The measure, the judged queries, and that words make answers better."""

from __future__ import annotations

import re

import pyarrow.parquet
import pytest
from annulus_films.config import SAMPLE
from annulus_films.database import FilmDatabase
from annulus_films.evaluate import judged_queries, mean, measure, ndcg
from annulus_films.recommender import Recommender


def test_ndcg_is_that_of_an_example_by_hand() -> None:
    judged = {1: 3, 2: 2, 3: 1}
    assert ndcg([1, 2, 3], judged) == pytest.approx(1)
    assert ndcg([9, 8], judged) == 0
    # Gains 7, 3, 1 at discounts 1, 1 / log2(3), 1 / 2.
    assert ndcg([2, 9, 1], judged) == pytest.approx((3 + 7 / 2) / (7 + 3 / 1.5849625 + 1 / 2), abs=1e-6)
    # A film below the fifth place counts nothing.
    assert ndcg([9, 9, 9, 9, 9, 1], judged) == 0


def test_fifty_queries_have_judged_films_that_are_there(database: FilmDatabase) -> None:
    queries = judged_queries()
    assert len(queries) == len({query.query for query in queries}) == 50
    ids = {film.id for film in database.all_films()}
    for query in queries:
        assert set(query.judged) <= ids, query.query
        assert set(query.judged.values()) <= {0, 1, 2, 3}
        assert max(query.judged.values()) >= 2, query.query


def test_words_and_vectors_are_better_than_vectors_also_where_nothing_was_chosen(recommender: Recommender) -> None:
    scores = measure(recommender)
    for part in (slice(None), slice(1, None, 2)):
        assert mean(scores.hybrid[part]) > mean(scores.vectors[part]) + 0.08
    # docs/films.md has these.
    assert mean(scores.vectors) == pytest.approx(0.385, abs=0.01)
    assert mean(scores.hybrid) == pytest.approx(0.519, abs=0.01)


def test_the_sample_has_few_robots_and_one_in_love() -> None:
    # The page says so under its example, and docs/films.md does.
    films = pyarrow.parquet.read_table(SAMPLE, columns=["title", "plot"]).to_pylist()
    robots = [film for film in films if re.search(r"\b(robots?|androids?)\b", film["plot"], re.IGNORECASE)]
    assert (len(films), len(robots)) == (10_000, 12)
    in_love = [film for film in robots if re.search(r"\b(love|romantic)", film["plot"], re.IGNORECASE)]
    assert [film["title"] for film in in_love] == ["Heartbeeps"]
