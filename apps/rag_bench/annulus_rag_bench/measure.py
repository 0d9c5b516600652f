"""Measures one store, alone in a process: inserts, searches while writes come in, searches in quiet, answers, sizes.

Each store gets the same articles, vectors and questions from the same client in one thread. A tenth of the articles
comes in while questions are answered, at the same rate for all.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from .article import Article, FoundArticle
from .config import Settings
from .embeddings import Vectors
from .exact import ExactSearch
from .load import BATCH
from .questions import DEPTH, JudgedQuestion, ndcg
from .stores import Query, Store, store_class

# What comes in while questions are answered: a tenth, ten articles every tenth of a second.
WRITTEN_SHARE, WRITE_BATCH, WRITE_EVERY_SECONDS = 10, 10, 0.1
SEARCHABLE_WITHIN = 900
# The limit of `related_articles`.
LIMIT = 5
# Each question of the filtered searches is about one of these ten years.
DECADES = [1910, 1920, 1930, 1940, 1950, 1960, 1970, 1980, 1990, 2000]


@dataclass(frozen=True)
class Task:
    """What every store is measured with."""

    articles: list[Article]
    vectors: Vectors
    # The questions of the latencies, and those that were judged.
    queries: list[Query]
    judged: list[tuple[JudgedQuestion, Query]]
    rounds: int


class Searches(BaseModel):
    """Searches of one kind, one after the other."""

    count: int
    p50_ms: float
    p99_ms: float
    # The share of the true nearest articles. None: the order is not that of the vectors alone.
    recall: float | None = None


class Quality(BaseModel):
    """nDCG@5 of the judged questions: all, and those with and without dates."""

    all: float
    dated: float
    undated: float


class Measurement(BaseModel):
    """What was measured of a store."""

    name: str
    title: str
    version: str = ""
    durability: str
    index: str
    articles: int = 0
    inserted: int = 0
    insert_seconds: float = 0
    searchable_seconds: float = 0
    written: int = 0
    write_seconds: float = 0
    # Until those are found by the index that came in while questions were answered.
    caught_up_seconds: float = 0
    while_writing: Searches | None = None
    plain: Searches | None = None
    dated: Searches | None = None
    hybrid: Searches | None = None
    vectors_quality: Quality | None = None
    hybrid_quality: Quality | None = None
    disk_bytes: int = 0
    memory_bytes: int | None = None
    sizes_note: str = ""
    # Why the store could not be measured to the end.
    error: str | None = None


def measure(name: str, task: Task, directory: Path, settings: Settings) -> Measurement:
    """Measures a store from an empty directory on. Raises `StoreError` where it fails."""
    kind = store_class(name)
    store = kind.start(directory, settings)
    try:
        result = Measurement(name=name, title=kind.title, durability=kind.durability, index=kind.index)
        result.version, result.articles = store.version(), len(task.articles)
        held = max(1, len(task.articles) // WRITTEN_SHARE)
        measure_load(store, task, held, result)
        measure_while_writing(store, task, held, result)
        measure_in_quiet(store, task, result)
        sizes = store.sizes()
        result.disk_bytes, result.memory_bytes, result.sizes_note = sizes.disk_bytes, sizes.memory_bytes, sizes.note
        return result
    finally:
        store.close()


def measure_load(store: Store, task: Task, held: int, result: Measurement) -> None:
    """Inserts all but the last articles, and waits until they are found."""
    store.create()
    first = len(task.articles) - held
    started = time.perf_counter()
    for at in range(0, first, BATCH):
        end = min(at + BATCH, first)
        store.insert(task.articles[at:end], task.vectors[at:end])
    inserted = time.perf_counter()
    store.wait_until_searchable(first, SEARCHABLE_WITHIN)
    result.inserted, result.insert_seconds = first, inserted - started
    result.searchable_seconds = time.perf_counter() - inserted


def measure_while_writing(store: Store, task: Task, held: int, result: Measurement) -> None:
    """Answers questions until the last articles have come in."""
    answered(store, task.queries)
    ended, failed = threading.Event(), []
    started = time.perf_counter()

    def write() -> None:
        try:
            first = len(task.articles) - held
            for number, at in enumerate(range(first, len(task.articles), WRITE_BATCH)):
                due = started + number * WRITE_EVERY_SECONDS
                time.sleep(max(0.0, due - time.perf_counter()))
                store.insert(task.articles[at : at + WRITE_BATCH], task.vectors[at : at + WRITE_BATCH])
        except Exception as error:
            failed.append(error)
        finally:
            ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    times: list[float] = []
    try:
        while not ended.is_set():
            times.append(timed(store, task.queries[len(times) % len(task.queries)])[0])
    finally:
        writer.join()
    if failed:
        raise failed[0]
    result.written, result.write_seconds = held, time.perf_counter() - started
    result.while_writing = searches(times)
    written = time.perf_counter()
    store.wait_until_searchable(len(task.articles), SEARCHABLE_WITHIN)
    result.caught_up_seconds = time.perf_counter() - written


def measure_in_quiet(store: Store, task: Task, result: Measurement) -> None:
    """Answers questions by vectors, with dates, and by words as well, each kind warmed first."""
    exact = ExactSearch(task.articles, task.vectors)
    dated = [in_a_decade(query, DECADES[at % len(DECADES)]) for at, query in enumerate(task.queries)]
    result.plain = measured_searches(store, task.queries, task.rounds, exact)
    result.dated = measured_searches(store, dated, task.rounds, exact)
    result.vectors_quality = quality(task, lambda query: store.related_articles(query, DEPTH))
    if store.has_hybrid:
        by_words = [replace(query, hybrid=True) for query in task.queries]
        result.hybrid = measured_searches(store, by_words, task.rounds, None)
        result.hybrid_quality = quality(task, lambda query: store.related_articles(replace(query, hybrid=True), DEPTH))


def measured_searches(store: Store, queries: Sequence[Query], rounds: int, exact: ExactSearch | None) -> Searches:
    """The times of rounds of questions, after one that warms and whose answers are compared with exact ones."""
    answers = answered(store, queries)
    found = searches([timed(store, query)[0] for _ in range(rounds) for query in queries])
    if exact is not None:
        pairs = zip(queries, answers, strict=True)
        found.recall = mean(
            [exact.recall(query, [article.url for article in answer], LIMIT) for query, answer in pairs]
        )
    return found


def answered(store: Store, queries: Sequence[Query]) -> list[list[FoundArticle]]:
    return [store.related_articles(query, LIMIT) for query in queries]


def timed(store: Store, query: Query) -> tuple[float, list[FoundArticle]]:
    started = time.perf_counter()
    found = store.related_articles(query, LIMIT)
    return time.perf_counter() - started, found


def searches(times: Sequence[float]) -> Searches:
    """The quantiles of times in seconds."""
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1_000 if times else (0.0, 0.0)
    return Searches(count=len(times), p50_ms=float(p50), p99_ms=float(p99))


def in_a_decade(query: Query, year: int) -> Query:
    """A question about ten years."""
    return replace(
        query, published_from=datetime(year, 1, 1, tzinfo=UTC), published_until=datetime(year + 9, 12, 31, tzinfo=UTC)
    )


def quality(task: Task, find: Callable[[Query], Sequence[FoundArticle]]) -> Quality:
    """nDCG@5 of the judged questions. One without a right answer among the articles does not count."""
    present = {article.url for article in task.articles}
    scores: dict[bool, list[float]] = {True: [], False: []}
    for question, query in task.judged:
        relevant = {url: grade for url, grade in question.relevant.items() if url in present}
        if any(relevant.values()):
            found = [article.url for article in find(query)]
            scores[question.has_dates].append(ndcg(found, relevant))
    return Quality(all=mean(scores[True] + scores[False]), dated=mean(scores[True]), undated=mean(scores[False]))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
