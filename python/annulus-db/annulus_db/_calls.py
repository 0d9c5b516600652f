"""The routes: what each request says, and what its answer means. docs/http.md has them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from annulus_db import _json, frames
from annulus_db._call import Call, quoted
from annulus_db.types import (
    Column,
    Count,
    Delete,
    Found,
    Hit,
    Page,
    Put,
    Query,
    Ranking,
    Row,
    Schema,
    Search,
    TableSchema,
    Written,
)

_API = "/api/v1"
# What one request of rows has at most; the server takes 2 MiB.
_BODY_BYTES = 1 << 20
_BODY_ROWS = 1_000


class TableName(NamedTuple):
    """The name of a table."""

    keyspace: str
    table: str

    @staticmethod
    def of(name: str, keyspace: str | None) -> TableName:
        """That of `keyspace.table`, or of a table in the client's keyspace."""
        first, dot, second = name.partition(".")
        if dot:
            return TableName(first, second)
        if keyspace is None:
            raise ValueError(f"a table is named as keyspace.table, unlike {name!r}: or give the client keyspace=")
        return TableName(keyspace, name)

    @property
    def path(self) -> str:
        """The path of the table."""
        return f"{_API}/tables/{quoted(self.keyspace, self.table)}"

    @property
    def cql(self) -> str:
        """The name as statements have it."""
        return f"{identifier(self.keyspace)}.{identifier(self.table)}"


def identifier(name: str) -> str:
    """A name as statements have it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def put_rows(name: TableName, data: object, ttl: int | None, if_not_exists: bool) -> Iterator[Call[Written]]:
    """Calls that write rows: so many that no body is too long."""
    options = _set(ttl=ttl, if_not_exists=if_not_exists or None)
    for rows in _bodies(frames.rows_of(data)):
        begin = b'{"rows":[' + b",".join(rows) + b"]"
        end = b"," + _json.encode(options)[1:] if options else b"}"
        yield Call("PUT", f"{name.path}/rows", _written, begin + end, is_repeatable=not if_not_exists)


def get_rows(
    name: TableName,
    key: Mapping[str, object],
    columns: Sequence[str] | None,
    page_size: int | None,
    page_state: str | None = None,
) -> Call[Page]:
    """A page of the rows of a key, or of the first columns of one."""
    listed = None if columns is None else ",".join(columns)
    options = _set(columns=listed, page_size=page_size, page_state=page_state)
    return Call("GET", f"{name.path}/rows?{_query(key, options)}", _page)


def delete_rows(name: TableName, key: Mapping[str, object]) -> Call[None]:
    """Deletes the row of a key."""
    return Call("DELETE", f"{name.path}/rows?{_query(key, {})}", _nothing)


def search(name: TableName, wanted: Search) -> Call[Found]:
    """One search."""
    return Call("POST", f"{name.path}/search", _found, _json.encode(_search_body(wanted)))


def searches(name: TableName, wanted: Sequence[Search]) -> Call[list[Found]]:
    """Several searches in one request."""
    body = _json.encode({"searches": [_search_body(one) for one in wanted]})
    return Call("POST", f"{name.path}/search", lambda answer: [_found(one) for one in answer["answers"]], body)


def cql(
    query: str,
    parameters: Sequence[object] | Mapping[str, object],
    keyspace: str | None,
    page_size: int | None,
    page_state: str | None = None,
) -> Call[Page]:
    """A statement of CQL."""
    bound: object = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    body = _set(
        query=query, parameters=bound or None, keyspace=keyspace, page_size=page_size, page_state=page_state
    )
    # A statement may add to a counter, or be conditional.
    return Call("POST", f"{_API}/cql", _page, _json.encode(body), is_repeatable=page_state is not None)


def batch(operations: Sequence[Put | Delete], keyspace: str | None) -> Call[Written]:
    """Writes and deletes of one batch."""
    body = {"operations": [_operation(operation, keyspace) for operation in operations]}
    return Call("POST", f"{_API}/batch", _written, _json.encode(body))


def create_keyspace(name: str, replication: Mapping[str, Any] | None, if_not_exists: bool) -> Call[None]:
    """Makes a keyspace."""
    body = _json.encode(_set(replication=replication, if_not_exists=if_not_exists or None))
    return Call("PUT", f"{_API}/keyspaces/{quoted(name)}", _nothing, body, is_repeatable=if_not_exists)


def drop_keyspace(name: str, if_exists: bool) -> Call[None]:
    """Drops a keyspace."""
    return _drop(f"{_API}/keyspaces/{quoted(name)}", if_exists)


def create_table(
    name: TableName,
    columns: Mapping[str, str],
    key: Sequence[str | Sequence[str]],
    order: Mapping[str, str] | None,
    if_not_exists: bool,
    options: Mapping[str, Any] | None,
) -> Call[None]:
    """Makes a table."""
    if isinstance(key, str) or not key:
        raise ValueError(f"key is a list of the primary key's columns, unlike {key!r}")
    first, *rest = key
    orders = dict(order or {})
    clustering = [{"column": column, "order": orders.pop(str(column), "asc")} for column in rest]
    if orders:
        raise ValueError(f"order is for columns of the key after the first, unlike {', '.join(orders)}")
    body = _set(
        columns=[_new_column(column, of) for column, of in columns.items()],
        key={"partition": [first] if isinstance(first, str) else list(first), "clustering": clustering},
        if_not_exists=if_not_exists or None,
        options=options,
    )
    return Call("PUT", name.path, _nothing, _json.encode(body), is_repeatable=if_not_exists)


def drop_table(name: TableName, if_exists: bool) -> Call[None]:
    """Drops a table."""
    return _drop(name.path, if_exists)


def create_index(
    name: TableName,
    column: str,
    kind: str,
    index: str | None,
    key: Sequence[str],
    filter_columns: Sequence[str],
    options: Mapping[str, Any] | None,
    if_not_exists: bool,
) -> Call[None]:
    """Makes an index."""
    index = index or f"{name.table}_{column}_idx"
    body = _set(
        column=column,
        kind=kind,
        key=list(key) or None,
        filter_columns=list(filter_columns) or None,
        options=options,
        if_not_exists=if_not_exists or None,
    )
    path = f"{name.path}/indexes/{quoted(index)}"
    return Call("PUT", path, _nothing, _json.encode(body), is_repeatable=if_not_exists)


def drop_index(name: TableName, index: str, if_exists: bool) -> Call[None]:
    """Drops an index."""
    return _drop(f"{name.path}/indexes/{quoted(index)}", if_exists)


def schema(keyspace: str | None) -> Call[Schema]:
    """The keyspaces with their tables and indexes."""
    query = "" if keyspace is None else f"?{urlencode({'keyspace': keyspace})}"
    return Call("GET", f"{_API}/schema{query}", lambda answer: Schema(keyspaces=answer["keyspaces"]))


def table_schema(name: TableName) -> Call[TableSchema]:
    """A table's columns, key and indexes."""
    return Call("GET", name.path, _table_schema)


def together(parts: Iterable[Written]) -> Written:
    """What several writes did."""
    whole = Written()
    for part in parts:
        whole = Written(
            whole.written + part.written, whole.applied + part.applied, whole.warnings + part.warnings
        )
    return whole


def _query(key: Mapping[str, object], options: Mapping[str, object]) -> str:
    if not key:
        raise ValueError("a row is named by its key: give the columns of the key with their values")
    both = [*key.items(), *options.items()]
    return urlencode([(name, _json.text_of(value)) for name, value in both])


def _bodies(rows: Iterable[Mapping[str, object]]) -> Iterator[list[bytes]]:
    """Rows as JSON, in lists of which each goes into one body."""
    some: list[bytes] = []
    size = 0
    for row in rows:
        encoded = _json.encode_row(row)
        if some and (len(some) == _BODY_ROWS or size + len(encoded) > _BODY_BYTES):
            yield some
            some, size = [], 0
        some.append(encoded)
        size += len(encoded) + 1
    if some:
        yield some


def _new_column(name: str, of: str) -> dict[str, object]:
    cql_type, is_static, _ = of.partition(" static")
    return {"name": name, "type": cql_type, **_set(static=bool(is_static) or None)}


def _table_schema(answer: Any) -> TableSchema:
    return TableSchema(columns=answer["columns"], key=answer["key"], indexes=answer["indexes"])


def _operation(operation: Put | Delete, keyspace: str | None) -> dict[str, object]:
    name = TableName.of(operation.table, keyspace)
    place = {"keyspace": name.keyspace, "table": name.table}
    if isinstance(operation, Delete):
        return {"delete": {**place, "key": _json.plain(operation.key)}}
    return {"put": {**place, "row": _json.row(operation.row), **_set(ttl=operation.ttl)}}


def _drop(path: str, if_exists: bool) -> Call[None]:
    query = "?if_exists=true" if if_exists else ""
    return Call("DELETE", path + query, _nothing, is_repeatable=if_exists)


def _search_body(wanted: Search) -> dict[str, object]:
    body = _fields(wanted)
    if wanted.queries:
        body["queries"] = [_fields(query) for query in wanted.queries]
    if wanted.rank is not None:
        body["rank"] = _fields(wanted.rank)
    return body


def _fields(of: Search | Query | Ranking) -> dict[str, object]:
    """The fields that are said, those of the parts aside. A server refuses those that it doesn't know."""
    given = {each.name: getattr(of, each.name) for each in dataclasses.fields(of)}
    # An array can't be compared with a tuple.
    said = {name: value for name, value in given.items() if value is not None and not isinstance(value, tuple)}
    said |= {name: list(value) for name, value in given.items() if isinstance(value, tuple) and value}
    return {name: _json.plain(value) for name, value in said.items()}


def _set(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _found(answer: Any) -> Found:
    counts = {
        column: [Count(each["value"], each["count"]) for each in values]
        for column, values in answer.get("counts", {}).items()
    }
    explain = [[_hit(each) for each in row] for row in answer.get("explain", [])]
    return Found(_rows(answer), list(answer.get("scores", [])), explain, counts, _warnings(answer))


def _hit(answer: Any) -> Hit:
    return Hit(answer["column"], answer["by"], answer["score"], answer["rank"], answer.get("weight", 1.0))


def _rows(answer: Any) -> list[Row]:
    return [_json.names_as_they_are(row) for row in answer.get("rows", [])]


def _page(answer: Any) -> Page:
    columns = [Column(each["name"], each["type"]) for each in answer.get("columns", [])]
    return Page(_rows(answer), columns, answer.get("page_state"), _warnings(answer))


def _written(answer: Any) -> Written:
    applied = [bool(each) for each in answer.get("applied", [])]
    return Written(answer.get("written", sum(applied)), applied, _warnings(answer))


def _warnings(answer: Any) -> list[str]:
    return list(answer.get("warnings", []))


def _nothing(_: Any) -> None:
    return None
