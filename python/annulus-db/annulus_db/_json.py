"""Values of Python as the JSON that the server reads, which is that of CQL's `INSERT JSON`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

_PLAIN = (str, int, float, bool, type(None))


def encode(value: object) -> bytes:
    """The JSON of a value, in UTF-8."""
    text = json.dumps(value, default=_other, ensure_ascii=False, separators=(",", ":"))
    # A lone half of a surrogate pair is no text. The server says so, by the place where it is.
    return text.encode("utf-8", "surrogatepass")


def encode_row(columns: Mapping[str, object]) -> bytes:
    """The JSON of a row."""
    return encode(row(columns))


def row(columns: Mapping[str, object]) -> dict[str, object]:
    """A row as JSON has it. A name with capitals is in quotes there; without, capitals would mean nothing."""
    return {_spelt(column): plain(value) for column, value in columns.items()}


def names_as_they_are(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an answer, with names as tables have them."""
    return {name[1:-1] if _is_quoted(name) else name: value for name, value in row.items()}


def plain(value: object) -> object:
    """A value whose maps have texts as keys, as those of JSON."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {_key(key): plain(element) for key, element in value.items()}
    # A vector has many elements, and all are numbers.
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], _PLAIN):
        return [plain(element) for element in value]
    return value


def _spelt(column: str) -> str:
    if _is_quoted(column) or column == column.lower():
        return column
    return f'"{column}"'


def _is_quoted(column: str) -> bool:
    return len(column) > 2 and column[0] == column[-1] == '"'


def decode(body: bytes) -> Any:
    """The value that a JSON means."""
    return json.loads(body)


def text_of(value: object) -> str:
    """A value as it is in the query of an address."""
    if isinstance(value, str):
        return value
    written = encode(value).decode()
    return json.loads(written) if written.startswith('"') else written


def _key(key: object) -> str:
    # `1` and `true` are written as `toJson` does; a key that is a tuple or a list is the text of its JSON.
    return text_of(key) if not isinstance(key, (frozenset, tuple)) else encode(list(key)).decode()


def _other(value: object) -> object:
    """What JSON has in place of a value that it doesn't know."""
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (UUID, Decimal, IPv4Address, IPv6Address, time)):
        return str(value)
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"0x{bytes(value).hex()}"
    # Arrays and numbers of numpy, tensors, and such columns of pandas and Arrow.
    for name in ("tolist", "to_pylist"):
        if callable(convert := getattr(value, name, None)):
            return convert()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, timedelta):
        raise TypeError("a timedelta has no type in CQL: give a duration as a text such as '1h30m'")
    raise TypeError(f"a {type(value).__name__} has no type in CQL: give a value of JSON, a date or time, UUID, bytes")


def _timestamp(moment: datetime) -> str:
    """A moment in UTC, by milliseconds. One without a zone is in UTC, as a driver takes it."""
    utc = moment.astimezone(timezone.utc) if moment.tzinfo is not None else moment
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
