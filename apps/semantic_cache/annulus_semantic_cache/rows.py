"""Rows of the table of prompts: reads, searches and writes that wait without a thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.query import PreparedStatement

from annulus_semantic_cache import schema
from annulus_semantic_cache.settings import Settings

LOG = logging.getLogger("annulus_semantic_cache")

# After a failure the database is left alone for so long: requests don't wait for its timeout one by one.
REST_SECONDS = 1.0
# The table and its indexes are made again at most so often.
REMAKE_SECONDS = 5.0
CONNECT_SECONDS = 5.0
DEFINITION_SECONDS = 60.0
DELETES_AT_ONCE = 64
ROWS_OF_A_PAGE = 1_000

_READ = (
    "prompt_id, inserted_at, updated_at, prompt_text, llm_response, scope, tenant, model, embedding_model, "
    "expires_at, prompt_tokens, completion_tokens, model_seconds"
)
_FOUND = "prompt_id, tenant, user_id, updated_at, text_digest"


class DatabaseDownError(Exception):
    """The database can't be had now. The message has nothing of a prompt."""


class DatabaseRefusedError(DatabaseDownError):
    """The database refuses this statement, and may well answer others."""


@dataclass(frozen=True)
class Row:
    """A stored prompt with its answer."""

    prompt_id: uuid.UUID
    inserted_at: datetime
    updated_at: datetime
    prompt_text: str
    llm_response: str
    scope: str
    tenant: str
    model: str
    embedding_model: str
    expires_at: datetime | None
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float


@dataclass(frozen=True)
class Found:
    """What an invalidation has to know of a row."""

    prompt_id: uuid.UUID
    tenant: str
    user: str
    updated_at: datetime
    text_digest: str


def _moment(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _row(values: Any) -> Row | None:
    """The row of an answer; None for what a delete or an expiry has left of one."""
    if values.prompt_text is None or values.llm_response is None or values.updated_at is None:
        return None
    return Row(
        values.prompt_id,
        _moment(values.inserted_at or values.updated_at),
        _moment(values.updated_at),
        values.prompt_text,
        values.llm_response,
        values.scope or "",
        values.tenant or "",
        values.model or "",
        values.embedding_model or "",
        None if values.expires_at is None else _moment(values.expires_at),
        values.prompt_tokens or 0,
        values.completion_tokens or 0,
        values.model_seconds or 0.0,
    )


class _Connection:
    """A session with its prepared statements."""

    def __init__(self, settings: Settings) -> None:
        self.cluster = _cluster(settings)
        try:
            self.session: Session = self.cluster.connect()
            self._define(settings)
            self._prepare(settings)
        except BaseException:
            self.cluster.shutdown()
            raise

    def _define(self, settings: Settings) -> None:
        run = self.session.execute
        named = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
        if run(named, [settings.keyspace]).one() is None:
            run(schema.keyspace_statement(settings), timeout=DEFINITION_SECONDS)
        for statement in schema.statements(settings):
            run(statement, timeout=DEFINITION_SECONDS)
        of_column = (
            "SELECT type FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s AND column_name = %s"
        )
        kind = run(of_column, [settings.keyspace, settings.table, "prompt_embedding"]).one()
        wanted = schema.COLUMNS["prompt_embedding"].format(dimensions=settings.dimensions)
        if kind is not None and kind.type.replace(" ", "") != wanted.replace(" ", ""):
            raise ValueError(
                f"{settings.keyspace}.{settings.table} has vectors of the type {kind.type}, and "
                f"{settings.embedding_model} makes {wanted}: name another table by --table, or drop this one"
            )

    def _prepare(self, settings: Settings) -> None:
        name = f"{settings.keyspace}.{settings.table}"

        def prepared(statement: str, consistency: int) -> PreparedStatement:
            one = self.session.prepare(statement)
            one.consistency_level = consistency
            return one

        # Cassandra searches its indexes of vectors at this consistency only.
        near, sure = ConsistencyLevel.LOCAL_ONE, ConsistencyLevel.LOCAL_QUORUM
        self.exact = prepared(f"SELECT {_READ} FROM {name} WHERE prompt_id = ?", near)
        self.nearest = prepared(
            f"SELECT {_READ}, similarity_cosine(prompt_embedding, ?) AS score FROM {name} WHERE scope = ? "
            "ORDER BY prompt_embedding ANN OF ? LIMIT ?",
            near,
        )
        marks = ", ".join("?" for _ in schema.COLUMNS)
        self.insert = prepared(f"INSERT INTO {name} ({', '.join(schema.COLUMNS)}) VALUES ({marks}) USING TTL ?", sure)
        self.delete = prepared(f"DELETE FROM {name} WHERE prompt_id = ?", sure)
        self.scan = prepared(f"SELECT {_FOUND} FROM {name}", sure)
        self.of_tenant = prepared(f"SELECT {_FOUND} FROM {name} WHERE tenant = ?", sure)
        self.of_text = prepared(f"SELECT {_FOUND} FROM {name} WHERE text_digest = ?", sure)
        self.of_tag = prepared(f"SELECT {_FOUND} FROM {name} WHERE tags CONTAINS ?", sure)
        self.of_id = prepared(f"SELECT {_FOUND} FROM {name} WHERE prompt_id = ?", sure)


def _cluster(settings: Settings) -> Cluster:
    login = None
    if settings.username:
        login = PlainTextAuthProvider(settings.username, os.environ.get("SEMANTIC_CACHE_PASSWORD", ""))
    return Cluster(
        list(settings.hosts),
        settings.cql_port,
        auth_provider=login,
        execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(TokenAwarePolicy(DCAwareRoundRobinPolicy()))},
        ssl_context=ssl.create_default_context(cafile=settings.ca) if settings.ca else None,
        connect_timeout=CONNECT_SECONDS,
        # The driver's own policy waits up to ten minutes for a node that is back.
        reconnection_policy=ConstantReconnectionPolicy(REST_SECONDS, max_attempts=None),
    )


class Rows:
    """The table of prompts.

    It connects in the background, and again after a failure. A call while it has no connection, or
    shortly after a failure, raises DatabaseDownError at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: _Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._rests_until = self._connected_at = 0.0
        # Why there is no connection, for `/health`.
        self.trouble = "not connected yet"

    @property
    def is_up(self) -> bool:
        """Whether the last that was heard of the database was good."""
        return self._connection is not None and time.monotonic() >= self._rests_until

    def start(self) -> None:
        """Begins to connect. It needs a running event loop."""
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def ready(self, seconds: float) -> bool:
        """Waits for the connection at most so long, and says whether it is there."""
        if self._connecting is not None:
            await asyncio.wait([self._connecting], timeout=seconds)
        return self._connection is not None

    async def close(self) -> None:
        """Ends the connection."""
        if self._connecting is not None:
            self._connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._connecting
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.to_thread(connection.cluster.shutdown)

    async def exact(self, prompt_id: uuid.UUID) -> Row | None:
        """The row with that key."""
        connection = self._now()
        rows = await self._run(connection, connection.exact, [prompt_id])
        return _row(rows[0]) if rows else None

    async def nearest(self, scope: str, vector: Sequence[float], limit: int) -> list[tuple[Row, float]]:
        """The rows of a scope nearest to a vector, with their cosine, which is from -1 to 1."""
        connection = self._now()
        found = await self._run(connection, connection.nearest, [vector, scope, vector, limit])
        rows = [(_row(values), values.score) for values in found]
        return [(row, 2 * score - 1) for row, score in rows if row is not None and score is not None]

    async def put(self, values: dict[str, Any], ttl: int) -> None:
        """Writes a row that lives `ttl` seconds; 0 is for ever."""
        connection = self._now()
        await self._run(connection, connection.insert, [*(values[column] for column in schema.COLUMNS), ttl])

    async def delete(self, prompt_ids: Iterable[uuid.UUID]) -> int:
        """Deletes rows, and returns how many."""
        connection, count = self._now(), 0
        ids = list(prompt_ids)
        for start in range(0, len(ids), DELETES_AT_ONCE):
            some = ids[start : start + DELETES_AT_ONCE]
            await asyncio.gather(*(self._run(connection, connection.delete, [one]) for one in some))
            count += len(some)
        return count

    async def find(
        self,
        *,
        prompt_id: uuid.UUID | None = None,
        text_digest: str | None = None,
        tag: str | None = None,
        tenant: str | None = None,
    ) -> list[Found]:
        """Rows by the first of these that is given; all without one."""
        connection = self._now()
        values: list[Any] = []
        if prompt_id is not None:
            statement, values = connection.of_id, [prompt_id]
        elif text_digest is not None:
            statement, values = connection.of_text, [text_digest]
        elif tag is not None:
            statement, values = connection.of_tag, [tag]
        elif tenant is not None:
            statement, values = connection.of_tenant, [tenant]
        else:
            statement = connection.scan
        try:
            return await asyncio.to_thread(lambda: list(self._pages(connection, statement, values)))
        except Exception as error:
            raise self._failed(error) from None

    def _pages(self, connection: _Connection, statement: PreparedStatement, values: list[Any]) -> Iterator[Found]:
        bound = statement.bind(values)
        bound.fetch_size = ROWS_OF_A_PAGE
        for one in connection.session.execute(bound, timeout=DEFINITION_SECONDS):
            updated = _moment(one.updated_at) if one.updated_at is not None else datetime.fromtimestamp(0, UTC)
            yield Found(one.prompt_id, one.tenant or "", one.user_id or "", updated, one.text_digest or "")

    def _now(self) -> _Connection:
        if self._connection is None:
            raise DatabaseDownError(self.trouble)
        if time.monotonic() < self._rests_until:
            raise DatabaseDownError(self.trouble)
        return self._connection

    async def _run(self, connection: _Connection, statement: PreparedStatement, values: list[Any]) -> list[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()

        def settle(rows: Any, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(list(rows or []))

        def heard(rows: Any = None, error: BaseException | None = None) -> None:
            # The loop may have ended while the statement ran.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, rows, error)

        try:
            sent = connection.session.execute_async(statement, values, timeout=self._settings.database_timeout)
            sent.add_callbacks(heard, lambda error: heard(error=error))
            return await answer
        except Exception as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> DatabaseDownError:
        """Takes note of a failure. The driver's text could have values in it, so that only its kind is said."""
        if isinstance(error, DatabaseDownError):
            return error
        if isinstance(error, (InvalidRequest, TypeError, ValueError)):
            # Perhaps the table or an index is missing: they are made again, if they weren't just now.
            if time.monotonic() - self._connected_at > REMAKE_SECONDS:
                self._connected_at = time.monotonic()
                self.start()
            refused = DatabaseRefusedError(f"the database refuses: {type(error).__name__}")
            LOG.warning("%s", refused)
            return refused
        self.trouble = f"the database fails: {type(error).__name__}"
        LOG.warning("%s", self.trouble)
        self._rests_until = time.monotonic() + REST_SECONDS
        return DatabaseDownError(self.trouble)

    async def _connect(self) -> None:
        said = ""
        while True:
            try:
                made = await asyncio.to_thread(_Connection, self._settings)
                break
            except Exception as error:
                where = f"{','.join(self._settings.hosts)}:{self._settings.cql_port}"
                self.trouble = f"no connection to the database at {where}: {type(error).__name__}: {error}"
                if self.trouble != said:
                    LOG.warning("%s. Requests pass through; trying again every %g s", self.trouble, REST_SECONDS)
                    said = self.trouble
                await asyncio.sleep(REST_SECONDS)
        old, self._connection = self._connection, made
        self._rests_until, self.trouble, self._connected_at = 0.0, "", time.monotonic()
        LOG.info("connected to the database")
        if old is not None:
            await asyncio.to_thread(old.cluster.shutdown)
