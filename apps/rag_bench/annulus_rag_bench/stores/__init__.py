"""The stores, one a module. A module is imported only when its store is used, as each has a client of its own."""

from importlib import import_module

from .store import Query, Store, StoreError, StoreSizes, check_model

__all__ = ["STORES", "Query", "Store", "StoreError", "StoreSizes", "check_model", "store_class"]

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
        raise StoreError(f"The client of {name} is missing: install apps/rag_bench/requirements.txt ({error})") from error
    return found
