"""The rows of documents, and the statements that write, read, search and delete them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_annulus import _metadata
from langchain_annulus._connection import Row, Statement, batched
from langchain_annulus._filter import Alternative, Filter, alternatives
from langchain_annulus._metadata import Fields
from langchain_annulus._search import Search, document_of
from langchain_annulus._table import quoted

# Keys that one statement names.
KEYS_AT_ONCE = 100

_DOCUMENT = "id, body, metadata"


class RowStatements:
    """The statements of a store on its table.

    Args:
        table: the full name of the table.
        fields: the fields of the metadata.
        namespace: the namespace, if there is one; otherwise it is empty.
        ttl: seconds that a row lives; 0 is for ever.
    """

    def __init__(self, table: str, fields: Fields, namespace: list[str], ttl: int) -> None:
        self.namespace = namespace
        self._table, self._fields, self._ttl = table, fields, ttl

    def create_index(self, column: str, name: str, kind: str, options: Mapping[str, str]) -> str:
        """The statement that makes an index, which keeps what filters compare with."""
        kept = ", ".join([column, *(quoted(column) for column in self._fields.columns())])
        if self.namespace:
            kept = f"(namespace), {kept}"
        listed = ", ".join(f"{_text(name)}: {_text(value)}" for name, value in options.items())
        return (
            f"CREATE CUSTOM INDEX IF NOT EXISTS {name} ON {self._table} ({kept}) USING '{kind}'"
            + (f" WITH OPTIONS = {{{listed}}}" if listed else "")
        )

    def batches(self, documents: list[Document], size: int) -> list[tuple[list[str], list[list[object]]]]:
        """The texts of documents, and their rows without vectors.

        Of documents with one id the last counts, as writes in flight have no order."""
        last = {document.id: document for document in documents}.values()
        return [
            ([document.page_content for document in some], [self._row(document) for document in some])
            for some in batched(last, size)
        ]

    def _row(self, document: Document) -> list[object]:
        metadata = document.metadata
        fields = self._fields.values(metadata)
        return [*self.namespace, document.id, document.page_content, _metadata.to_text(metadata), *fields]

    def writes(self, rows: list[list[object]], vectors: list[list[float]]) -> list[Statement]:
        columns = ["namespace"] if self.namespace else []
        columns += ["id", "body", "metadata", *map(quoted, self._fields.columns()), "embedding"]
        marks = ", ".join("?" for _ in columns)
        cql = f"INSERT INTO {self._table} ({', '.join(columns)}) VALUES ({marks}) USING TTL ?"
        return [Statement(cql, [*row, vector, self._ttl]) for row, vector in zip(rows, vectors, strict=True)]

    def vectors(self, rows: list[list[object]], vectors: Mapping[object, list[float]]) -> list[list[float]]:
        """The vectors of rows, from those of the ids."""
        return [vectors[row[len(self.namespace)]] for row in rows]

    def reads(self, ids: Sequence[str]) -> list[Statement]:
        cql = f"SELECT {_DOCUMENT} FROM {self._table} WHERE {self._where_namespace()}id IN ?"
        return [Statement(cql, [*self.namespace, some]) for some in batched(dict.fromkeys(ids), KEYS_AT_ONCE)]

    def deletes(self, ids: Sequence[str]) -> list[Statement]:
        cql = f"DELETE FROM {self._table} WHERE {self._where_namespace()}id IN ?"
        return [Statement(cql, [*self.namespace, some]) for some in batched(dict.fromkeys(ids), KEYS_AT_ONCE)]

    def clearing(self) -> Statement:
        if self.namespace:
            return Statement(f"DELETE FROM {self._table} WHERE namespace = ?", self.namespace)
        return Statement(f"TRUNCATE {self._table}")

    def scans(self, ids: list[str] | None, filter: Filter | None) -> list[Statement]:
        """Reads the ids of the documents that satisfy a filter, one may come more than once."""
        if ids is None and not filter:
            raise ValueError("name ids or a filter to delete by; clear() deletes all documents")
        if not filter:
            return []
        return [
            Statement(f"SELECT id FROM {self._table}{where} ALLOW FILTERING", values)
            for where, values in map(self._where, alternatives(filter, self._fields))
        ]

    def searches(self, search: Search, filter: Filter | None) -> list[Statement]:
        wheres = [self._where(alternative) for alternative in alternatives(filter, self._fields)]
        return search.statements(self._table, wheres)

    def _where(self, alternative: Alternative) -> tuple[str, list[Any]]:
        relations = [("namespace = ?", namespace) for namespace in self.namespace] + alternative.relations()
        if not relations:
            return "", []
        return f" WHERE {' AND '.join(text for text, _ in relations)}", [value for _, value in relations]

    def _where_namespace(self) -> str:
        return "namespace = ? AND " if self.namespace else ""


def _text(value: str) -> str:
    """A text as CQL has it."""
    return "'" + value.replace("'", "''") + "'"


def documents_of(
    texts: Iterable[str], metadatas: list[dict[str, Any]] | None, ids: Sequence[str | None] | None
) -> list[Document]:
    """The documents to add, each with an id."""
    listed = list(texts)
    metadatas = [{}] * len(listed) if metadatas is None else metadatas
    ids = [None] * len(listed) if ids is None else ids
    if not len(listed) == len(metadatas) == len(ids):
        raise ValueError(f"{len(listed)} texts have {len(metadatas)} metadatas and {len(ids)} ids")
    return [
        Document(text, id=id or uuid.uuid4().hex, metadata=metadata)
        for text, metadata, id in zip(listed, metadatas, ids, strict=True)
    ]


def embedded(
    text_embeddings: Iterable[tuple[str, list[float]]],
    metadatas: list[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
) -> tuple[list[Document], dict[object, list[float]]]:
    """The documents to add, and the vector of each id: of documents with one id that of the last."""
    pairs = list(text_embeddings)
    documents = documents_of([text for text, _ in pairs], metadatas, ids)
    return documents, {document.id: vector for document, (_, vector) in zip(documents, pairs, strict=True)}


def in_order(ids: Sequence[str], answers: list[list[Row]]) -> list[Document]:
    found = {row[0]: row for rows in answers for row in rows}
    return [document_of(*found[id]) for id in ids if id in found]
