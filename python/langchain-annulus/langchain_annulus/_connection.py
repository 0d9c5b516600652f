"""Statements on a session of a driver: prepared once, several in flight, with asyncio or without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from langchain_annulus._session import session_of

if TYPE_CHECKING:
    from cassandra.cluster import ResponseFuture, Session
    from cassandra.query import PreparedStatement

# Statements of one call that are in flight at once.
IN_FLIGHT = 64

Row = tuple[Any, ...]
Item = TypeVar("Item")


class Statement(NamedTuple):
    """A statement, and the values that are bound to it."""

    cql: str
    values: Sequence[object] = ()


class Connection:
    """A session that prepares what it executes."""

    def __init__(self, session: Session | str) -> None:
        self._session = session_of(session)
        self._prepared: dict[str, PreparedStatement] = {}

    def define(self, cql: str) -> None:
        """Executes a change of the schema."""
        self._session.execute(cql)

    def execute(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Executes statements, several at once. Returns the rows of each."""
        answers: list[list[Row]] = []
        for some in batched(statements, IN_FLIGHT):
            futures = [self._start(statement, self._prepare(statement.cql)) for statement in some]
            answers += [[_values(row) for row in future.result()] for future in futures]
        return answers

    async def aexecute(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Executes statements, several at once. Returns the rows of each."""
        answers: list[list[Row]] = []
        for some in batched(statements, IN_FLIGHT):
            answers += await asyncio.gather(*(self._answer(statement) for statement in some))
        return answers

    def rows(self, statement: Statement) -> Iterator[Row]:
        """Yields the rows of a statement; pages are fetched as they are needed."""
        for row in self._start(statement, self._prepare(statement.cql)).result():
            yield _values(row)

    async def arows(self, statement: Statement) -> AsyncIterator[Row]:
        """Yields the rows of a statement; pages are fetched as they are needed."""
        prepared = self._prepared.get(statement.cql) or await asyncio.to_thread(self._prepare, statement.cql)
        loop = asyncio.get_running_loop()
        pages: asyncio.Queue[Iterable[object] | BaseException | None] = asyncio.Queue()

        # The driver calls it in a thread of its own, once for each page.
        def arrived(page: Iterable[object] | BaseException | None) -> None:
            loop.call_soon_threadsafe(pages.put_nowait, page)

        future = self._start(statement, prepared)
        future.add_callbacks(arrived, arrived)
        while True:
            page = await pages.get()
            if isinstance(page, BaseException):
                raise page
            for row in page or ():
                yield _values(row)
            if not future.has_more_pages:
                return
            future.start_fetching_next_page()

    async def _answer(self, statement: Statement) -> list[Row]:
        return [row async for row in self.arows(statement)]

    def _start(self, statement: Statement, prepared: PreparedStatement) -> ResponseFuture:
        return self._session.execute_async(prepared, statement.values)

    def _prepare(self, cql: str) -> PreparedStatement:
        prepared = self._prepared.get(cql)
        if prepared is None:
            prepared = self._session.prepare(cql)
            # All statements of the stores may be repeated, so the driver may try them again.
            prepared.is_idempotent = True
            self._prepared[cql] = prepared
        return prepared


def _values(row: Any) -> Row:
    """The values of a row in the order of its columns, whatever the session makes of rows."""
    return tuple(row.values()) if isinstance(row, Mapping) else tuple(row)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last one shorter."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
