"""Qdrant in this process (Qdrant Edge): one shard, with indexes of the date and of the words."""

import importlib.metadata
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ..article import Article, FoundArticle
from ..config import Settings
from ..embeddings import DIMENSIONS, Vectors
from ..footprint import disk_bytes, memory_bytes
from .store import Query, StoreError, StoreSizes
from .waiting import LastInsert

# As Annulus has them by default.
CANDIDATES, RANK_CONSTANT = 100, 60


class QdrantStore:
    """A shard of files in a directory. One process at a time may have it."""

    name: ClassVar[str] = "qdrant"
    title: ClassVar[str] = "Qdrant"
    durability: ClassVar[str] = (
        "In the write-ahead log, a memory map, when an insert returns; the system writes it to the disk later, "
        "or `flush` does."
    )
    index: ClassVar[str] = (
        "HNSW (cosine, defaults), which `optimize` builds; articles that came since are compared one by one. "
        "Words by BM25 of its text index (English stems)."
    )
    has_hybrid: ClassVar[bool] = True

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._shard_directory, self._model_file = directory / "shard", directory / "embedding_model.json"
        self._memory_before, self._last = memory_bytes([os.getpid()]), LastInsert()
        # Not before its memory is measured: the program of the database comes with this module.
        import qdrant_edge

        self._edge = qdrant_edge
        self._shard: Any = None
        if self._shard_directory.exists():
            self._shard = self._call(qdrant_edge.EdgeShard.load, str(self._shard_directory))

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        return cls(directory)

    def version(self) -> str:
        return f"Edge {importlib.metadata.version('qdrant-edge-py')}"

    def create(self) -> None:
        if self._shard is not None:
            return
        edge = self._edge
        vectors = edge.EdgeVectorParams(size=DIMENSIONS, distance=edge.Distance.Cosine)
        directory = str(self._shard_directory)
        self._shard = self._call(edge.EdgeShard.create, directory, edge.EdgeConfig(vectors=vectors))
        words = edge.TextIndexParams(
            tokenizer=edge.TokenizerType.Word,
            lowercase=True,
            stopwords=edge.Language.English,
            stemmer=edge.SnowballParams(edge.SnowballLanguage.English),
            scoring=True,
        )
        self._update(edge.UpdateOperation.create_field_index("publication_date", edge.PayloadSchemaType.Datetime))
        self._update(edge.UpdateOperation.create_field_index("body", words))

    def insert(self, articles: Sequence[Article], vectors: Vectors) -> None:
        points = [
            self._edge.Point(id_of(article), vector, payload_of(article))
            for article, vector in zip(articles, vectors.tolist(), strict=True)
        ]
        self._update(self._edge.UpdateOperation.upsert_points(points))
        self._last.remember(articles, vectors)

    def remove_all(self) -> None:
        self._model_file.unlink(missing_ok=True)
        if self._shard is not None:
            self._shard.close()
            self._shard = None
        shutil.rmtree(self._shard_directory, ignore_errors=True)

    def count(self) -> int:
        return int(self._call(self._opened().count, self._edge.CountRequest(exact=True)))

    def wait_until_searchable(self, count: int, timeout: float) -> None:
        # An edge shard has no thread of its own that builds the graph: the program says when.
        self._call(self._opened().optimize)
        self._last.wait(self, count, timeout)

    def embedding_model(self) -> str | None:
        try:
            return str(json.loads(self._model_file.read_text())["model"])
        except FileNotFoundError:
            return None

    def set_embedding_model(self, model: str) -> None:
        self._call(self._opened().flush)
        self._model_file.write_text(json.dumps({"model": model}))

    def related_articles(self, query: Query, limit: int = 5) -> list[FoundArticle]:
        edge = self._edge
        nearest, dates = edge.Query.Nearest(query.vector.tolist()), self._dates(query)
        if not query.hybrid:
            request = edge.QueryRequest(limit, query=nearest, filter=dates, with_payload=True)
            return [found_in(point, 1 - point.score) for point in self._call(self._opened().query, request)]
        words = edge.TextQuery("body", query.text)
        candidates = max(CANDIDATES, limit)
        request = edge.QueryRequest(
            limit,
            query=edge.Fusion.Rrf(RANK_CONSTANT),
            prefetches=[edge.Prefetch(candidates, query=ranking, filter=dates) for ranking in (nearest, words)],
            with_payload=True,
            # The score of an answer is that of its ranks, so that the distance is computed here.
            with_vector=True,
        )
        return [found_in(point, distance(query, point)) for point in self._call(self._opened().query, request)]

    def sizes(self) -> StoreSizes:
        memory = memory_bytes([os.getpid()]) - self._memory_before
        return StoreSizes(disk_bytes(self._shard_directory), memory, "what this process grew by, its client included")

    def close(self) -> None:
        if self._shard is not None:
            self._shard.close()
            self._shard = None

    def _dates(self, query: Query) -> Any:
        if query.published_from is None and query.published_until is None:
            return None
        first, last = query.published_from, query.published_until
        dates = self._edge.RangeDateTime(
            gte=first.isoformat() if first is not None else None, lte=last.isoformat() if last is not None else None
        )
        return self._edge.Filter(must=[self._edge.FieldCondition("publication_date", range=dates)])

    def _opened(self) -> Any:
        if self._shard is None:
            load = "python -m annulus_rag_bench load --store qdrant"
            raise StoreError(f"Qdrant has no articles yet. Load them with: {load}")
        return self._shard

    def _update(self, operation: Any) -> None:
        self._call(self._opened().update, operation)

    def _call(self, method: Any, *values: Any) -> Any:
        try:
            return method(*values)
        except Exception as error:
            # The library has one error for everything, a plain Exception.
            raise StoreError(f"Qdrant refuses: {str(error)[:500]}") from error


def id_of(article: Article) -> str:
    """The id of a point, which is a number or a UUID: one made of the address."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, article.url))


def payload_of(article: Article) -> dict[str, str]:
    return {
        "url": article.url,
        "title": article.title,
        "body": article.body,
        "publication_date": article.publication_date.isoformat(),
    }


def distance(query: Query, point: Any) -> float:
    vector = point.vector[""] if isinstance(point.vector, dict) else point.vector
    return 1 - float(np.dot(np.asarray(vector, np.float32), query.vector))


def found_in(point: Any, distance: float) -> FoundArticle:
    payload = point.payload
    published = datetime.fromisoformat(payload["publication_date"])
    return FoundArticle(payload["url"], payload["title"], payload["body"], published, distance)
