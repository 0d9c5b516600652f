"""The stores, one a module. A module is imported only when its store is used, as each has a client of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from ..config import Settings
from .store import Query, Store, StoreError, StoreSizes, check_model

__all__ = ["STORES", "Query", "Store", "StoreError", "StoreSizes", "check_model", "opened_store", "store_class"]

# The module and the class of each store. Another store is one more file and one more line here.
STORES = {
    "annulus": ("annulus", "AnnulusStore"),
    "cassandra": ("cassandra", "CassandraStore"),
    "clickhouse": ("clickhouse", "ClickHouseStore"),
    "pgvector": ("pgvector", "PgvectorStore"),
    "qdrant": ("qdrant", "QdrantStore"),
}


def store_class(name: str) -> type[Store]:
    """The class of a store. Raises `StoreError` where there is no such store, or its client is not installed."""
    if name not in STORES:
        raise StoreError(f"There is no store {name!r}: choose one of {', '.join(STORES)}")
    module, kind = STORES[name]
    try:
        found: type[Store] = getattr(import_module(f".{module}", __package__), kind)
    except ImportError as error:
        wanted = "install apps/rag_bench/requirements.txt"
        raise StoreError(f"The client of {name} is missing: {wanted} ({error})") from error
    return found


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """The store that the settings name, until the end of the block."""
    store = store_class(settings.store).start(settings.directory / "stores" / settings.store, settings)
    try:
        yield store
    finally:
        store.close()
