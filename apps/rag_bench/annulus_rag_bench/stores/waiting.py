"""Waits until what was inserted is found by a search."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ..article import Article, FoundArticle
from ..embeddings import Vectors
from .store import Query, StoreBusyError, StoreError

POLL_SECONDS = 0.005


def wait_until(is_so: Callable[[], bool], timeout: float, wanted: str) -> None:
    """Returns when `is_so()`, which a busy store can't say. Raises `StoreError` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        why = ""
        try:
            if is_so():
                return
        except StoreBusyError as error:
            why = f": {error}"
        if time.monotonic() > deadline:
            raise StoreError(f"Not {wanted} within {timeout:g} s{why}")
        time.sleep(POLL_SECONDS)


class Searched(Protocol):
    """The part of a store that is tried."""

    def count(self) -> int: ...

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]: ...


class LastInsert:
    """The article that was inserted last, by which a search is tried."""

    def __init__(self) -> None:
        self._last: Query | None = None
        self._url = ""

    def remember(self, articles: Sequence[Article], vectors: Vectors) -> None:
        """Remembers the last of these articles."""
        if articles:
            self._last, self._url = Query(articles[-1].title, vectors[-1]), articles[-1].url

    def wait(self, store: Searched, count: int, timeout: float) -> None:
        """Waits for that many articles, and until a search by the last one's vector finds it."""
        wait_until(lambda: store.count() >= count and self._is_found(store), timeout, f"{count} articles searchable")

    def _is_found(self, store: Searched) -> bool:
        if self._last is None:
            return True
        return self._url in {article.url for article in store.related_articles(self._last)}
