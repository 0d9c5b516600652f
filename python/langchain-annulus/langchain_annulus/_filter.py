"""Filters on metadata as CQL that is exact.

CQL knows AND alone. So a filter becomes alternatives, each a conjunction that one SELECT answers;
who searches merges their answers. In a conjunction all that is said of one column becomes one span
of its values, as CQL takes each bound once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from langchain_annulus._metadata import (
    LEAST,
    TERMS,
    Fields,
    as_column,
    column_of,
    element_of,
    is_list,
    is_scalar,
    term_of,
)
from langchain_annulus._table import quoted

# Alternatives of one filter, each of which is a search.
MOST_ALTERNATIVES = 64

# The operator of lists.
_CONTAINS = "$contains"

# The operators of fields that aren't declared.
_OF_OTHERS = "$eq, $in, $contains"

Filter = Mapping[str, Any]


@dataclass(frozen=True)
class Span:
    """Values of a column: those listed, or those between two bounds.

    A bound is a value and a side: 1 behind `low` says that the value itself is out, and -1 behind
    `high`. So the greater `low` and the lesser `high` are the stricter ones."""

    values: frozenset[Any] | None = None
    low: tuple[Any, int] | None = None
    high: tuple[Any, int] | None = None

    def __and__(self, other: Span) -> Span:
        low = max((bound for bound in (self.low, other.low) if bound is not None), default=None)
        high = min((bound for bound in (self.high, other.high) if bound is not None), default=None)
        listed = [values for values in (self.values, other.values) if values is not None]
        if not listed:
            return Span(None, low, high)
        between = Span(None, low, high)
        return Span(frozenset(value for value in frozenset.intersection(*listed) if between._has(value)))

    def is_empty(self) -> bool:
        """Whether no value is in it."""
        if self.values is not None:
            return not self.values
        return self.low is not None and self.high is not None and self.low > self.high

    def relations(self, column: str) -> list[tuple[str, Any]]:
        """Relations of CQL, each with its value."""
        if self.values is not None:
            if len(self.values) == 1:
                return [(f"{column} = ?", next(iter(self.values)))]
            return [(f"{column} IN ?", list(self.values))]
        bounds = []
        if self.low is not None:
            bounds.append((f"{column} >{'' if self.low[1] else '='} ?", self.low[0]))
        if self.high is not None:
            bounds.append((f"{column} <{'' if self.high[1] else '='} ?", self.high[0]))
        return bounds

    def _has(self, value: Any) -> bool:
        return (self.low is None or self.low <= (value, 0)) and (self.high is None or (value, 0) <= self.high)


@dataclass(frozen=True)
class Alternative:
    """Conditions that hold together: spans of columns, and values that collections contain."""

    spans: Mapping[str, Span] = field(default_factory=dict)
    contained: frozenset[tuple[str, Any]] = frozenset()

    def __and__(self, other: Alternative) -> Alternative:
        spans = dict(self.spans)
        for column, span in other.spans.items():
            spans[column] = spans[column] & span if column in spans else span
        return Alternative(spans, self.contained | other.contained)

    def is_empty(self) -> bool:
        """Whether no row can satisfy it."""
        return any(span.is_empty() for span in self.spans.values())

    def relations(self) -> list[tuple[str, Any]]:
        """Relations of CQL, each with its value, in an order that doesn't depend on the values."""
        spans = [relation for column, span in sorted(self.spans.items()) for relation in span.relations(quoted(column))]
        return spans + [(f"{quoted(column)} CONTAINS ?", value) for column, value in sorted(self.contained)]


Alternatives = list[Alternative]


def alternatives(filter: Filter | None, fields: Fields) -> Alternatives:
    """The conjunctions of which at least one holds where `filter` holds; none if it can't hold."""
    return [Alternative()] if filter is None else _of_filter(filter, fields)


def _of_filter(filter: Filter, fields: Fields) -> Alternatives:
    if callable(filter):
        raise TypeError(
            "a filter can't be a function, as the database applies it: write a mapping, "
            'such as {"year": {"$gte": 1990}}'
        )
    if not isinstance(filter, Mapping):
        raise TypeError(f'a filter is a mapping, such as {{"year": {{"$gte": 1990}}}}, unlike {filter!r}')
    return _all_of(_of_entry(name, wanted, fields) for name, wanted in filter.items())


def _of_entry(name: str, wanted: Any, fields: Fields) -> Alternatives:
    if name in ("$and", "$or"):
        if not isinstance(wanted, (list, tuple)) or not wanted:
            raise ValueError(f"{name} takes a list of filters that isn't empty, unlike {wanted!r}")
        parts = [_of_filter(part, fields) for part in wanted]
        return _all_of(parts) if name == "$and" else _bounded([one for part in parts for one in part])
    if name.startswith("$"):
        raise ValueError(f"there is no {name}: filters are joined by $and and $or")
    if not isinstance(wanted, Mapping):
        wanted = {"$eq": wanted}
    of_field = _of_declared if name in fields.declared else _of_other
    return _all_of(of_field(name, operator, value, fields) for operator, value in wanted.items())


def _all_of(parts: Iterable[Alternatives]) -> Alternatives:
    def both(some: Alternatives, others: Alternatives) -> Alternatives:
        pairs = (one & other for one in some for other in others)
        return _bounded([pair for pair in pairs if not pair.is_empty()])

    return reduce(both, parts, [Alternative()])


def _bounded(some: Alternatives) -> Alternatives:
    if len(some) > MOST_ALTERNATIVES:
        raise ValueError(
            f"the filter has more than {MOST_ALTERNATIVES} alternatives, each of which is a search: "
            "use fewer $or and $nin, or declare fields that $in lists many values of in metadata_columns"
        )
    return some


def _of_declared(name: str, operator: str, value: Any, fields: Fields) -> Alternatives:
    if operator not in _SPANS and operator != _CONTAINS:
        taken = ", ".join(_operators(name, fields))
        raise ValueError(f"there is no operator {operator} for {name!r}: it takes {taken}")
    kind, column = fields.declared[name], column_of(name)
    if is_list(kind):
        if operator != _CONTAINS:
            raise ValueError(f"{name!r} is a list, which takes {_CONTAINS}, not {operator}")
        return [Alternative(contained=frozenset([(column, as_column(name, element_of(kind), value))]))]
    if operator == _CONTAINS:
        taken = ", ".join(_operators(name, fields))
        raise ValueError(f"{name!r} is no list, so it takes no {_CONTAINS}: it takes {taken}")
    if operator in ("$in", "$nin"):
        values = [as_column(name, kind, one) for one in _listed(operator, value)]
    else:
        values = [as_column(name, kind, value)]
    if kind is bool and operator not in _OF_BOOLS:
        raise ValueError(f"{name!r} is a bool, which takes no {operator}: it takes {', '.join(_OF_BOOLS)}")
    if kind is bool and operator in ("$ne", "$nin"):
        return _where(column, [Span(frozenset({True, False} - set(values)))])
    if operator == "$nin" and not values:
        return _where(column, [Span(low=(LEAST[kind], 0))])
    return _where(column, _SPANS[operator](values))


def _operators(name: str, fields: Fields) -> Sequence[str]:
    """The operators that a declared field takes."""
    kind = fields.declared[name]
    if is_list(kind):
        return [_CONTAINS]
    return _OF_BOOLS if kind is bool else list(_SPANS)


def _where(column: str, spans: Sequence[Span]) -> Alternatives:
    some = [Alternative({column: span}) for span in spans]
    return _bounded([one for one in some if not one.is_empty()])


def _other_than(values: Sequence[Any]) -> list[Span]:
    """The spans before, between and after some values."""
    edges = sorted(set(values))
    lows = [None, *((edge, 1) for edge in edges)]
    highs = [*((edge, -1) for edge in edges), None]
    return [Span(None, low, high) for low, high in zip(lows, highs, strict=True)]


_SPANS: Mapping[str, Callable[[Sequence[Any]], list[Span]]] = {
    "$eq": lambda values: [Span(frozenset(values))],
    "$ne": _other_than,
    "$gt": lambda values: [Span(low=(values[0], 1))],
    "$gte": lambda values: [Span(low=(values[0], 0))],
    "$lt": lambda values: [Span(high=(values[0], -1))],
    "$lte": lambda values: [Span(high=(values[0], 0))],
    "$in": lambda values: [Span(frozenset(values))],
    "$nin": _other_than,
}


_OF_BOOLS = ("$eq", "$ne", "$in", "$nin")


def _of_other(name: str, operator: str, value: Any, fields: Fields) -> Alternatives:
    if operator not in _SPANS and operator != _CONTAINS:
        raise ValueError(f"there is no operator {operator} for {name!r}, which isn't declared: it takes {_OF_OTHERS}")
    if not fields.has_terms(name):
        raise ValueError(f"{name!r} is neither in metadata_columns nor in filterable, so that no filter can ask for it")
    if operator in _SPANS and operator not in ("$eq", "$in"):
        raise ValueError(f"{operator} needs a column of its own: declare {name!r} with its type in metadata_columns")
    values = _listed(operator, value) if operator == "$in" else [value]
    for one in values:
        if not is_scalar(one):
            raise TypeError(f"{name!r} compares with a str, int, float or bool, unlike {one!r}")
    terms = dict.fromkeys(term_of(name, one, in_list=operator == _CONTAINS) for one in values)
    return _bounded([Alternative(contained=frozenset([(TERMS, term)])) for term in terms])


def _listed(operator: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{operator} takes a list of values, unlike {value!r}")
    return list(value)
