"""Metadata of documents: how it is kept, and what of it filters can ask for.

All of it is kept as JSON, from which it is read back with its types. Beside that stand copies that
the index keeps for filters: a field that is declared has a column of its own type, and any other
value that can be asked for is a text in one set, its term.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

TERMS = "terms"

# Types of declared fields, and those of their columns. A set is all that a filter needs of a list.
COLUMN_TYPES: Mapping[Any, str] = {
    str: "text",
    int: "bigint",
    float: "double",
    bool: "boolean",
    datetime: "timestamp",
    list[str]: "set<text>",
    list[int]: "set<bigint>",
}

# The least value that a column of each type holds; those of a bool are few.
LEAST: Mapping[Any, Any] = {str: "", int: -(2**63), float: -math.inf, datetime: -(2**63)}

# Types that JSON doesn't have, each with what makes a text of a value and a value of a text.
_TAG = "langchain_annulus"
_TAGGED: Mapping[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    datetime: (datetime.isoformat, datetime.fromisoformat),
    date: (date.isoformat, date.fromisoformat),
    Decimal: (str, Decimal),
    UUID: (str, UUID),
    bytes: (lambda value: base64.b64encode(value).decode(), base64.b64decode),
}
_TAGGED_BY_NAME = {kind.__name__: read for kind, (_, read) in _TAGGED.items()}

_LONGEST_TERM = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(metadata: Mapping[str, Any]) -> str:
    """Metadata as it is kept."""
    return json.dumps(metadata, default=_tagged)


def from_text(text: str) -> dict[str, Any]:
    """Metadata as it was given to `to_text`; a tuple has become a list."""
    read: dict[str, Any] = json.loads(text, object_hook=_untagged)
    return read


def _tagged(value: object) -> dict[str, str]:
    if type(value) not in _TAGGED:
        raise TypeError(f"metadata can't hold {value!r}, a {type(value).__name__}: make it a type of JSON")
    write, _ = _TAGGED[type(value)]
    return {_TAG: type(value).__name__, "value": write(value)}


def _untagged(read: dict[str, Any]) -> Any:
    if read.keys() != {_TAG, "value"}:
        return read
    return _TAGGED_BY_NAME[read[_TAG]](read["value"])


class Fields:
    """What filters can ask for: declared fields with their types, and which others have terms."""

    def __init__(self, declared: Mapping[str, Any], filterable: Collection[str] | None) -> None:
        for field, kind in declared.items():
            if not (field.isascii() and field.isidentifier()):
                raise ValueError(f"{field!r} can't be declared: names of columns are letters, digits and _")
            if kind not in COLUMN_TYPES:
                known = ", ".join(_name(kind) for kind in COLUMN_TYPES)
                raise ValueError(f"{field!r} can't be declared as {_name(kind)}: types are {known}")
        self.declared = dict(declared)
        self._filterable = None if filterable is None else set(filterable)

    def columns(self) -> dict[str, str]:
        """The columns that the index keeps for filters, with their types."""
        return {TERMS: "set<text>"} | {column_of(field): COLUMN_TYPES[kind] for field, kind in self.declared.items()}

    def values(self, metadata: Mapping[str, Any]) -> list[object]:
        """The values of these columns."""
        terms = {
            term
            for field, value in metadata.items()
            if field not in self.declared and self.has_terms(field)
            for term in _terms(field, value)
        }
        return [terms, *(self._value(field, metadata.get(field)) for field in self.declared)]

    def has_terms(self, field: str) -> bool:
        """Whether filters can ask for a field that isn't declared."""
        return self._filterable is None or field in self._filterable

    def _value(self, field: str, value: Any) -> object:
        kind = self.declared[field]
        # What equals nothing, as these do, is not kept.
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if kind not in (list[str], list[int]):
            return as_column(field, kind, value)
        if not isinstance(value, (list, tuple, set, frozenset)):
            raise TypeError(_mismatch(field, kind, value))
        return {as_column(field, element_of(kind), element) for element in value}


def column_of(field: str) -> str:
    """The column of a declared field."""
    return f"field_{field}"


def element_of(kind: Any) -> Any:
    """The type of the elements of a list's type."""
    return kind.__args__[0]


def is_list(kind: Any) -> bool:
    """Whether a declared type is that of lists."""
    return hasattr(kind, "__args__")


def as_column(field: str, kind: Any, value: Any) -> Any:
    """A value as its column has it, in which order and equality are the database's own."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and float(value) == value:
        value = float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(_mismatch(field, kind, value))
    if kind is int and not -(2**63) <= value < 2**63:
        raise ValueError(f"{field!r} is declared as int, which has 64 bits, and {value} has more")
    if kind is float:
        if math.isnan(value):
            raise ValueError(f"{field!r} compares with a number: NaN is none")
        return value + 0.0  # of both zeros, which the database tells apart, the positive one
    if kind is datetime:
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    return value


def _mismatch(field: str, kind: Any, value: Any) -> str:
    return f"{field!r} is declared as {_name(kind)}, and {value!r} is of type {type(value).__name__}"


def _name(kind: Any) -> str:
    return kind.__name__ if type(kind) is type else str(kind)


def is_scalar(value: object) -> bool:
    """Whether a value of a field that isn't declared can be asked for."""
    return isinstance(value, (str, bool, int, float)) and value == value


def term_of(field: str, value: Any, *, in_list: bool = False) -> str:
    """The term of a field's value, or of an element of its list. Equal numbers have one term."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    term = json.dumps([field, "contains", value] if in_list else [field, value])
    return term if len(term) <= _LONGEST_TERM else hashlib.sha256(term.encode()).hexdigest()


def _terms(field: str, value: Any) -> list[str]:
    if is_scalar(value):
        return [term_of(field, value)]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [term_of(field, element, in_list=True) for element in value if is_scalar(element)]
    return []
