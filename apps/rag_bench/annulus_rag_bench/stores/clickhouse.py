"""ClickHouse in this process (chdb): the published table, and its index of vectors."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

from ..article import Article, FoundArticle
from ..config import Settings
from ..embeddings import Vectors
from ..footprint import disk_bytes, memory_bytes
from .store import Query, StoreError, StoreSizes, last_of_each_address
from .waiting import LastInsert

TABLE, MODELS = "vectorembeds.guardian_articles", "vectorembeds.embedding_models"
COLUMNS = "url, title, body, publication_date"
# The published columns. `DateTime64`, as a `DateTime` begins in 1970.
CREATE = (
    "CREATE DATABASE IF NOT EXISTS vectorembeds",
    f"""CREATE TABLE IF NOT EXISTS {TABLE} (
        url String, title String, body String, publication_date DateTime64(3, 'UTC'),
        embedding Array(Float64) NOT NULL,
        INDEX ann_index embedding TYPE vector_similarity('hnsw', 'cosineDistance', 384)
    ) ENGINE = MergeTree ORDER BY url""",
    f"CREATE TABLE IF NOT EXISTS {MODELS} (table_name String, model String) ENGINE = MergeTree ORDER BY table_name",
)
SELECT = f"""SELECT {COLUMNS}, cosineDistance(embedding, {{vector:Array(Float64)}}) AS distance FROM {TABLE} $WHERE
    ORDER BY distance ASC LIMIT {{articles:UInt32}}"""
# By default the index finds its nearest articles first and the dates are compared then, so that an answer may have
# fewer than the limit. This setting compares the dates first, and then all vectors that are left.
DATES_FIRST = " SETTINGS vector_search_filter_strategy = 'prefilter'"


class ClickHouseStore:
    """A database of files in a directory. One process at a time may have it."""

    name: ClassVar[str] = "clickhouse"
    title: ClassVar[str] = "ClickHouse"
    durability: ClassVar[str] = (
        "In files when an insert returns; the system writes them to the disk later (`fsync_after_insert = 0`)."
    )
    index: ClassVar[str] = (
        "HNSW (`vector_similarity`, cosine, defaults) in each part of the table; with dates an exact search of the "
        "rest. No ranking by words."
    )
    has_hybrid: ClassVar[bool] = False

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._last = directory, LastInsert()
        self._memory_before = memory_bytes([os.getpid()])
        self._reader = Connection(directory)
        # Of its own, so that a search need not wait for an insert.
        self._writer = Connection(directory)

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        return cls(directory)

    def version(self) -> str:
        return str(self._reader.rows("SELECT version()")[0][0])

    def create(self) -> None:
        for statement in CREATE:
            self._reader.execute(statement)

    def insert(self, articles: Sequence[Article], vectors: Vectors) -> None:
        if not articles:
            return
        self._remove(articles)
        # In one INSERT, as its documentation advises. JSON, as the values of parameters have an escaping of their own.
        rows = "\n".join(row_of(*row) for row in last_of_each_address(articles, vectors))
        self._writer.execute(f"INSERT INTO {TABLE} ({COLUMNS}, embedding) FORMAT JSONEachRow {rows}")
        self._last.remember(articles, vectors)

    def remove_all(self) -> None:
        self._reader.execute(f"DROP TABLE IF EXISTS {TABLE}")
        self._reader.execute(f"DROP TABLE IF EXISTS {MODELS}")

    def count(self) -> int:
        return int(self._reader.rows(f"SELECT count() FROM {TABLE}")[0][0])

    def wait_until_searchable(self, count: int, timeout: float) -> None:
        self._last.wait(self, count, timeout)

    def embedding_model(self) -> str | None:
        if not int(self._reader.rows("SELECT count() FROM system.tables WHERE database = 'vectorembeds'")[0][0]):
            return None
        rows = self._reader.rows(f"SELECT model FROM {MODELS} WHERE table_name = '{TABLE}'")
        return str(rows[0][0]) if rows else None

    def set_embedding_model(self, model: str) -> None:
        self._reader.execute(f"TRUNCATE TABLE {MODELS}")
        row = json.dumps({"table_name": TABLE, "model": model})
        self._reader.execute(f"INSERT INTO {MODELS} FORMAT JSONEachRow {row}")

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]:
        values: dict[str, object] = {"vector": query.vector.tolist(), "articles": limit}
        conditions = []
        if query.published_from is not None:
            conditions.append("publication_date >= {published_from:DateTime64(3, 'UTC')}")
            values["published_from"] = date_text(query.published_from)
        if query.published_until is not None:
            conditions.append("publication_date <= {published_until:DateTime64(3, 'UTC')}")
            values["published_until"] = date_text(query.published_until)
        if not conditions:
            return list(map(found_in, self._reader.rows(SELECT.replace("$WHERE", ""), values)))
        statement = SELECT.replace("$WHERE", "WHERE " + " AND ".join(conditions)) + DATES_FIRST
        return list(map(found_in, self._reader.rows(statement, values)))

    def sizes(self) -> StoreSizes:
        memory = memory_bytes([os.getpid()]) - self._memory_before
        return StoreSizes(disk_bytes(self._directory), memory, "what this process grew by, its client included")

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    def _remove(self, articles: Sequence[Article]) -> None:
        """Removes the articles of these addresses, as the table may have an address twice."""
        values = {"urls": "[" + ", ".join(quoted(article.url) for article in articles) + "]"}
        where = "WHERE url IN {urls:Array(String)}"
        if int(self._writer.rows(f"SELECT count() FROM {TABLE} {where}", values)[0][0]):
            self._writer.execute(f"ALTER TABLE {TABLE} DELETE {where} SETTINGS mutations_sync = 1", values)


class Connection:
    """A session of chdb, which one thread at a time may use: the values of a statement are the whole session's."""

    def __init__(self, directory: Path) -> None:
        # Not at the top, so that the memory of the database, which comes with this module, can be measured.
        from chdb.session import Session

        self._lock = Lock()
        try:
            self._session = Session(str(directory))
        except Exception as error:
            raise explained(error) from error

    def rows(self, statement: str, values: Mapping[str, object] | None = None) -> list[list[Any]]:
        """The rows of a statement."""
        found: list[list[Any]] = json.loads(str(self.execute(statement, values)))["data"]
        return found

    def execute(self, statement: str, values: Mapping[str, object] | None = None) -> object:
        """The answer to a statement, with values for its parameters. Raises `StoreError`."""
        try:
            with self._lock:
                return self._session.query(statement, "JSONCompact", params=values)
        except Exception as error:
            raise explained(error) from error

    def close(self) -> None:
        self._session.close()


def explained(error: Exception) -> Exception:
    """The same error in words for the user, or the error itself where it is a fault of the program."""
    from chdb import ChdbError

    if "UNKNOWN_TABLE" in str(error) or "UNKNOWN_DATABASE" in str(error):
        load = "python -m annulus_rag_bench load --store clickhouse"
        return StoreError(f"ClickHouse has no articles yet. Load them with: {load}")
    if isinstance(error, (ChdbError, OSError)):
        return StoreError(f"ClickHouse refuses: {str(error)[:500]}")
    return error


def quoted(text: str) -> str:
    """A text as an element of an array."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def date_text(date: datetime) -> str:
    return date.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def row_of(article: Article, vector: Vectors) -> str:
    row = {
        "url": article.url,
        "title": article.title,
        "body": article.body,
        "publication_date": date_text(article.publication_date),
        "embedding": vector.tolist(),
    }
    return json.dumps(row)


def found_in(row: list[Any]) -> FoundArticle:
    url, title, body, published, distance = row
    return FoundArticle(url, title, body, datetime.fromisoformat(published).replace(tzinfo=UTC), float(distance))
