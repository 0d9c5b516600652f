"""The corpus, its addresses, and the questions about it."""

from __future__ import annotations

import pathlib
from datetime import UTC, datetime

import pyarrow
import pyarrow.parquet
import pytest
from annulus_rag_bench.corpus import embedding_text, load_articles
from annulus_rag_bench.questions import judged_questions, ndcg


def test_every_article_has_an_address_of_its_own() -> None:
    articles = load_articles()
    assert len(articles) == len({article.url for article in articles}) == 10_000
    assert all(article.url.startswith("https://en.wikipedia.org/wiki/") for article in articles)
    assert all(article.url.isascii() and " " not in article.url for article in articles)
    assert all(article.title and article.body and article.publication_date.tzinfo is UTC for article in articles)
    of_title = {article.url: article for article in articles if article.title == "Titanic"}
    assert set(of_title) == {f"https://en.wikipedia.org/wiki/Titanic_({year}_film)" for year in (1953, 1996)}


def test_the_first_articles_can_be_loaded_alone() -> None:
    assert load_articles(limit=7) == load_articles()[:7]


def test_the_title_and_the_body_are_embedded() -> None:
    article = load_articles(limit=1)[0]
    assert embedding_text(article) == f"{article.title}\n{article.body}"


def test_two_films_of_one_title_and_year_are_refused(tmp_path: pathlib.Path) -> None:
    film = {"title": "Twins", "release_date": "1988-12-09", "plot": "Two brothers."}
    path = tmp_path / "films.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([film, film]), path)
    with pytest.raises(ValueError, match="two films of one title and year"):
        load_articles(path)


def test_the_questions_are_about_articles_of_their_range() -> None:
    questions, articles = judged_questions(), {article.url: article for article in load_articles()}
    assert len(questions) >= 60 and sum(question.has_dates for question in questions) >= 20
    assert len({(question.question, question.first) for question in questions}) == len(questions)
    for question in questions:
        assert set(question.relevant) <= set(articles), question.question
        assert set(question.relevant.values()) <= {1, 2, 3} and 3 in question.relevant.values()
        for url in question.relevant:
            published = articles[url].publication_date
            assert question.published_from is None or question.published_from <= published
            assert question.published_until is None or published <= question.published_until


def test_a_range_begins_and_ends_at_midnight_utc() -> None:
    dated = next(question for question in judged_questions() if question.question == "vampires")
    assert dated.published_from == datetime(1980, 1, 1, tzinfo=UTC)
    assert dated.published_until == datetime(1989, 12, 31, tzinfo=UTC)


def test_ndcg_is_one_for_the_best_order_and_less_for_others() -> None:
    relevant = {"a": 3, "b": 2, "c": 1}
    assert ndcg(["a", "b", "c"], relevant) == 1
    assert ndcg(["x", "y"], relevant) == 0
    assert ndcg([], relevant) == 0
    # 7 at the second place, divided by log2(3), of 7 + 3 / log2(3) + 1 / 2.
    assert ndcg(["x", "a"], relevant) == pytest.approx((7 / 1.58496) / (7 + 3 / 1.58496 + 0.5), abs=1e-4)
    assert ndcg(["c", "b", "a"], relevant) < ndcg(["b", "a", "c"], relevant) < 1
    # Only the first five count.
    assert ndcg(["1", "2", "3", "4", "5", "a"], relevant) == 0
