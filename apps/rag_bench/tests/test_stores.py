"""What every store promises: the same tests for each, also for the one that is added next.

WITHOUT_CASSANDRA=1 leaves Cassandra out, as Java 17 and Maven are needed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from annulus_rag_bench.article import Article
from annulus_rag_bench.embeddings import Vectors
from annulus_rag_bench.exact import ExactSearch
from annulus_rag_bench.stores import Query, Store, StoreError, check_model

SECONDS = 60
MODEL = "a model"
# Elsewhere than all articles, so that one there is found by a search there.
ALONE = np.eye(384, dtype=np.float32)


@pytest.fixture(scope="module")
def store(empty_store: Store, articles: list[Article], vectors: Vectors) -> Iterator[Store]:
    """The store with its articles, in two inserts."""
    empty_store.remove_all()
    empty_store.create()
    half = len(articles) // 2
    empty_store.insert(articles[:half], vectors[:half])
    empty_store.insert(articles[half:], vectors[half:])
    empty_store.wait_until_searchable(len(articles), SECONDS)
    empty_store.set_embedding_model(MODEL)
    yield empty_store


@pytest.fixture(scope="module")
def exact(articles: list[Article], vectors: Vectors) -> ExactSearch:
    return ExactSearch(articles, vectors)


def test_without_articles_the_remedy_is_said(empty_store: Store) -> None:
    empty_store.remove_all()
    assert empty_store.embedding_model() is None
    with pytest.raises(StoreError, match=f"annulus_rag_bench load --store {empty_store.name}"):
        empty_store.related_articles(Query("x", ALONE[0]))
    with pytest.raises(StoreError, match=f"annulus_rag_bench load --store {empty_store.name}"):
        check_model(empty_store, MODEL)


def test_the_nearest_articles_are_found_whole(store: Store, articles: list[Article], vectors: Vectors) -> None:
    for at in (0, 100, 499):
        found = store.related_articles(Query(articles[at].title, vectors[at]))
        assert len(found) == 5
        first = found[0]
        assert (first.url, first.title, first.body) == (articles[at].url, articles[at].title, articles[at].body)
        assert first.publication_date == articles[at].publication_date and first.publication_date.tzinfo is not None


def test_distances_are_one_minus_cosine_and_ascend(store: Store, articles: list[Article], vectors: Vectors) -> None:
    of_url = {article.url: vector for article, vector in zip(articles, vectors, strict=True)}
    query = Query("any", vectors[33])
    distances = [article.distance for article in store.related_articles(query, 20)]
    wanted = [1 - float(of_url[article.url] @ query.vector) for article in store.related_articles(query, 20)]
    # ClickHouse's index rounds to 16 bits.
    assert distances == pytest.approx(wanted, abs=2e-3)
    assert distances == sorted(distances)


def test_nearly_all_of_the_true_nearest_are_found(store: Store, vectors: Vectors, exact: ExactSearch) -> None:
    queries = [Query("any", (vectors[at] + vectors[at + 1]) / 2) for at in range(0, 400, 10)]
    recalls = [
        exact.recall(query, [article.url for article in store.related_articles(query, 10)], 10) for query in queries
    ]
    assert np.mean(recalls) > 0.9


def test_an_answer_has_as_many_articles_as_there_are(store: Store, articles: list[Article]) -> None:
    assert len(store.related_articles(Query("any", ALONE[1]), 1)) == 1
    few = Query("any", ALONE[1], published_until=articles[2].publication_date)
    published = [article for article in articles if article.publication_date <= articles[2].publication_date]
    assert len(store.related_articles(few, 100)) == len(published) < 100


def test_both_days_belong_to_a_range(store: Store, articles: list[Article], vectors: Vectors) -> None:
    at = len(articles) // 2
    day = articles[at].publication_date
    on_it = {article.url for article in articles if article.publication_date == day}
    query = Query("any", vectors[at], published_from=day, published_until=day)
    assert {article.url for article in store.related_articles(query, 50)} == on_it
    second = timedelta(seconds=1)
    for other in (
        replace(query, published_from=day + second, published_until=None),
        replace(query, published_until=day - second, published_from=None),
    ):
        found = store.related_articles(other, 50)
        assert len(found) == 50 and not on_it & {article.url for article in found}


def test_a_range_keeps_answers_full_and_exact(store: Store, vectors: Vectors, exact: ExactSearch) -> None:
    for year in (1915, 1938, 1972, 2004):
        first, last = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 4, 12, 31, tzinfo=UTC)
        # The vector of an article of another time.
        query = Query("any", vectors[7 if year > 1950 else -7], first, last)
        found = store.related_articles(query)
        assert len(found) == 5
        assert all(first <= article.publication_date <= last for article in found)
        assert exact.recall(query, [article.url for article in found], 5) >= 0.8


def test_a_range_without_articles_is_an_empty_answer(store: Store, vectors: Vectors) -> None:
    assert store.related_articles(Query("any", vectors[0], published_from=datetime(2050, 1, 1, tzinfo=UTC))) == []


def test_words_bring_an_article_that_is_far_away(store: Store, articles: list[Article]) -> None:
    if not store.has_hybrid:
        pytest.skip(f"{store.title} has no hybrid search")
    # A word of one article alone.
    word, wanted = "Kubelsky", Article("url:words", "Words", "The Kubelskys", datetime(1950, 1, 1, tzinfo=UTC))
    assert not any(word in article.body for article in articles)
    far = -np.mean(ALONE[:384], axis=0) / np.linalg.norm(np.mean(ALONE[:384], axis=0))
    store.insert([wanted], far[None])
    store.wait_until_searchable(len(articles) + 1, SECONDS)
    # Words have their stems.
    question = Query(word, -far, hybrid=True)
    found = store.related_articles(question)
    assert wanted.url in [article.url for article in found]
    assert {article.url: article.distance for article in found}[wanted.url] == pytest.approx(2, abs=1e-3)
    # By the vector alone it is the last of all.
    assert wanted.url not in [article.url for article in store.related_articles(replace(question, hybrid=False), 50)]
    later = replace(question, published_from=datetime(1951, 1, 1, tzinfo=UTC))
    assert wanted.url not in [article.url for article in store.related_articles(later, 50)]


@pytest.mark.parametrize(
    "text", ["the of and", "?!", 'a "quote', "NOT AND (", "'; DROP TABLE x", "日本 🎬 فيلم", "x" * 2000]
)
def test_any_words_are_a_question(store: Store, vectors: Vectors, text: str) -> None:
    assert len(store.related_articles(Query(text, vectors[3], hybrid=store.has_hybrid))) == 5


ODD = 'A "quote", a \\ backslash, it\'s\ta tab,\na line, {x:String} %s ? :v $1 🎬 日本 é'


def test_any_text_comes_back_as_it_is_and_an_address_has_one_article(store: Store) -> None:
    before = store.count()
    odd = Article("url:" + ODD, ODD, ODD, datetime(1850, 6, 1, 12, 30, tzinfo=UTC))
    store.insert([odd], ALONE[2:3])
    other = replace(odd, title="Another title")
    store.insert([other], ALONE[3:4])
    store.wait_until_searchable(before + 1, SECONDS)
    assert store.count() == before + 1
    first = store.related_articles(Query("any", ALONE[3]))[0]
    assert (first.url, first.title, first.body) == (other.url, other.title, other.body)
    assert first.publication_date == other.publication_date
    assert first.distance == pytest.approx(0, abs=1e-3)


def test_of_an_address_twice_in_an_insert_the_last_article_is_there(store: Store) -> None:
    before = store.count()
    first = Article("url:twice", "First", "null", datetime(1850, 6, 1, tzinfo=UTC))
    last = replace(first, title="NULL", body="")
    store.insert([first, last], ALONE[[4, 5]])
    store.wait_until_searchable(before + 1, SECONDS)
    assert store.count() == before + 1
    found = store.related_articles(Query("any", ALONE[5]))[0]
    assert (found.url, found.title, found.body) == (last.url, last.title, last.body)


def test_an_empty_insert_is_nothing(store: Store) -> None:
    before = store.count()
    store.insert([], np.empty((0, 384), np.float32))
    assert store.count() == before


def test_questions_are_answered_while_articles_come_in(store: Store, vectors: Vectors) -> None:
    before = store.count()
    new = [Article(f"url:new{at}", "New", f"New {at}", datetime(2001, 1, 1, tzinfo=UTC)) for at in range(60)]
    failed: list[Exception] = []

    def write() -> None:
        try:
            for at in range(0, 60, 10):
                store.insert(new[at : at + 10], ALONE[100 + at : 110 + at])
        except Exception as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    answers = [len(store.related_articles(Query("any", vectors[5])))]
    while writer.is_alive():
        answers.append(len(store.related_articles(Query("any", vectors[5]))))
    writer.join()
    assert not failed and set(answers) == {5}
    store.wait_until_searchable(before + 60, SECONDS)
    assert store.related_articles(Query("any", ALONE[159]))[0].url == "url:new59"


def test_questions_of_several_threads_have_their_own_answers(
    store: Store, articles: list[Article], vectors: Vectors
) -> None:
    def wrong(at: int) -> list[str]:
        day = articles[at].publication_date
        query = Query("any", vectors[at], published_from=day, published_until=day + timedelta(days=at))
        found = [store.related_articles(query, 1)[0].url for _ in range(10)]
        return [url for url in found if url != articles[at].url]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(wrong, range(50, 90))) == [[]] * 40


def test_articles_that_never_come_are_said(store: Store) -> None:
    with pytest.raises(StoreError, match=r"Not 1000000 articles searchable within 0\.01 s"):
        store.wait_until_searchable(1_000_000, 0.01)


def test_the_model_is_remembered_and_another_is_refused(store: Store) -> None:
    check_model(store, MODEL)
    with pytest.raises(StoreError, match=f"embedded by {MODEL}, and questions would be by another"):
        check_model(store, "another")


def test_a_store_has_a_version_and_sizes(store: Store) -> None:
    sizes = store.sizes()
    # 500 vectors take 750 KiB.
    assert sizes.disk_bytes > 700_000
    # What this process grew by means little here, as it had other stores before.
    assert "this process" in sizes.note or (sizes.memory_bytes is not None and sizes.memory_bytes > 1_000_000)
    assert any(letter.isdigit() for letter in store.version())


def test_all_articles_can_be_removed_and_loaded_again(store: Store, articles: list[Article], vectors: Vectors) -> None:
    store.remove_all()
    assert store.embedding_model() is None
    store.create()
    assert store.count() == 0
    store.insert(articles[:20], vectors[:20])
    store.wait_until_searchable(20, SECONDS)
    assert store.related_articles(Query("any", vectors[7]))[0].url == articles[7].url
