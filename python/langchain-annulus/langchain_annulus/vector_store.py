"""The vector store."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_annulus._connection import Connection, batched
from langchain_annulus._filter import Filter
from langchain_annulus._metadata import Fields
from langchain_annulus._rows import KEYS_AT_ONCE, RowStatements, documents_of, embedded, in_order
from langchain_annulus._search import MODES, Fusion, Hit, Search, SearchMode
from langchain_annulus._table import Definition, Table, TextIndex, quoted
from langchain_annulus.retriever import AnnulusRetriever

if TYPE_CHECKING:
    from cassandra.cluster import Session


class _Options(NamedTuple):
    """The options of a call besides its text; None is the store's own."""

    filter: Filter | None = None
    search_mode: SearchMode | None = None
    query_language: bool | None = None
    scores_key: str | None = None


class AnnulusVectorStore(VectorStore):
    """A vector store in one table with an index of vectors, and on request one of words.

    The table and its indexes are made at the first use. The keyspace must be there. All that was added
    before a search is found by it, without a wait.

    | `search_mode` | what a search for a text finds | scores |
    | --- | --- | --- |
    | `vector` | the documents nearest to its vector | 1 for equal vectors, and down to 0 |
    | `text` | those that match its words best; it needs no embedding | BM25, from 0 without a bound |
    | `hybrid` | the best of both | the sum of `weight / (rank_constant + rank)` of both |

    Each search takes `search_mode=`, too, for itself, of a store that has a full-text index. Relevance
    scores, which `score_threshold` compares with, are from 0 to 1: that of a vector is its score, that
    of words `score / (score + 1)`, and that of both a part of the score that the first document of both
    would have. Searches by a vector alone are of the mode `vector` in every store.

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
        search_mode: `vector`, `text` or `hybrid`.
        text_index: whether a new table gets a full-text index; those modes that search for words need
            one, and get it unsaid. A table that was made without it is refused, in words that name the
            statement which makes the index.
        analyzer: what makes words of texts: `standard`, `simple`, `whitespace`, `cjk`, or the name of a
            language, such as `english`. By default a new index is `standard`, and one that is there
            is taken as it is.
        text_index_options: more options of the full-text index, such as `{"positions": "false"}`.
        query_language: whether texts to search for are in the language of text queries (`AND`, `NOT`,
            `"a phrase"`, `wor*`); otherwise their words are taken as they are.
        candidates: the documents that each search of a hybrid one is asked for, `k` at least; by
            default 100. If a filter has alternatives, 1,000 at most.
        rank_constant: the constant of a hybrid score: the larger, the less do the first ranks stand out.
        weights: the weights of a hybrid score, that of vectors and that of words.
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
        search_mode: SearchMode = "vector",
        text_index: bool = False,
        analyzer: str | None = None,
        text_index_options: Mapping[str, str] | None = None,
        query_language: bool = False,
        candidates: int | None = None,
        rank_constant: int = 60,
        weights: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        self._embedding = embedding
        self._connection = Connection(session)
        self._fields = Fields(metadata_columns or {}, filterable)
        self._similarity = similarity
        self._index_options = {"similarity_function": similarity} | dict(index_options or {})
        self._dimensions = dimensions
        self._ttl = ttl
        self._has_text_index = text_index or search_mode != "vector"
        if not self._has_text_index and (analyzer is not None or text_index_options):
            raise ValueError("analyzer= and text_index_options= are of the full-text index: give text_index=True, too")
        self._analyzer = analyzer
        self._text_index_options = ({} if analyzer is None else {"analyzer": analyzer}) | dict(text_index_options or {})
        self._search_mode = self._mode(search_mode)
        self._query_language = query_language
        self._fusion = Fusion(candidates, rank_constant, weights)
        self._index, self._text_index = quoted(f"{table}_embedding"), quoted(f"{table}_body")
        self._table = Table(self._connection, keyspace, table, self._definition)
        self._rows = RowStatements(self._table.full_name, self._fields, [] if namespace is None else [namespace], ttl)

    @property
    def embeddings(self) -> Embeddings:
        """What makes vectors of texts."""
        return self._embedding

    def for_namespace(self, namespace: str) -> AnnulusVectorStore:
        """A store on another namespace of this table."""
        if not self._rows.namespace:
            raise ValueError("this store has no namespaces: give it one, and a table of its own")
        other = copy.copy(self)
        other._rows = RowStatements(self._table.full_name, self._fields, [namespace], self._ttl)
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
        documents = documents_of(texts, metadatas, ids)
        batches = self._rows.batches(documents, batch_size)
        self._table.set_up()
        for bodies, rows in batches:
            self._connection.execute(self._rows.writes(rows, self._embedding.embed_documents(bodies)))
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
        documents = documents_of(texts, metadatas, ids)
        batches = self._rows.batches(documents, batch_size)
        await self._table.aset_up()
        for bodies, rows in batches:
            await self._connection.aexecute(self._rows.writes(rows, await self._embedding.aembed_documents(bodies)))
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
        documents, vectors = embedded(text_embeddings, metadatas, ids)
        batches = self._rows.batches(documents, batch_size)
        self._table.set_up()
        for _, rows in batches:
            self._connection.execute(self._rows.writes(rows, self._rows.vectors(rows, vectors)))
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
        documents, vectors = embedded(text_embeddings, metadatas, ids)
        batches = self._rows.batches(documents, batch_size)
        await self._table.aset_up()
        for _, rows in batches:
            await self._connection.aexecute(self._rows.writes(rows, self._rows.vectors(rows, vectors)))
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
        return in_order(ids, self._connection.execute(self._rows.reads(ids)))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Returns documents in the order of `ids`, without those that aren't there."""
        await self._table.aset_up()
        return in_order(ids, await self._connection.aexecute(self._rows.reads(ids)))

    def delete(self, ids: list[str] | None = None, *, filter: Filter | None = None, **kwargs: Any) -> bool:
        """Deletes documents by their ids, or all that satisfy a filter. `clear` deletes all."""
        _refuse(kwargs)
        scans = self._rows.scans(ids, filter)
        self._table.set_up()
        self._connection.execute(self._rows.deletes(ids or []))
        for scan in scans:
            for rows in batched(self._connection.rows(scan), KEYS_AT_ONCE):
                self._connection.execute(self._rows.deletes([id for (id,) in rows]))
        return True

    async def adelete(self, ids: list[str] | None = None, *, filter: Filter | None = None, **kwargs: Any) -> bool:
        """Deletes documents by their ids, or all that satisfy a filter. `aclear` deletes all."""
        _refuse(kwargs)
        scans = self._rows.scans(ids, filter)
        await self._table.aset_up()
        await self._connection.aexecute(self._rows.deletes(ids or []))
        for rows in await self._connection.aexecute(scans):
            await self._connection.aexecute(self._rows.deletes([id for (id,) in rows]))
        return True

    def clear(self) -> None:
        """Deletes all documents, of the namespace if there is one."""
        self._table.set_up()
        self._connection.execute([self._rows.clearing()])

    async def aclear(self) -> None:
        """Deletes all documents, of the namespace if there is one."""
        await self._table.aset_up()
        await self._connection.aexecute([self._rows.clearing()])

    # Searching

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` best documents for a text, as `similarity_search_with_score` does."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` best documents for a text, as `similarity_search_with_score` does."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` documents nearest to a vector, of those that satisfy `filter`."""
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, **kwargs)]

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Returns the `k` documents nearest to a vector, of those that satisfy `filter`."""
        return [document for document, _ in await self.asimilarity_search_with_score_by_vector(embedding, k, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        search_mode: SearchMode | None = None,
        query_language: bool | None = None,
        scores_key: str | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Returns the `k` best documents for a text, of those that satisfy `filter`, with scores.

        A score is the database's own. By vectors it is 1 for equal ones, and down to 0 as they differ
        more; of `dot_product` that holds for vectors of length 1. By words it is BM25.

        Args:
            query: the text.
            k: the most documents to return.
            filter: what their metadata must satisfy.
            search_mode: `vector`, `text` or `hybrid`; by default that of the store.
            query_language: whether the text is in the language of text queries; by default as the
                store has it.
            scores_key: the entry of the metadata that gets all that the search knows of a document, as
                `AnnulusRetriever` describes it; by default none does.
        """
        _refuse(kwargs)
        options = _Options(filter, search_mode, query_language, scores_key)
        _, hits = self._found(query, k, options)
        return [(hit.document, hit.score) for hit in hits]

    async def asimilarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        search_mode: SearchMode | None = None,
        query_language: bool | None = None,
        scores_key: str | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Returns documents with scores, as `similarity_search_with_score` does."""
        _refuse(kwargs)
        options = _Options(filter, search_mode, query_language, scores_key)
        _, hits = await self._afound(query, k, options)
        return [(hit.document, hit.score) for hit in hits]

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """Returns the `k` documents nearest to a vector with scores."""
        return [(hit.document, hit.score) for hit in self._hits(self._nearest(embedding, k), filter)]

    async def asimilarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """Returns the `k` documents nearest to a vector with scores."""
        return [(hit.document, hit.score) for hit in await self._ahits(self._nearest(embedding, k), filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        search_mode: SearchMode | None = None,
        query_language: bool | None = None,
        scores_key: str | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Returns `k` of the `fetch_k` best documents for a text, good ones that are far from one another.

        By vectors, good is near to the text; by words, and by both, it is the score as a part of the best
        document's. How far documents are from one another, their vectors say.

        Args:
            query: the text.
            k: the most documents to return.
            fetch_k: the documents of which they are chosen.
            lambda_mult: 1 for good alone, and 0 for far alone.
            filter: as in `similarity_search_with_score`.
            search_mode: as in `similarity_search_with_score`.
            query_language: as in `similarity_search_with_score`.
            scores_key: as in `similarity_search_with_score`.
        """
        _refuse(kwargs)
        options = _Options(filter, search_mode, query_language, scores_key)
        search, hits = self._found(query, max(k, fetch_k), options, True)
        return [hit.document for hit in search.diverse(hits, k, lambda_mult)]

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        search_mode: SearchMode | None = None,
        query_language: bool | None = None,
        scores_key: str | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Returns documents as `max_marginal_relevance_search` does."""
        _refuse(kwargs)
        options = _Options(filter, search_mode, query_language, scores_key)
        search, hits = await self._afound(query, max(k, fetch_k), options, True)
        return [hit.document for hit in search.diverse(hits, k, lambda_mult)]

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
        """Returns `k` of the `fetch_k` documents nearest to a vector that are far from one another."""
        _refuse(kwargs)
        search = self._nearest(embedding, max(k, fetch_k), True)
        return [hit.document for hit in search.diverse(self._hits(search, filter), k, lambda_mult)]

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
        """Returns documents as `max_marginal_relevance_search_by_vector` does."""
        _refuse(kwargs)
        search = self._nearest(embedding, max(k, fetch_k), True)
        return [hit.document for hit in search.diverse(await self._ahits(search, filter), k, lambda_mult)]

    def as_scored_retriever(self, *, scores_key: str = "scores", **kwargs: Any) -> AnnulusRetriever:
        """Returns a retriever whose documents show their scores, as `AnnulusRetriever` describes.

        Args:
            scores_key: the entry of the metadata that has them.
            **kwargs: `search_type` and `search_kwargs`, as `as_retriever` takes them.
        """
        tags = [*(kwargs.pop("tags", None) or []), *self._get_retriever_tags()]
        return AnnulusRetriever(vectorstore=self, scores_key=scores_key, tags=tags, **kwargs)

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        search, hits = self._found(query, k, _options(kwargs))
        return [(hit.document, search.relevance(hit.score)) for hit in hits]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        search, hits = await self._afound(query, k, _options(kwargs))
        return [(hit.document, search.relevance(hit.score)) for hit in hits]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        text = None if self._search_mode == "vector" else ""
        return Search(1, None if self._search_mode == "text" else [], text, fusion=self._fusion).relevance

    def _mode(self, mode: SearchMode | None) -> SearchMode:
        """The mode of a search that is asked for this one."""
        if mode is None:
            return self._search_mode
        if mode not in MODES:
            raise ValueError(f"search_mode is {', '.join(MODES[:-1])} or {MODES[-1]}, unlike {mode!r}")
        if mode != "vector" and not self._has_text_index:
            raise ValueError(
                f"search_mode={mode!r} needs a full-text index, which this store has none of: make the store with "
                "text_index=True, or with that search_mode"
            )
        return mode

    def _nearest(self, vector: list[float], k: int, with_vectors: bool = False) -> Search:
        """The search for what is nearest to a vector."""
        return Search(k, vector, with_vectors=with_vectors, similarity=self._similarity)

    def _searched(
        self, query: str, vector: list[float] | None, k: int, options: _Options, mode: SearchMode, with_vectors: bool
    ) -> Search:
        """The search for a text, whose vector this is."""
        uses_language = self._query_language if options.query_language is None else options.query_language
        return Search(
            k,
            vector,
            None if mode == "vector" else query,
            uses_language=uses_language,
            with_vectors=with_vectors,
            similarity=self._similarity,
            fusion=self._fusion,
        )

    def _found(self, query: str, k: int, options: _Options, with_vectors: bool = False) -> tuple[Search, list[Hit]]:
        """The search for a text, and what it finds."""
        mode = self._mode(options.search_mode)
        vector = None if mode == "text" else self._embedding.embed_query(query)
        search = self._searched(query, vector, k, options, mode, with_vectors)
        return search, _scored(search, self._hits(search, options.filter), options)

    async def _afound(
        self, query: str, k: int, options: _Options, with_vectors: bool = False
    ) -> tuple[Search, list[Hit]]:
        """The search for a text, and what it finds."""
        mode = self._mode(options.search_mode)
        vector = None if mode == "text" else await self._embedding.aembed_query(query)
        search = self._searched(query, vector, k, options, mode, with_vectors)
        return search, _scored(search, await self._ahits(search, options.filter), options)

    def _hits(self, search: Search, filter: Filter | None) -> list[Hit]:
        statements = self._rows.searches(search, filter)
        self._table.set_up()
        return search.hits(self._connection.execute(statements))

    async def _ahits(self, search: Search, filter: Filter | None) -> list[Hit]:
        statements = self._rows.searches(search, filter)
        await self._table.aset_up()
        return search.hits(await self._connection.aexecute(statements))

    # Statements

    def _definition(self) -> Definition:
        dimensions = self._dimensions or len(self._embedding.embed_query("a text"))
        columns = {"id": "text", "body": "text", "metadata": "text", "embedding": f"vector<float, {dimensions}>"}
        columns |= self._fields.columns()
        key = "id"
        if self._rows.namespace:
            columns, key = {"namespace": "text"} | columns, "(namespace), id"
        index = self._rows.create_index("embedding", self._index, "vector_index", self._index_options)
        if not self._has_text_index:
            return Definition(columns, key, index)
        of_text = self._rows.create_index("body", self._text_index, "fulltext_index", self._text_index_options)
        return Definition(columns, key, index, TextIndex("body", self._analyzer, of_text))

def _refuse(arguments: Mapping[str, Any]) -> None:
    """Refuses arguments that nothing would take: one misspelt `filter` would find other documents."""
    if arguments:
        raise TypeError(f"unexpected arguments: {', '.join(arguments)}")


def _options(arguments: Mapping[str, Any]) -> _Options:
    """The options of a call that has no names for them."""
    _refuse({name: value for name, value in arguments.items() if name not in _Options._fields})
    return _Options(**arguments)


def _scored(search: Search, hits: list[Hit], options: _Options) -> list[Hit]:
    """The rows, whose documents say what the search knows of them if that is asked for."""
    if options.scores_key is not None:
        for rank, hit in enumerate(hits, start=1):
            hit.document.metadata[options.scores_key] = {
                "rank": rank,
                "score": hit.score,
                "relevance": search.relevance(hit.score),
                "vector_score": hit.vector_score,
                "vector_rank": hit.vector_rank,
                "text_score": hit.text_score,
                "text_rank": hit.text_rank,
            }
    return hits
