"""Exact search by numpy, which the answers of every store are compared with."""

from collections.abc import Sequence

import numpy as np

from .article import Article
from .embeddings import Vectors
from .stores.store import Query

# Vectors are 32-bit floats: what is nearer by less than this is as near.
ROUNDING = 1e-5


class ExactSearch:
    """All articles with their vectors, in memory."""

    def __init__(self, articles: Sequence[Article], vectors: Vectors) -> None:
        self._place = {article.url: at for at, article in enumerate(articles)}
        self._vectors = vectors
        self._published = np.array([article.publication_date.timestamp() for article in articles])

    def recall(self, query: Query, found: Sequence[str], limit: int) -> float:
        """The share of the true nearest articles that an answer has. Any of several equally near ones is right."""
        distances = self._distances(query)
        admitted = int(np.isfinite(distances).sum())
        wanted = min(limit, admitted)
        if wanted == 0:
            return 1.0
        farthest = np.partition(distances, wanted - 1)[wanted - 1]
        right = {url for url in found if distances[self._place[url]] <= farthest + ROUNDING}
        return min(len(right), wanted) / wanted

    def nearest(self, query: Query, limit: int) -> list[int]:
        """The places of the nearest articles, the best first."""
        distances = self._distances(query)
        order = np.argsort(distances, kind="stable")[:limit]
        return [int(at) for at in order if np.isfinite(distances[at])]

    def _distances(self, query: Query) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        distances = 1 - self._vectors.astype(np.float64) @ query.vector.astype(np.float64)
        if query.published_from is not None:
            distances[self._published < query.published_from.timestamp()] = np.inf
        if query.published_until is not None:
            distances[self._published > query.published_until.timestamp()] = np.inf
        return distances
