"""What every store does: it holds articles with their vectors, and finds those nearest to a question.

`tests/test_stores.py` runs the same tests over all of them: they are what this interface promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Protocol, Self

from ..article import Article, FoundArticle
from ..config import Settings
from ..embeddings import Vectors


class StoreError(Exception):
    """The store can't answer. The text says why, and what helps."""


class StoreBusyError(StoreError):
    """The store was too busy to answer in time, and may well answer later."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A question with its vector, of length 1. Both dates are in UTC, and both belong to the range."""

    text: str
    vector: Vectors
    published_from: datetime | None = None
    published_until: datetime | None = None
    # By words as well as by the vector, where the store `has_hybrid`; elsewhere by the vector alone.
    hybrid: bool = False


@dataclass(frozen=True, slots=True)
class StoreSizes:
    """What a store takes."""

    disk_bytes: int
    # None: it can't be separated from what others take.
    memory_bytes: int | None
    # Which processes and files these are.
    note: str


class Store(Protocol):
    """A store. Every method raises `StoreError` where the store fails."""

    # The name in `STORES`, and the one that people know.
    name: ClassVar[str]
    title: ClassVar[str]
    # What is on the disk when an insert returns, by default. One sentence.
    durability: ClassVar[str]
    # The index of the vectors, with its settings. One sentence.
    index: ClassVar[str]
    has_hybrid: ClassVar[bool]

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        """Connects to the store, or starts it with its files in a directory."""

    def version(self) -> str:
        """The version of the store."""

    def create(self) -> None:
        """Makes the tables and indexes that are not there yet."""

    def insert(self, articles: Sequence[Article], vectors: Vectors) -> None:
        """Inserts articles with their vectors, one a row. An article of the same address is replaced."""

    def remove_all(self) -> None:
        """Removes the tables with all articles, and forgets the model."""

    def count(self) -> int:
        """The number of articles."""

    def wait_until_searchable(self, count: int, timeout: float) -> None:
        """Returns when that many articles are found by the index. Raises `StoreError` after `timeout` seconds."""

    def embedding_model(self) -> str | None:
        """The name of the model that made the vectors. None: nothing was loaded to the end."""

    def set_embedding_model(self, model: str) -> None:
        """Remembers the model that made the vectors."""

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]:
        """The articles nearest to a question, the best first. In hybrid order distances need not ascend."""

    def sizes(self) -> StoreSizes:
        """What the store takes now."""

    def close(self) -> None:
        """Closes the connection, and ends what `start` started. The files stay."""


def last_of_each_address(articles: Sequence[Article], vectors: Vectors) -> list[tuple[Article, Vectors]]:
    """Articles with their vectors; of several of one address the last one, which would replace the others."""
    rows = zip(articles, vectors, strict=True)
    return list({article.url: (article, vector) for article, vector in rows}.values())


def check_model(store: Store, model: str) -> None:
    """Raises `StoreError` unless a model's vectors can be compared with those of the store."""
    stored = store.embedding_model()
    if stored is None:
        raise StoreError(f"{store.title} has no articles yet. {load_command(store)}")
    if stored != model:
        raise StoreError(
            f"The articles were embedded by {stored}, and questions would be by {model}: their vectors can't be "
            f"compared. {load_command(store)}"
        )


def load_command(store: Store) -> str:
    """How the articles come into a store."""
    return f"Load them with: python -m annulus_rag_bench load --store {store.name}"
