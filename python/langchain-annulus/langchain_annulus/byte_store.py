"""The key-value store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from langchain_core.stores import ByteStore

from langchain_annulus._connection import Connection, Row, Statement, batched
from langchain_annulus._table import Definition, Table

if TYPE_CHECKING:
    from cassandra.cluster import Session

# Keys that one statement names.
_KEYS_AT_ONCE = 100


class AnnulusByteStore(ByteStore):
    """A key-value store of bytes in one table.

    The table is made at the first use. The keyspace must be there.

    Args:
        session: a session of `cassandra-driver` or `scylla-driver`, or a connection string such as
            `cql://127.0.0.1:9042` or `cql://role:password@host1,host2?ca=ca.pem`.
        keyspace: the keyspace.
        table: the table.
        namespace: keys of other namespaces are neither seen nor touched. A table has namespaces or
            none: it is made by the first store that uses it. Keys of a namespace lie in one partition
            in their order, so that those of a prefix are found without reading the others.
        ttl: seconds that a value lives; 0 is for ever.
    """

    def __init__(
        self, *, session: Session | str, keyspace: str, table: str, namespace: str | None = None, ttl: int = 0
    ) -> None:
        self._connection = Connection(session)
        self._namespace = [] if namespace is None else [namespace]
        self._ttl = ttl
        self._table = Table(self._connection, keyspace, table, self._definition)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the value of each key, None for one that isn't there."""
        self._table.set_up()
        return _in_order(keys, self._connection.execute(self._reads(keys)))

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the value of each key, None for one that isn't there."""
        await self._table.aset_up()
        return _in_order(keys, await self._connection.aexecute(self._reads(keys)))

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Sets values. Of a key that is named twice, the last value stands."""
        self._table.set_up()
        self._connection.execute(self._writes(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Sets values. Of a key that is named twice, the last value stands."""
        await self._table.aset_up()
        await self._connection.aexecute(self._writes(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Deletes keys; those that aren't there are passed over."""
        self._table.set_up()
        self._connection.execute(self._deletes(keys))

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Deletes keys; those that aren't there are passed over."""
        await self._table.aset_up()
        await self._connection.aexecute(self._deletes(keys))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yields the keys that begin with `prefix`, all without one."""
        self._table.set_up()
        for (key,) in self._connection.rows(self._scan(prefix or "")):
            if key.startswith(prefix or ""):
                yield key
            elif self._namespace:
                return

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Yields the keys that begin with `prefix`, all without one."""
        await self._table.aset_up()
        async for (key,) in self._connection.arows(self._scan(prefix or "")):
            if key.startswith(prefix or ""):
                yield key
            elif self._namespace:
                return

    def _definition(self) -> Definition:
        columns = {"key": "text", "value": "blob"}
        if not self._namespace:
            return Definition(columns, "key")
        return Definition({"namespace": "text"} | columns, "(namespace), key")

    def _reads(self, keys: Sequence[str]) -> list[Statement]:
        where, name = self._where_namespace(), self._table.full_name
        return [
            Statement(f"SELECT key, value FROM {name} WHERE {where}key IN ?", [*self._namespace, some])
            for some in batched(dict.fromkeys(keys), _KEYS_AT_ONCE)
        ]

    def _deletes(self, keys: Sequence[str]) -> list[Statement]:
        where, name = self._where_namespace(), self._table.full_name
        return [
            Statement(f"DELETE FROM {name} WHERE {where}key IN ?", [*self._namespace, some])
            for some in batched(dict.fromkeys(keys), _KEYS_AT_ONCE)
        ]

    def _writes(self, pairs: Sequence[tuple[str, bytes]]) -> list[Statement]:
        columns, marks = ("namespace, ", "?, ") if self._namespace else ("", "")
        cql = f"INSERT INTO {self._table.full_name} ({columns}key, value) VALUES ({marks}?, ?) USING TTL ?"
        return [Statement(cql, [*self._namespace, key, value, self._ttl]) for key, value in dict(pairs).items()]

    def _scan(self, prefix: str) -> Statement:
        """Reads keys; in a namespace, in their order from the first one that may have the prefix."""
        cql = f"SELECT key FROM {self._table.full_name}"
        if not self._namespace:
            return Statement(cql)
        return Statement(f"{cql} WHERE namespace = ? AND key >= ?", [*self._namespace, prefix])

    def _where_namespace(self) -> str:
        return "namespace = ? AND " if self._namespace else ""


def _in_order(keys: Sequence[str], answers: list[list[Row]]) -> list[bytes | None]:
    found = {key: value for rows in answers for key, value in rows}
    return [found.get(key) for key in keys]
