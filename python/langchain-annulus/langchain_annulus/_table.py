"""A table of a store, which is made when it is first used."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from langchain_annulus._connection import Connection, Statement

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
_NAMESPACE = "namespace"
_COLUMNS = "SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?"


class Definition(NamedTuple):
    """The columns of a table with their types, its key, and the statement that makes its index."""

    columns: Mapping[str, str]
    primary_key: str
    create_index: str | None = None


class Table:
    """A table named `keyspace.name`, which `define` defines."""

    def __init__(self, connection: Connection, keyspace: str, name: str, define: Callable[[], Definition]) -> None:
        for what, text in (("keyspace", keyspace), ("table", name)):
            if not _NAME.fullmatch(text):
                raise ValueError(f"a {what} is named by a letter, then up to 47 letters, digits and _, unlike {text!r}")
        self.full_name = f"{quoted(keyspace)}.{quoted(name)}"
        self._names = (keyspace, name)
        self._connection = connection
        self._define = define
        self._lock = threading.Lock()
        self._is_there = False

    def set_up(self) -> None:
        """Makes the table and its index, if they aren't there."""
        with self._lock:
            if not self._is_there:
                self._make(self._define())
                self._is_there = True

    async def aset_up(self) -> None:
        """Makes the table and its index, if they aren't there."""
        if not self._is_there:
            await asyncio.to_thread(self.set_up)

    def _make(self, definition: Definition) -> None:
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in definition.columns.items())
        self._connection.define(
            f"CREATE TABLE IF NOT EXISTS {self.full_name} ({columns}, PRIMARY KEY ({definition.primary_key}))"
        )
        there: dict[str, str] = dict(self._connection.execute([Statement(_COLUMNS, self._names)])[0])
        self._refuse_other_namespaces(_NAMESPACE in there, _NAMESPACE in definition.columns)
        for name, kind in definition.columns.items():
            if there.get(name) != kind:
                found = f"it is {there[name]}" if name in there else "there is none"
                raise ValueError(
                    f"the table {'.'.join(self._names)} exists with other columns: this store needs {name} {kind}, "
                    f"and {found}; give the store another table, or the arguments that it was made with"
                )
        if definition.create_index is not None:
            self._connection.define(definition.create_index)

    def _refuse_other_namespaces(self, has: bool, needs: bool) -> None:
        table = ".".join(self._names)
        if has and not needs:
            raise ValueError(f"the table {table} has namespaces: give the store one by namespace=, or another table")
        if needs and not has:
            raise ValueError(f"the table {table} has no namespaces: leave namespace= out, or take another table")


def quoted(name: str) -> str:
    """A name as CQL has it where case counts."""
    return f'"{name}"'
