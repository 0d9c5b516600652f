"""The vector store."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from langchain_annulus import _metadata
from langchain_annulus._connection import Connection, Row, Statement, batched
from langchain_annulus._filter import Alternative, Filter, alternatives
from langchain_annulus._metadata import Fields
from langchain_annulus._table import Definition, Table, quoted

if TYPE_CHECKING:
    from cassandra.cluster import Session

# Keys that one statement names.
_KEYS_AT_ONCE = 100

_DOCUMENT = "id, body, metadata"


class _Hit(NamedTuple):
    """A row that a search found."""

    document: Document
    score: float
    embedding: list[float]


class AnnulusVectorStore(VectorStore):
    """A vector store in one table with one index.

    The table and the index are made at the first use. The keyspace must be there. All that was added
    before a search is found by it, without a wait.

    A filter is a mapping: `{"colour": "red"}`, `{"year": {"$gte": 1990, "$lt": 2000}}`,
    `{"$or": [{"tags": {"$contains": "new"}}, {"author": {"$in": ["Ann", "Bo"]}}]}`. Several entries
    must hold together. A field that a document doesn't have satisfies nothing, `$ne` and `$nin`
    included. Filters are exact, and a search with one has `k` documents if so many satisfy it.

    | fields | operators |
    | --- | --- |
    | declared in `metadata_columns` | `$eq` `$ne` `$gt` `$gte` `$lt` `$lte` `$in` `$nin`; of a list `$contains` |
    | any other with a str, int, float, bool, or a list of these | `$eq` `$in`; of a list `$contains` |
    | `$and` `$or` | lists of filters |

    Args:
        embedding: what makes vectors of texts.
        session: a session of `cassandra-driver` or `scylla-driver`, or a connection string such as
            `cql://127.0.0.1:9042` or `cql://role:password@host1,host2?ca=ca.pem`.
        keyspace: the keyspace.
        table: the table.
        metadata_columns: fields of the metadata with columns of their own, and their types: `str`,
            `int`, `float`, `bool`, `datetime`, `list[str]` or `list[int]`. Such a column is what a
            filter needs for ranges; `datetime` compares by milliseconds, and is UTC where it names no
            zone. A value of another type is refused.
        filterable: which other fields filters can ask for; all, if it is None. Naming them saves
            memory of the index where metadata is large.
        namespace: documents of other namespaces are neither seen nor touched. A table has namespaces
            or none: it is made by the first store that uses it. Each namespace is a partition, and
            the index is local to it.
        similarity: `cosine`, `euclidean` or `dot_product`.
        index_options: more options of the index, such as `{"quantization": "i8"}`.
        dimensions: the length of a vector; by default that of a first text.
        ttl: seconds that a document lives; 0 is for ever.
    """

    def __init__(
        self,
        embedding: Embeddings,
        *,
        session: Session | str,
        keyspace: str,
        table: str,
        metadata_columns: Mapping[str, Any] | None = None,
        filterable: Collection[str] | None = None,
        namespace: str | None = None,
        similarity: Literal["cosine", "euclidean", "dot_product"] = "cosine",
        index_options: Mapping[str, str] | None = None,
        dimensions: int | None = None,
        ttl: int = 0,
    ) -> None:
        self._embedding = embedding
        self._connection = Connection(session)
        self._fields = Fields(metadata_columns or {}, filterable)
        self._namespace = [] if namespace is None else [namespace]
        self._similarity = similarity
        self._index_options = {"similarity_function": similarity} | dict(index_options or {})
        self._dimensions = dimensions
        self._ttl = ttl
        self._index = quoted(f"{table}_embedding")
        self._table = Table(self._connection, keyspace, table, self._definition)

    @property
    def embeddings(self) -> Embeddings:
        """What makes vectors of texts."""
        return self._embedding

    def for_namespace(self, namespace: str) -> AnnulusVectorStore:
        """A store on another namespace of this table."""
        if not self._namespace:
            raise ValueError("this store has no namespaces: give it one, and a table of its own")
        other = copy.copy(self)
        other._namespace = [namespace]
        return other

    # Adding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int = 256,
        **kwargs: Any,
    ) -> list[str]:
        """Adds texts. A text with the id of a document replaces it.

        Args:
            texts: the texts.
            metadatas: the metadata of each.
            ids: the id of each; where it is None, one is made.
            batch_size: texts that are embedded and written at once.

        Returns:
            The ids.
        """
        _refuse(kwargs)
        documents = _documents(texts, metadatas, ids)
        batches = self._batches(documents, batch_size)
        self._table.set_up()
        for bodies, rows in batches:
            self._connection.execute(self._writes(rows, self._embedding.embed_documents(bodies)))
        return [document.id for document in documents if document.id is not None]

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int = 256,
        **kwargs: Any,
    ) -> list[str]:
        """Adds texts, as `add_texts` does."""
        _refuse(kwargs)
        documents = _documents(texts, metadatas, ids)
        batches = self._batches(documents, batch_size)
        await self._table.aset_up()
        for bodies, rows in batches:
            await self._connection.aexecute(self._writes(rows, await self._embedding.aembed_documents(bodies)))
        return [document.id for document in documents if document.id is not None]

    def add_embeddings(
        self,
        text_embeddings: Iterable[tuple[str, list[float]]],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int = 256,
        **kwargs: Any,
    ) -> list[str]:
        """Adds texts whose vectors are there already. Apart from that it does what `add_texts` does.

        Args:
            text_embeddings: each text with its vector.
            metadatas: the metadata of each.
            ids: the id of each; where it is None, one is made.
            batch_size: texts that are written at once.

        Returns:
            The ids.
        """
        _refuse(kwargs)
        documents, vectors = _embedded(text_embeddings, metadatas, ids)
        batches = self._batches(documents, batch_size)
        self._table.set_up()
        for _, rows in batches:
            self._connection.execute(self._writes(rows, self._vectors(rows, vectors)))
        return [document.id for document in documents if document.id is not None]

    async def aadd_embeddings(
        self,
        text_embeddings: Iterable[tuple[str, list[float]]],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int = 256,
        **kwargs: Any,
    ) -> list[str]:
        """Adds texts whose vectors are there already, as `add_embeddings` does."""
        _refuse(kwargs)
        documents, vectors = _embedded(text_embeddings, metadatas, ids)
        batches = self._batches(documents, batch_size)
        await self._table.aset_up()
        for _, rows in batches:
            await self._connection.aexecute(self._writes(rows, self._vectors(rows, vectors)))
        return [document.id for document in documents if document.id is not None]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> AnnulusVectorStore:
        """Makes a store, of the arguments that `AnnulusVectorStore` has, and adds texts."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> AnnulusVectorStore:
        """Makes a store, of the arguments that `AnnulusVectorStore` has, and adds texts."""
        store = cls(embedding, **kwargs)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    # Reading and deleting

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Returns documents in the order of `ids`, without those that aren't there."""
        self._table.set_up()
        return _in_order(ids, self._connection.execute(self._reads(ids)))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Returns documents in the order of `ids`, without those that aren't there."""
        await self._table.aset_up()
        return _in_order(ids, await self._connection.aexecute(self._reads(ids)))

    def delete(self, ids: list[str] | None = None, *, filter: Filter | None = None, **kwargs: Any) -> bool:
        """Deletes documents by their ids, or all that satisfy a filter. `clear` deletes all."""
        _refuse(kwargs)
        scans = self._scans(ids, filter)
        self._table.set_up()
        self._connection.execute(self._deletes(ids or []))
        for scan in scans:
            for rows in batched(self._connection.rows(scan), _KEYS_AT_ONCE):
                self._connection.execute(self._deletes([id for (id,) in rows]))
        return True

    async def adelete(self, ids: list[str] | None = None, *, filter: Filter | None = None, **kwargs: Any) -> bool:
        """Deletes documents by their ids, or all that satisfy a filter. `aclear` deletes all."""
        _refuse(kwargs)
        scans = self._scans(ids, filter)
        await self._table.aset_up()
        await self._connection.aexecute(self._deletes(ids or []))
        for rows in await self._connection.aexecute(scans):
            await self._connection.aexecute(self._deletes([id for (id,) in rows]))
        return True

    def clear(self) -> None:
        """Deletes all documents, of the namespace if there is one."""
        self._table.set_up()
        self._connection.execute([self._clearing()])

    async def aclear(self) -> None:
        """Deletes all documents, of the namespace if there is one."""
        await self._table.aset_up()
        await self._connection.aexecute([self._clearing()])

    # Searching

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` documents nearest to a text, of those that satisfy `filter`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` documents nearest to a text, of those that satisfy `filter`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` documents nearest to a vector, of those that satisfy `filter`."""
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, **kwargs)]

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` documents nearest to a vector, of those that satisfy `filter`."""
        return [document for document, _ in await self.asimilarity_search_with_score_by_vector(embedding, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Returns the `k` documents nearest to a text, of those that satisfy `filter`, with scores.

        A score is the database's own: 1 for equal vectors, and down to 0 as they differ more. Of
        `dot_product` that holds for vectors of length 1."""
        _refuse(kwargs)
        return self.similarity_search_with_score_by_vector(self._embedding.embed_query(query), k, filter=filter)

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Returns documents with scores, as `similarity_search_with_score` does."""
        _refuse(kwargs)
        vector = await self._embedding.aembed_query(query)
        return await self.asimilarity_search_with_score_by_vector(vector, k, filter=filter)

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """Returns the `k` documents nearest to a vector with scores."""
        return [(hit.document, hit.score) for hit in self._search(embedding, k, filter)]

    async def asimilarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """Returns the `k` documents nearest to a vector with scores."""
        return [(hit.document, hit.score) for hit in await self._asearch(embedding, k, filter)]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Returns `k` of the `fetch_k` documents nearest to a text, near to it and far from one another.

        `lambda_mult` is 1 for near alone, and 0 for far alone."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Returns documents as `max_marginal_relevance_search` does."""
        vector = await self._embedding.aembed_query(query)
        return await self.amax_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Returns documents as `max_marginal_relevance_search` does."""
        _refuse(kwargs)
        return _diverse(self._search(embedding, max(k, fetch_k), filter, True), embedding, k, lambda_mult)

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Returns documents as `max_marginal_relevance_search` does."""
        _refuse(kwargs)
        return _diverse(await self._asearch(embedding, max(k, fetch_k), filter, True), embedding, k, lambda_mult)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float

    # Statements

    def _definition(self) -> Definition:
        dimensions = self._dimensions or len(self._embedding.embed_query("a text"))
        columns = {"id": "text", "body": "text", "metadata": "text", "embedding": f"vector<float, {dimensions}>"}
        columns |= self._fields.columns()
        kept = ", ".join(["embedding", *(quoted(column) for column in self._fields.columns())])
        key = "id"
        if self._namespace:
            columns, kept, key = {"namespace": "text"} | columns, f"(namespace), {kept}", "(namespace), id"
        options = ", ".join(f"{_text(name)}: {_text(value)}" for name, value in self._index_options.items())
        index = (
            f"CREATE CUSTOM INDEX IF NOT EXISTS {self._index} ON {self._table.full_name} ({kept}) "
            f"USING 'vector_index' WITH OPTIONS = {{{options}}}"
        )
        return Definition(columns, key, index)

    def _batches(self, documents: list[Document], size: int) -> list[tuple[list[str], list[list[object]]]]:
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
        return [*self._namespace, document.id, document.page_content, _metadata.to_text(metadata), *fields]

    def _writes(self, rows: list[list[object]], vectors: list[list[float]]) -> list[Statement]:
        columns = ["namespace"] if self._namespace else []
        columns += ["id", "body", "metadata", *map(quoted, self._fields.columns()), "embedding"]
        marks = ", ".join("?" for _ in columns)
        cql = f"INSERT INTO {self._table.full_name} ({', '.join(columns)}) VALUES ({marks}) USING TTL ?"
        return [Statement(cql, [*row, vector, self._ttl]) for row, vector in zip(rows, vectors, strict=True)]

    def _vectors(self, rows: list[list[object]], vectors: Mapping[object, list[float]]) -> list[list[float]]:
        """The vectors of rows, from those of the ids."""
        return [vectors[row[len(self._namespace)]] for row in rows]

    def _reads(self, ids: Sequence[str]) -> list[Statement]:
        cql = f"SELECT {_DOCUMENT} FROM {self._table.full_name} WHERE {self._where_namespace()}id IN ?"
        return [Statement(cql, [*self._namespace, some]) for some in batched(dict.fromkeys(ids), _KEYS_AT_ONCE)]

    def _deletes(self, ids: Sequence[str]) -> list[Statement]:
        cql = f"DELETE FROM {self._table.full_name} WHERE {self._where_namespace()}id IN ?"
        return [Statement(cql, [*self._namespace, some]) for some in batched(dict.fromkeys(ids), _KEYS_AT_ONCE)]

    def _clearing(self) -> Statement:
        if self._namespace:
            return Statement(f"DELETE FROM {self._table.full_name} WHERE namespace = ?", self._namespace)
        return Statement(f"TRUNCATE {self._table.full_name}")

    def _scans(self, ids: list[str] | None, filter: Filter | None) -> list[Statement]:
        """Reads the ids of the documents that satisfy a filter, one may come more than once."""
        if ids is None and not filter:
            raise ValueError("name ids or a filter to delete by; clear() deletes all documents")
        if not filter:
            return []
        return [
            Statement(f"SELECT id FROM {self._table.full_name}{where} ALLOW FILTERING", values)
            for where, values in map(self._where, alternatives(filter, self._fields))
        ]

    def _searches(self, vector: list[float], k: int, filter: Filter | None, with_vectors: bool) -> list[Statement]:
        """Searches of which the nearest rows together are those of all."""
        if k < 1:
            return []
        columns = f"{_DOCUMENT}, similarity_{self._similarity}(embedding, ?) AS score"
        if with_vectors:
            columns += ", embedding"
        return [
            Statement(
                f"SELECT {columns} FROM {self._table.full_name}{where} ORDER BY embedding ANN OF ? LIMIT ?",
                [vector, *values, vector, k],
            )
            for where, values in map(self._where, alternatives(filter, self._fields))
        ]

    def _where(self, alternative: Alternative) -> tuple[str, list[Any]]:
        relations = [("namespace = ?", namespace) for namespace in self._namespace] + alternative.relations()
        if not relations:
            return "", []
        return f" WHERE {' AND '.join(text for text, _ in relations)}", [value for _, value in relations]

    def _where_namespace(self) -> str:
        return "namespace = ? AND " if self._namespace else ""

    def _search(self, vector: list[float], k: int, filter: Filter | None, with_vectors: bool = False) -> list[_Hit]:
        searches = self._searches(vector, k, filter, with_vectors)
        self._table.set_up()
        return _nearest(self._connection.execute(searches), k)

    async def _asearch(
        self, vector: list[float], k: int, filter: Filter | None, with_vectors: bool = False
    ) -> list[_Hit]:
        searches = self._searches(vector, k, filter, with_vectors)
        await self._table.aset_up()
        return _nearest(await self._connection.aexecute(searches), k)


def _text(value: str) -> str:
    """A text as CQL has it."""
    return "'" + value.replace("'", "''") + "'"


def _refuse(arguments: Mapping[str, Any]) -> None:
    """Refuses arguments that nothing would take: one misspelt `filter` would find other documents."""
    if arguments:
        raise TypeError(f"unexpected arguments: {', '.join(arguments)}")


def _documents(
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


def _embedded(
    text_embeddings: Iterable[tuple[str, list[float]]],
    metadatas: list[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
) -> tuple[list[Document], dict[object, list[float]]]:
    """The documents to add, and the vector of each id: of documents with one id that of the last."""
    pairs = list(text_embeddings)
    documents = _documents([text for text, _ in pairs], metadatas, ids)
    return documents, {document.id: vector for document, (_, vector) in zip(documents, pairs, strict=True)}


def _document(id: str, body: str | None, metadata: str | None) -> Document:
    return Document(body or "", id=id, metadata=_metadata.from_text(metadata or "{}"))


def _in_order(ids: Sequence[str], answers: list[list[Row]]) -> list[Document]:
    found = {row[0]: row for rows in answers for row in rows}
    return [_document(*found[id]) for id in ids if id in found]


def _nearest(answers: list[list[Row]], k: int) -> list[_Hit]:
    """The nearest rows of all answers, each once, the nearest first."""
    rows = {row[0]: row for answer in answers for row in answer}.values()
    ordered = sorted(rows, key=lambda row: -float(row[3])) if len(answers) > 1 else list(rows)
    return [_Hit(_document(*row[:3]), row[3], row[4] if len(row) > 4 else []) for row in ordered[:k]]


def _diverse(hits: list[_Hit], vector: list[float], k: int, lambda_mult: float) -> list[Document]:
    embeddings = [hit.embedding for hit in hits]
    chosen = maximal_marginal_relevance(numpy.array(vector), embeddings, lambda_mult, k) if hits else []
    return [hits[number].document for number in chosen]
