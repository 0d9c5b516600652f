"""The table of prompts, in each dialect."""

from __future__ import annotations

from annulus_semantic_cache.settings import Settings

# The published columns first, then what isolation, invalidation and savings need.
COLUMNS = {
    "prompt_id": "uuid",
    "inserted_at": "timestamp",
    "prompt_text": "text",
    "prompt_embedding": "vector<float, {dimensions}>",
    "llm_response": "text",
    "updated_at": "timestamp",
    "scope": "text",
    "tenant": "text",
    "user_id": "text",
    "model": "text",
    "embedding_model": "text",
    "parameters": "text",
    "conversation": "text",
    "text_digest": "text",
    "tags": "set<text>",
    "volatile": "boolean",
    "expires_at": "timestamp",
    "prompt_tokens": "int",
    "completion_tokens": "int",
    "model_seconds": "double",
}
# Columns by which rows are found for an invalidation.
_FOUND_BY = ("tenant", "text_digest", "tags")


def keyspace_statement(settings: Settings) -> str:
    """Makes the keyspace, with one copy of each row: one with more is made by hand before."""
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {settings.keyspace} WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    )


def statements(settings: Settings) -> list[str]:
    """Makes the table and its indexes."""
    name, table = f"{settings.keyspace}.{settings.table}", settings.table
    columns = ", ".join(f"{column} {kind.format(dimensions=settings.dimensions)}" for column, kind in COLUMNS.items())
    made = [f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY (prompt_id))"]
    if settings.dialect == "cassandra":
        made += [
            f"CREATE CUSTOM INDEX IF NOT EXISTS {table}_embedding ON {name} (prompt_embedding) "
            "USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'cosine'}",
            f"CREATE CUSTOM INDEX IF NOT EXISTS {table}_scope ON {name} (scope) USING 'StorageAttachedIndex'",
        ]
    else:
        # Annulus and ScyllaDB: the index has the column that its searches filter by.
        made.append(
            f"CREATE CUSTOM INDEX IF NOT EXISTS {table}_embedding ON {name} (prompt_embedding, scope) "
            "USING 'vector_index' WITH OPTIONS = {'similarity_function': 'COSINE'}"
        )
    custom, using = ("CUSTOM ", " USING 'StorageAttachedIndex'") if settings.dialect == "cassandra" else ("", "")
    made += [f"CREATE {custom}INDEX IF NOT EXISTS {table}_{column} ON {name} ({column}){using}" for column in _FOUND_BY]
    return made
