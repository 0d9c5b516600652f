"""What requests have, and what answers are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union

from annulus_db import frames

if TYPE_CHECKING:
    import pandas
    import pyarrow

# A row by the names of its columns: values as `SELECT JSON` has them, so that a uuid or a timestamp is a text.
Row = dict[str, Any]

# Conditions on rows: `{"column": value}`, `{"column": {"gt": 5, "lte": 9}}`, and `{"and": [..]}`, `{"or": [..]}`,
# `{"not": {..}}` of such. Operators are eq, ne, gt, gte, lt, lte, in, contains, contains_key, and match for words.
Filter = Mapping[str, Any]

# Numbers: a list, or whatever has `tolist`, such as an array of numpy.
Vector = Union[Sequence[float], Any]

IndexKind = Literal["vector", "text", "secondary"]


@dataclass(frozen=True)
class Put:
    """A part of a batch that writes a row.

    Attributes:
        table: the table, as `Client.table` takes it.
        row: the row.
        ttl: seconds that the values live.
    """

    table: str
    row: Mapping[str, Any]
    ttl: Optional[int] = None


@dataclass(frozen=True)
class Delete:
    """A part of a batch that deletes a row.

    Attributes:
        table: the table, as `Client.table` takes it.
        key: the columns of its primary key and their values.
    """

    table: str
    key: Mapping[str, Any]


@dataclass(frozen=True)
class Query:
    """One of several queries that make one order: it has one of `vector`, `text`, `query` and `row`.

    Attributes:
        vector: a vector, whose nearest rows are found.
        text: words, as a user typed them.
        query: words with operators, in the language of text queries.
        row: the primary key of a row, whose vector or text is taken.
        column: the column; unsaid where the table has one that is searched so.
        weight: the factor of its part of the order.
        score_threshold: the least score of a row by this query.
    """

    vector: Optional[Vector] = None
    text: Optional[str] = None
    query: Optional[str] = None
    row: Optional[Mapping[str, Any]] = None
    column: Optional[str] = None
    weight: Optional[float] = None
    score_threshold: Optional[float] = None


@dataclass(frozen=True)
class Ranking:
    """How several queries make one order.

    Attributes:
        by: the sum of the reciprocals of ranks (`"rrf"`), or of scores (`"score"`).
        constant: the number that is added to each rank.
        candidates: rows that each query is requested for.
    """

    by: Optional[Literal["rrf", "score"]] = None
    constant: Optional[int] = None
    candidates: Optional[int] = None


@dataclass(frozen=True)
class Search:
    """A search of a table: for what is near a vector or a row, for words, or for several in one order.

    Attributes:
        vector: a vector, whose nearest rows are found.
        text: words, as a user typed them.
        query: words with operators, in the language of text queries.
        row: the primary key of a row, whose vector or text is taken. It isn't among what is found.
        column: the column of vectors; unsaid where the table has one with an index.
        text_column: the column of texts; unsaid where the table has one with an index.
        queries: several queries that make one order, in place of those above.
        rank: how several make one order.
        filter: conditions that all rows of the answer satisfy.
        allow_filtering: whether conditions may be on columns that no index has the values of.
        columns: the columns of the answer; unsaid, all but vectors.
        with_vector: whether vectors are among them, or which.
        limit: rows of the answer; unsaid, 10.
        offset: how many of the best rows are left out before them.
        score_threshold: the least score of a row.
        counts: columns by whose values found rows are counted.
        among: how many of the best rows are counted.
        explain: whether the answer says why a row is where it is.
        exact: whether the nearest rows must be the true ones.
    """

    vector: Optional[Vector] = None
    text: Optional[str] = None
    query: Optional[str] = None
    row: Optional[Mapping[str, Any]] = None
    column: Optional[str] = None
    text_column: Optional[str] = None
    queries: Sequence[Query] = ()
    rank: Optional[Ranking] = None
    filter: Optional[Filter] = None
    allow_filtering: Optional[bool] = None
    columns: Optional[Sequence[str]] = None
    with_vector: Optional[Union[bool, Sequence[str]]] = None
    limit: Optional[int] = None
    offset: Optional[int] = None
    score_threshold: Optional[float] = None
    counts: Sequence[str] = ()
    among: Optional[int] = None
    explain: Optional[bool] = None
    exact: Optional[bool] = None

    def __post_init__(self) -> None:
        own = [self.vector, self.text, self.query, self.row]
        if all(value is None for value in own) and not self.queries:
            raise ValueError("a search looks for something: name vector=, text=, query=, row=, or queries=")


@dataclass(frozen=True)
class Rows:
    """Rows of a table, which are also iterated over."""

    rows: list[Row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> Row:
        return self.rows[at]

    def to_pandas(self, columns: Optional[Sequence[str]] = None) -> pandas.DataFrame:
        """The rows as a DataFrame."""
        return frames.to_pandas(self.rows, columns)

    def to_arrow(
        self, columns: Optional[Sequence[str]] = None, schema: Optional[pyarrow.Schema] = None
    ) -> pyarrow.Table:
        """The rows as a Table of Arrow."""
        return frames.to_arrow(self.rows, columns, schema)


@dataclass(frozen=True)
class Count:
    """How many of the rows that were found have a value."""

    value: Any
    count: int


@dataclass(frozen=True)
class Hit:
    """What a query of a search has of a row.

    Attributes:
        column: the column that it searches.
        by: `"vector"` or `"words"`.
        score: the row's score there; None where the query did not find it.
        rank: its place there, from 1; None where the query did not find it.
        weight: the factor of the query's part of the order.
    """

    column: str
    by: str
    score: Optional[float]
    rank: Optional[int]
    weight: float = 1.0


@dataclass(frozen=True)
class Found(Rows):
    """What a search found, the best row first.

    Attributes:
        rows: the rows.
        scores: the score of each row; higher is better.
        explain: with `explain`, why each row is where it is: what each query has of it.
        counts: of each column of `counts`, the values among what was found.
        warnings: what the server warns of.
    """

    scores: list[Optional[float]] = field(default_factory=list)
    explain: list[list[Hit]] = field(default_factory=list)
    counts: dict[str, list[Count]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Column:
    """A column of an answer."""

    name: str
    type: str


@dataclass(frozen=True)
class Page(Rows):
    """A page of rows.

    Attributes:
        columns: the columns of the answer.
        page_state: where the next page begins; None after the last.
        warnings: what the server warns of.
    """

    columns: list[Column] = field(default_factory=list)
    page_state: Optional[str] = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """Rows that come by pages. They are iterated over, and pages fetched as they are needed."""

    first: Page
    _next: Callable[[str], Page]

    @property
    def columns(self) -> list[Column]:
        """The columns of the answer, in order."""
        return self.first.columns

    def pages(self) -> Iterator[Page]:
        """Yields the pages."""
        page = self.first
        yield page
        while page.page_state is not None:
            page = self._next(page.page_state)
            yield page

    def __iter__(self) -> Iterator[Row]:
        for page in self.pages():
            yield from page

    def one(self) -> Optional[Row]:
        """The first row; None if there is none."""
        return next(iter(self), None)

    def all(self) -> list[Row]:
        """All rows."""
        return list(self)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a DataFrame."""
        return frames.to_pandas(self, _names(self.columns))

    def to_arrow(self, schema: Optional[pyarrow.Schema] = None) -> pyarrow.Table:
        """All rows as a Table of Arrow."""
        return frames.to_arrow(self, _names(self.columns), schema)


@dataclass(frozen=True)
class AsyncAnswer:
    """Rows that come by pages. They are iterated over by `async for`, and pages fetched as they are needed."""

    first: Page
    _next: Callable[[str], Awaitable[Page]]

    @property
    def columns(self) -> list[Column]:
        """The columns of the answer, in order."""
        return self.first.columns

    async def pages(self) -> AsyncIterator[Page]:
        """Yields the pages."""
        page = self.first
        yield page
        while page.page_state is not None:
            page = await self._next(page.page_state)
            yield page

    async def __aiter__(self) -> AsyncIterator[Row]:
        async for page in self.pages():
            for row in page:
                yield row

    async def one(self) -> Optional[Row]:
        """The first row; None if there is none."""
        async for row in self:
            return row
        return None

    async def all(self) -> list[Row]:
        """All rows."""
        return [row async for row in self]

    async def to_pandas(self) -> pandas.DataFrame:
        """All rows as a DataFrame."""
        return frames.to_pandas(await self.all(), _names(self.columns))

    async def to_arrow(self, schema: Optional[pyarrow.Schema] = None) -> pyarrow.Table:
        """All rows as a Table of Arrow."""
        return frames.to_arrow(await self.all(), _names(self.columns), schema)


def _names(columns: list[Column]) -> Optional[list[str]]:
    return [column.name for column in columns] or None


@dataclass(frozen=True)
class Written:
    """What a write did.

    Attributes:
        written: rows that were written.
        applied: of each row, whether it was written: with `if_not_exists`, which leaves rows that are there as
            they are. Empty without it.
        warnings: what the server warns of.
    """

    written: int = 0
    applied: list[bool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class ColumnSchema(TypedDict):
    """A column of a table: `kind` is `partition_key`, `clustering`, `static` or `regular`."""

    name: str
    type: str
    kind: str


class KeySchema(TypedDict):
    """The columns of a primary key."""

    partition: list[str]
    clustering: list[str]


class IndexSchema(TypedDict):
    """An index of a table."""

    name: str
    kind: str
    options: dict[str, str]


class TableSchema(TypedDict):
    """A table."""

    columns: list[ColumnSchema]
    key: KeySchema
    indexes: list[IndexSchema]


class KeyspaceSchema(TypedDict):
    """A keyspace with its tables by their names."""

    tables: dict[str, TableSchema]


class Schema(TypedDict):
    """Keyspaces by their names."""

    keyspaces: dict[str, KeyspaceSchema]
