"""Rows and answers as pandas' DataFrame and as Arrow's Table, and the other way.

Neither is imported before a function needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = dict[str, Any]

# Rows of a frame that become objects of Python at once.
_ROWS_AT_ONCE = 1_000


def to_pandas(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Rows as a DataFrame. A vector is a list in one column.

    Args:
        rows: the rows, such as those of an answer.
        columns: the columns and their order; without them, those of the rows.
    """
    import pandas

    listed = list(rows)
    return pandas.DataFrame(_columns(listed, columns))


def to_arrow(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    schema: pyarrow.Schema | None = None,
) -> pyarrow.Table:
    """Rows as a Table. A vector is a list of numbers.

    Args:
        rows: the rows, such as those of an answer.
        columns: the columns and their order; without them, those of the schema or of the rows.
        schema: the types; without it, Arrow infers them of the values.
    """
    import pyarrow

    listed = list(rows)
    if columns is None and schema is not None:
        columns = schema.names
    return pyarrow.table(_columns(listed, columns), schema=schema)


def rows_of(data: object) -> Iterator[Mapping[str, Any]]:
    """The rows of a DataFrame, a Table, a batch of records, or of any iterable of mappings.

    What pandas has for a value that is not there (NaN, NaT, NA) is null. An index that has a name is a
    column; one without is none.
    """
    module = type(data).__module__.split(".")[0]
    if module == "pandas":
        return _rows_of_pandas(data)
    if module == "pyarrow":
        return _rows_of_arrow(data)
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise TypeError(f"rows are a list of mappings, a DataFrame or an Arrow table, unlike a {type(data).__name__}")
    return iter(data)


def _columns(rows: list[Mapping[str, Any]], columns: Sequence[str] | None) -> dict[str, list[Any]]:
    # Of rows that have unlike columns all are there, in the order in which they come.
    names = columns if columns is not None else dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _rows_of_pandas(data: Any) -> Iterator[Row]:
    if not hasattr(data, "columns"):
        raise TypeError("rows are a DataFrame, unlike a Series: make one of it by to_frame()")
    names = [name for name in data.index.names if name is not None]
    if names:
        data = data.reset_index()
    columns = [str(name) for name in data.columns]
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns of a DataFrame need names that differ, unlike {columns}")
    for begin in range(0, len(data), _ROWS_AT_ONCE):
        some = data.iloc[begin : begin + _ROWS_AT_ONCE]
        # By columns, because a row of a frame has one type for all its values: an integer becomes a float.
        values = [[_value(value) for value in some.iloc[:, at]] for at in range(len(columns))]
        for row in zip(*values):
            yield dict(zip(columns, row))


def _rows_of_arrow(data: Any) -> Iterator[Row]:
    if not hasattr(data, "schema"):
        raise TypeError(f"rows are an Arrow table or a batch of records, unlike a {type(data).__name__}")
    if hasattr(data, "read_next_batch"):
        batches: Iterable[Any] = data
    else:
        batches = data.to_batches(max_chunksize=_ROWS_AT_ONCE) if hasattr(data, "to_batches") else [data]
    for batch in batches:
        for row in batch.to_pylist():
            yield {name: _pairs_as_map(value) for name, value in row.items()}


def _pairs_as_map(value: Any) -> Any:
    """A map of Arrow comes as a list of pairs."""
    is_pairs = isinstance(value, list) and bool(value) and all(isinstance(pair, tuple) for pair in value)
    return dict(value) if is_pairs else value


def _value(value: Any) -> Any:
    """A value of a DataFrame: null for a missing one."""
    if value is None or isinstance(value, (str, list, dict, bytes)):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    # NaT and NA are the only values whose equality with themselves is not true.
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return _value(value.item())
    return value
