"""Annulus, a CQL database with vector and text search: a server of one's own, and clients of any.

    import annulus_db

    with annulus_db.Server() as server, server.client() as client:
        client.create_keyspace("shop")
        ...

Needs nothing but Python. pandas and pyarrow are imported by the functions that make their tables.
"""

from annulus_db.async_client import AsyncClient, AsyncTable
from annulus_db.client import Client, Table
from annulus_db.errors import (
    AnnulusError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    InvalidRequestError,
    LoginError,
    NotFoundError,
    RequestError,
    StartError,
    TimedOutError,
    UnavailableError,
)
from annulus_db.frames import to_arrow, to_pandas
from annulus_db.server import Server
from annulus_db.types import (
    Answer,
    AsyncAnswer,
    Column,
    Count,
    Delete,
    Filter,
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

__all__ = [
    "AnnulusError",
    "Answer",
    "AsyncAnswer",
    "AsyncClient",
    "AsyncTable",
    "Client",
    "Column",
    "ConflictError",
    "ConnectionFailedError",
    "Count",
    "Delete",
    "Filter",
    "ForbiddenError",
    "Found",
    "Hit",
    "InvalidRequestError",
    "LoginError",
    "NotFoundError",
    "Page",
    "Put",
    "Query",
    "Ranking",
    "RequestError",
    "Row",
    "Schema",
    "Search",
    "Server",
    "StartError",
    "Table",
    "TableSchema",
    "TimedOutError",
    "UnavailableError",
    "Written",
    "to_arrow",
    "to_pandas",
]
