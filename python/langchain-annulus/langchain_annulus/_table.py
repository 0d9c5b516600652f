"""A table of a store, which is made when it is first used."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langchain_annulus._connection import Connection, Statement

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
_NAMESPACE = "namespace"
_COLUMNS = "SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?"
_INDEXES = "SELECT options FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = ?"


class TextIndex(NamedTuple):
    """The full-text index of a column, the analyzer if that matters, and the statement that makes it."""

    column: str
    analyzer: str | None
    create: str


class Definition(NamedTuple):
    """The columns of a table with their types, its key, the statement that makes its index, and its
    full-text index."""

    columns: Mapping[str, str]
    primary_key: str
    create_index: str | None = None
    text_index: TextIndex | None = None


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
        """Makes the table and its indexes, if they aren't there."""
        with self._lock:
            if not self._is_there:
                self._make(self._define())
                self._is_there = True

    async def aset_up(self) -> None:
        """Makes the table and its indexes, if they aren't there."""
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
        # First: a table that has the other index, and not this one, was made without it.
        if definition.text_index is not None:
            self._make_text_index(definition.text_index)
        if definition.create_index is not None:
            self._connection.define(definition.create_index)

    def _make_text_index(self, index: TextIndex) -> None:
        """Makes the full-text index of a new table; of one that was made without it, that is refused."""
        table = ".".join(self._names)
        (rows,) = self._connection.execute([Statement(_INDEXES, self._names)])
        indexes: list[dict[str, str]] = [dict(options) for (options,) in rows]
        of_text = [options for options in indexes if _class_of(options) == "fulltext_index"]
        analyzers = [
            options.get("analyzer", "standard").lower() for options in of_text if _target_of(options) == index.column
        ]
        if not analyzers:
            if any(_class_of(options) == "vector_index" for options in indexes):
                raise ValueError(
                    f"the table {table} exists without a full-text index, which searches for words need: "
                    f"make it by the statement {index.create}; or give the store another table, "
                    "or search_mode='vector' without text_index="
                )
            self._connection.define(index.create)
        elif index.analyzer is not None and index.analyzer.lower() not in analyzers:
            raise ValueError(
                f"the full-text index of the table {table} has the analyzer {analyzers[0]}, not {index.analyzer}: "
                "give the store analyzer= as it is, or drop the index and make it again"
            )

    def _refuse_other_namespaces(self, has: bool, needs: bool) -> None:
        table = ".".join(self._names)
        if has and not needs:
            raise ValueError(f"the table {table} has namespaces: give the store one by namespace=, or another table")
        if needs and not has:
            raise ValueError(f"the table {table} has no namespaces: leave namespace= out, or take another table")


def quoted(name: str) -> str:
    """A name as CQL has it where case counts."""
    return f'"{name}"'


def _class_of(options: Mapping[str, str]) -> str:
    """The class of an index with these options."""
    return options.get("class_name", "").lower()


def _target_of(options: Mapping[str, str]) -> Any:
    """The column that an index with these options searches."""
    target = options.get("target", "")
    # With filter columns or a local key it is an object of JSON.
    return json.loads(target)["tc"] if target.startswith("{") else target.strip('"')
