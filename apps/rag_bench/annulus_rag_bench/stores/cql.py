"""What Annulus and Cassandra share: the driver, the published table, and the statements of both."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from typing import Any, ClassVar

from cassandra import (
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    RequestExecutionException,
    Timeout,
    Unavailable,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy
from cassandra.query import named_tuple_factory

from ..article import Article, FoundArticle
from ..config import Settings
from ..embeddings import Vectors
from .published import CREATE_KEYSPACE, CREATE_TABLE, KEYSPACE
from .store import Query, StoreBusyError, StoreError
from .waiting import LastInsert

TABLE, MODELS = f"{KEYSPACE}.articles", f"{KEYSPACE}.embedding_models"
INSERT = f"INSERT INTO {TABLE} (url, title, body, publication_date, vector) VALUES (?, ?, ?, ?, ?)"
# The published SELECT, with the distance and the range of dates.
SELECT = f"SELECT url, title, body, publication_date, similarity_cosine(vector, :vector) AS similarity FROM {TABLE}"
BY_VECTOR = f"{SELECT} $WHERE ORDER BY vector ANN OF :vector LIMIT :articles"
REQUEST_SECONDS, RECONNECT_SECONDS = 20, 1
STATEMENTS_MAX = 64


class CqlStore:
    """A session with a database that speaks CQL."""

    name: ClassVar[str]
    title: ClassVar[str]
    # What makes the indexes, and the statement of a hybrid search where there is one.
    indexes: ClassVar[Sequence[str]]
    hybrid: ClassVar[str | None] = None
    start_command: ClassVar[str]
    inserts_in_flight: ClassVar[int]

    def __init__(self, host: str, port: int, settings: Settings) -> None:
        """Connects. Raises `StoreError` where nothing answers."""
        self._place = f"{host}:{port}"
        self._last = LastInsert()
        login = None
        if settings.username is not None and settings.password is not None:
            login = PlainTextAuthProvider(settings.username, settings.password.get_secret_value())
        profile = ExecutionProfile(request_timeout=REQUEST_SECONDS, row_factory=named_tuple_factory)
        self._cluster = Cluster(
            [host],
            port=port,
            auth_provider=login,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            # By default a database that comes back is found again after up to ten minutes.
            reconnection_policy=ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None),
        )
        try:
            self._session = self._cluster.connect()
        except Exception as error:
            self._cluster.shutdown()
            raise self._explained(error) from error
        self._prepare = lru_cache(STATEMENTS_MAX)(self._session.prepare)

    def close(self) -> None:
        self._cluster.shutdown()

    def version(self) -> str:
        return str(self.execute("SELECT release_version FROM system.local")[0].release_version)

    def create(self) -> None:
        models = f"CREATE TABLE IF NOT EXISTS {MODELS} (table_name text PRIMARY KEY, model text)"
        for statement in (CREATE_KEYSPACE, CREATE_TABLE, *self.indexes, models):
            self.execute(statement)

    def insert(self, articles: Sequence[Article], vectors: Vectors) -> None:
        rows = [
            (article.url, article.title, article.body, article.publication_date, vector)
            for article, vector in zip(articles, vectors.tolist(), strict=True)
        ]
        try:
            insert = self._prepare(INSERT)
            execute_concurrent_with_args(self._session, insert, rows, self.inserts_in_flight, raise_on_first_error=True)
        except Exception as error:
            raise self._explained(error) from error
        self._last.remember(articles, vectors)

    def remove_all(self) -> None:
        self.execute(f"DROP TABLE IF EXISTS {TABLE}")
        self.execute(f"DROP TABLE IF EXISTS {MODELS}")
        self._prepare.cache_clear()

    def count(self) -> int:
        return int(self.execute(f"SELECT count(*) AS articles FROM {TABLE}")[0].articles)

    def wait_until_searchable(self, count: int, timeout: float) -> None:
        self._last.wait(self, count, timeout)

    def embedding_model(self) -> str | None:
        try:
            rows = self._rows(f"SELECT model FROM {MODELS} WHERE table_name = :name", {"name": TABLE})
        except InvalidRequest:
            return None
        except Exception as error:
            raise self._explained(error) from error
        return rows[0].model if rows else None

    def set_embedding_model(self, model: str) -> None:
        statement = f"INSERT INTO {MODELS} (table_name, model) VALUES (:name, :model)"
        self.execute(statement, {"name": TABLE, "model": model})

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]:
        where, values = date_range(query)
        values |= {"vector": query.vector.tolist(), "articles": limit}
        statement = BY_VECTOR
        if query.hybrid and self.hybrid is not None:
            statement = self.hybrid
            values["words"] = query.text
        return [found_in(row) for row in self.execute(statement.replace("$WHERE", where), values)]

    def execute(self, statement: str, values: Mapping[str, object] | None = None) -> list[Any]:
        """The rows of a statement, with values for its named markers."""
        try:
            return self._rows(statement, values)
        except Exception as error:
            raise self._explained(error) from error

    def _rows(self, statement: str, values: Mapping[str, object] | None) -> list[Any]:
        if values is None:
            return list(self._session.execute(statement))
        return list(self._session.execute(self._prepare(statement).bind(dict(values))))

    def _explained(self, error: Exception) -> Exception:
        """The same error in words for the user, or the error itself where it is a fault of the program."""
        if isinstance(error, (NoHostAvailable, OperationTimedOut, ConnectionException, OSError)):
            return StoreError(f"No {self.title} answers at {self._place}. {self.start_command}")
        if isinstance(error, InvalidRequest) and KEYSPACE in str(error):
            load = f"python -m annulus_rag_bench load --store {self.name}"
            return StoreError(f"{self._place} has no articles yet. Load them with: {load} ({error})")
        if isinstance(error, (Timeout, Unavailable)):
            return StoreBusyError(f"{self.title} at {self._place} is too busy: {error}")
        if isinstance(error, (DriverException, RequestExecutionException)):
            return StoreError(f"{self.title} at {self._place} refuses: {error}")
        return error


def date_range(query: Query) -> tuple[str, dict[str, object]]:
    """The WHERE of a query, and the values of its markers."""
    values: dict[str, object] = {}
    conditions = []
    if query.published_from is not None:
        conditions.append("publication_date >= :published_from")
        values["published_from"] = query.published_from
    if query.published_until is not None:
        conditions.append("publication_date <= :published_until")
        values["published_until"] = query.published_until
    return ("WHERE " + " AND ".join(conditions) if conditions else ""), values


def found_in(row: Any) -> FoundArticle:
    """The article of a row. A similarity is (1 + cosine) / 2."""
    published = row.publication_date.replace(tzinfo=UTC)
    return FoundArticle(row.url, row.title, row.body, published, 2 - 2 * row.similarity)
