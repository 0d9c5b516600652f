"""The client of programs with asyncio. Its methods are those of `client`, each to be awaited."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Optional, Union

from annulus_db import _calls
from annulus_db._call import address
from annulus_db._calls import TableName
from annulus_db._streams import Streams
from annulus_db.types import (
    AsyncAnswer,
    Delete,
    Filter,
    Found,
    IndexKind,
    Page,
    Put,
    Query,
    Ranking,
    Row,
    Schema,
    Search,
    TableSchema,
    Vector,
    Written,
)


class AsyncClient:
    """A client of a server's HTTP API, for one event loop. Tasks may share it.

    A task that is cancelled ends its request on the server, too.

    Args:
        url: the HTTP API, such as `http://127.0.0.1:6080`.
        user: the role, where the server wants a login.
        password: its password.
        keyspace: that of tables whose names have none.
        timeout: seconds to wait for a connection, and for an answer; None is for ever.
        ca_file: the authorities of the server's certificate, where the system doesn't know them.
        ssl_context: all of TLS, in place of `ca_file`.
        open_max: connections at once; further requests wait for one. They stay open between requests.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:6080",
        *,
        user: Optional[str] = None,
        password: Optional[str] = None,
        keyspace: Optional[str] = None,
        timeout: Optional[float] = 30.0,
        ca_file: Optional[str] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
        open_max: int = 16,
    ) -> None:
        self._keyspace = keyspace
        server = address(url, user, password, ca_file, ssl_context, timeout)
        self._streams = Streams(server, timeout, open_max)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._streams.close()

    def table(self, name: str) -> AsyncTable:
        """A table, by `keyspace.table`, or by its name in the client's keyspace. Names are as they are, case
        included. Nothing is sent."""
        return AsyncTable(self._streams, TableName.of(name, self._keyspace))

    async def cql(
        self,
        query: str,
        parameters: Union[Sequence[object], Mapping[str, object]] = (),
        *,
        keyspace: Optional[str] = None,
        page_size: Optional[int] = None,
    ) -> AsyncAnswer:
        """Executes a statement of CQL, with values for its `?`, or by name for its `:name`.

        The first page is there when this returns, the others are fetched as `async for` comes to them."""
        keyspace = keyspace or self._keyspace

        async def page(page_state: Optional[str]) -> Page:
            return await self._streams.send(_calls.cql(query, parameters, keyspace, page_size, page_state))

        return AsyncAnswer(await page(None), page)

    async def schema(self, keyspace: Optional[str] = None) -> Schema:
        """A keyspace with its tables, columns and indexes; without a name, all but the system's."""
        return await self._streams.send(_calls.schema(keyspace))

    async def create_keyspace(
        self, name: str, *, replication: Optional[Mapping[str, Any]] = None, if_not_exists: bool = False
    ) -> None:
        """Makes a keyspace; without `replication`, of one replica."""
        await self._streams.send(_calls.create_keyspace(name, replication, if_not_exists))

    async def drop_keyspace(self, name: str, *, if_exists: bool = False) -> None:
        """Drops a keyspace with all its tables."""
        await self._streams.send(_calls.drop_keyspace(name, if_exists))

    async def create_table(
        self,
        name: str,
        columns: Mapping[str, str],
        key: Sequence[Union[str, Sequence[str]]],
        *,
        order: Optional[Mapping[str, Literal["asc", "desc"]]] = None,
        if_not_exists: bool = False,
        options: Optional[Mapping[str, Any]] = None,
    ) -> AsyncTable:
        """Makes a table.

        Args:
            name: its name.
            columns: the type of each column, as in `{"id": "int", "v": "vector<float, 3>"}`, or `"text static"`.
            key: the columns of the primary key; a list in its first place has those of a partition key of several.
            order: that of rows by columns of the key after the first, as in `{"day": "desc"}`.
            if_not_exists: do nothing if it is there.
            options: such as `{"default_time_to_live": 3600}`.
        """
        table = self.table(name)
        await self._streams.send(_calls.create_table(table.name, columns, key, order, if_not_exists, options))
        return table

    async def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drops a table with its indexes."""
        await self._streams.send(_calls.drop_table(self.table(name).name, if_exists))

    async def batch(self, operations: Sequence[Union[Put, Delete]]) -> Written:
        """Writes and deletes rows, of several tables too: all of them or none.

        A batch is one request, whose size the server bounds. Use `Table.insert` for many rows."""
        return await self._streams.send(_calls.batch(operations, self._keyspace))


class AsyncTable:
    """A table of a client."""

    def __init__(self, streams: Streams, name: TableName) -> None:
        self._streams = streams
        self.name = name

    async def insert(self, rows: object, *, ttl: Optional[int] = None, if_not_exists: bool = False) -> Written:
        """Writes rows. One that is there with the same key gets the values of the columns that are named.

        Args:
            rows: mappings of columns to values, a DataFrame, or an Arrow table; a vector is a list of numbers or
                an array. They are sent in requests of up to 1,000: where one fails, those before it are written,
                and may be written again.
            ttl: seconds that the values live.
            if_not_exists: write only rows whose key is not there.
        """
        calls = _calls.put_rows(self.name, rows, ttl, if_not_exists)
        return _calls.together([await self._streams.send(call) for call in calls])

    async def get(self, key: Optional[Mapping[str, Any]] = None, /, **columns: Any) -> Optional[Row]:
        """The row of a key, as in `get(id=2)` or `get({"id": 2})`; None if it is not there."""
        answer = await self.rows({**(key or {}), **columns}, page_size=1)
        return await answer.one()

    async def rows(
        self, key: Mapping[str, Any], *, columns: Optional[Sequence[str]] = None, page_size: Optional[int] = None
    ) -> AsyncAnswer:
        """The rows of a key, or of its first columns, such as those of a partition.

        Args:
            key: columns of the key and their values.
            columns: the columns of the answer; without them, all.
            page_size: rows of a page.
        """

        async def page(page_state: Optional[str]) -> Page:
            return await self._streams.send(_calls.get_rows(self.name, key, columns, page_size, page_state))

        return AsyncAnswer(await page(None), page)

    async def delete(self, key: Optional[Mapping[str, Any]] = None, /, **columns: Any) -> None:
        """Deletes the row of a key, as in `delete(id=2)`."""
        await self._streams.send(_calls.delete_rows(self.name, {**(key or {}), **columns}))

    async def search(
        self,
        vector: Optional[Vector] = None,
        *,
        text: Optional[str] = None,
        query: Optional[str] = None,
        row: Optional[Mapping[str, Any]] = None,
        column: Optional[str] = None,
        text_column: Optional[str] = None,
        queries: Sequence[Query] = (),
        rank: Optional[Ranking] = None,
        filter: Optional[Filter] = None,
        allow_filtering: Optional[bool] = None,
        columns: Optional[Sequence[str]] = None,
        with_vector: Optional[Union[bool, Sequence[str]]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        score_threshold: Optional[float] = None,
        counts: Sequence[str] = (),
        among: Optional[int] = None,
        explain: Optional[bool] = None,
        exact: Optional[bool] = None,
    ) -> Found:
        """Finds the rows nearest to a vector or to a row, the best for words, or several in one order.

        The arguments are those of `Search`."""
        search = Search(
            vector=vector,
            text=text,
            query=query,
            row=row,
            column=column,
            text_column=text_column,
            queries=queries,
            rank=rank,
            filter=filter,
            allow_filtering=allow_filtering,
            columns=columns,
            with_vector=with_vector,
            limit=limit,
            offset=offset,
            score_threshold=score_threshold,
            counts=counts,
            among=among,
            explain=explain,
            exact=exact,
        )
        return await self._streams.send(_calls.search(self.name, search))

    async def search_many(self, searches: Sequence[Search]) -> list[Found]:
        """The answers of several searches in one request, each by itself."""
        return await self._streams.send(_calls.searches(self.name, searches))

    async def create_index(
        self,
        column: str,
        kind: IndexKind,
        *,
        name: Optional[str] = None,
        key: Sequence[str] = (),
        filter_columns: Sequence[str] = (),
        options: Optional[Mapping[str, Any]] = None,
        if_not_exists: bool = False,
    ) -> None:
        """Makes an index on a column.

        Args:
            column: the column.
            kind: `"vector"`, `"text"` for searches for words, or `"secondary"` for conditions.
            name: the name of the index; without one, `TABLE_COLUMN_idx`.
            key: the columns of the key of a local index.
            filter_columns: columns that searches filter by.
            options: such as `{"similarity_function": "cosine"}`.
            if_not_exists: do nothing if it is there.
        """
        await self._streams.send(
            _calls.create_index(self.name, column, kind, name, key, filter_columns, options, if_not_exists)
        )

    async def drop_index(self, name: str, *, if_exists: bool = False) -> None:
        """Drops an index."""
        await self._streams.send(_calls.drop_index(self.name, name, if_exists))

    async def schema(self) -> TableSchema:
        """The table's columns, key and indexes."""
        return await self._streams.send(_calls.table_schema(self.name))
