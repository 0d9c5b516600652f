"""Searches as statements, and their answers as one order of rows.

A search looks for a vector, for words, or for both; of both it is hybrid, and the database makes one
order of the ranks of the two. A filter with alternatives is a search of each, whose rows are put in
order here: by the score of the one search, or by ranks that are counted over all alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy
from langchain_core.documents import Document
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from langchain_annulus import _metadata
from langchain_annulus._connection import Row, Statement

SearchMode = Literal["vector", "text", "hybrid"]
MODES: Sequence[SearchMode] = ("vector", "text", "hybrid")

_DOCUMENT = "id, body, metadata"
# What a hit knows besides its document and its score.
_KNOWN = ("vector_score", "vector_rank", "text_score", "text_rank", "vector")

# The most rows that one statement gives.
_MOST_ROWS = 1_000
# What each search of a hybrid one is asked for, where that is more than the answer has.
_CANDIDATES = 100


class Hit(NamedTuple):
    """A row that a search found, and what the search knows of it: None what it doesn't."""

    document: Document
    score: float
    vector_score: float | None = None
    vector_rank: int | None = None
    text_score: float | None = None
    text_rank: int | None = None
    vector: Sequence[float] = ()


@dataclass(frozen=True)
class Fusion:
    """How two orders become one: a row has the sum of weight / (rank_constant + rank) of both.

    The first weight is that of vectors, the second that of words."""

    candidates: int | None = None
    rank_constant: int = 60
    weights: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        weights = self.weights
        if self.candidates is not None and not 1 <= self.candidates <= 10_000:
            raise ValueError(f"candidates are from 1 to 10,000, unlike {self.candidates}")
        if not 1 <= self.rank_constant <= 10_000:
            raise ValueError(f"rank_constant is from 1 to 10,000, unlike {self.rank_constant}")
        if len(weights) != 2 or not all(0 <= weight <= 1_000 for weight in weights) or not any(weights):
            raise ValueError(
                "weights are two numbers from 0 to 1,000, that of vectors and that of words, of which one may be 0, "
                f"unlike {weights!r}"
            )

    @property
    def best(self) -> float:
        """The score of a row that is the first of both searches."""
        return self.score(1, 1)

    def score(self, *ranks: int | None) -> float:
        """The score of a row with these ranks."""
        pairs = zip(self.weights, ranks, strict=True)
        return sum(weight / (self.rank_constant + rank) for weight, rank in pairs if rank is not None)

    def requested(self, k: int) -> int:
        """The rows that each search is asked for, where the answer has `k`."""
        return max(k, self.candidates or _CANDIDATES)

    def options(self, k: int) -> str:
        """The clause of a SELECT that says this."""
        weights = ", ".join(str(float(weight)) for weight in self.weights)
        return (
            f" WITH hybrid_options = {{'candidates': {self.requested(k)}, 'rank_constant': {self.rank_constant}, "
            f"'weights': [{weights}]}}"
        )


# A row of an answer by the names of what is read of it.
_Read = dict[str, Any]
# What WHERE says, and its values.
Where = tuple[str, list[Any]]


@dataclass(frozen=True)
class Search:
    """A search for the `k` rows that are best by their vectors, their words, or both.

    `uses_language` says that the text is in the language of text queries; otherwise its words are taken
    as they are."""

    k: int
    vector: list[float] | None = None
    text: str | None = None
    uses_language: bool = False
    with_vectors: bool = False
    similarity: str = "cosine"
    fusion: Fusion = Fusion()

    @property
    def mode(self) -> SearchMode:
        """What it looks for."""
        if self.text is None:
            return "vector"
        return "text" if self.vector is None else "hybrid"

    def statements(self, table: str, wheres: Sequence[Where]) -> list[Statement]:
        """The statements whose answers `hits` takes; a row satisfies one WHERE at least."""
        if self.k < 1:
            return []
        if self.mode == "hybrid" and len(wheres) > 1:
            requested = self.fusion.requested(self.k)
            if requested > _MOST_ROWS:
                raise ValueError(
                    "the filter has alternatives ($or, $ne, $nin), with which a hybrid search takes up to "
                    f"{_MOST_ROWS:,} candidates, unlike {requested:,}: lower k or candidates, or simplify the filter"
                )
            modes: Sequence[SearchMode] = ("vector", "text")
            return [self._select(table, where, mode, requested) for mode in modes for where in wheres]
        return [self._select(table, where, self.mode, self.k) for where in wheres]

    def hits(self, answers: list[list[Row]]) -> list[Hit]:
        """The best rows of all answers, each once, the best first."""
        if self.mode == "hybrid":
            return self._fused(answers) if len(answers) > 1 else self._as_ranked(answers)
        return [self._hit(read, read[f"{self.mode}_score"]) for read in self._ranked(answers, self.mode)[: self.k]]

    def relevance(self, score: float) -> float:
        """A score from 0 to 1 that orders rows as the search does.

        That of a vector is such a score. That of words has no bound, and becomes score / (score + 1).
        A hybrid one is divided by that of a row that is the first of both searches."""
        if self.mode == "hybrid":
            return min(score / self.fusion.best, 1.0)
        return score / (score + 1) if self.mode == "text" else float(score)

    def diverse(self, hits: list[Hit], k: int, lambda_mult: float) -> list[Hit]:
        """Chooses `k` rows that are good and far from one another, which their vectors say.

        Good is, by the vector alone, near to it; otherwise it is the score as a part of the best one's."""
        if not hits:
            return []
        if self.mode != "vector":
            return _spread(hits, k, lambda_mult)
        embeddings = [list(hit.vector) for hit in hits]
        chosen = maximal_marginal_relevance(numpy.array(self.vector), embeddings, lambda_mult, k)
        return [hits[number] for number in chosen]

    # Statements

    def _select(self, table: str, where: Where, mode: SearchMode, limit: int) -> Statement:
        columns = [(name, *self._column(name)) for name in self._names(mode)]
        listed = "".join(f", {column} AS {name}" for name, column, _ in columns)
        order, wanted = self._order(mode)
        options = self.fusion.options(self.k) if mode == "hybrid" else ""
        return Statement(
            f"SELECT {_DOCUMENT}{listed} FROM {table}{where[0]} ORDER BY {order} LIMIT ?{options}",
            [*(value for _, _, values in columns for value in values), *where[1], *wanted, limit],
        )

    def _names(self, mode: SearchMode) -> list[str]:
        """What a statement reads of a row in addition to the document."""
        names = [] if self.vector is None else ["vector_score"]
        if mode != "vector":
            names.append("text_score")
        if mode == "hybrid":
            names += ["vector_rank", "text_rank"]
        return [*names, "vector"] if self.with_vectors else names

    def _column(self, name: str) -> tuple[str, list[object]]:
        """The expression of CQL that reads this, and its values."""
        columns: dict[str, tuple[str, list[object]]] = {
            # Of the row that is read, so that it is there whether or not a search named the row.
            "vector_score": (f"similarity_{self.similarity}(embedding, ?)", [self.vector]),
            "vector_rank": ("ANN_RANK(embedding, ?)", [self.vector]),
            "text_score": (f"BM25_SCORE(body, {self._words})", [self.text]),
            "text_rank": (f"BM25_RANK(body, {self._words})", [self.text]),
            "vector": ("embedding", []),
        }
        return columns[name]

    def _order(self, mode: SearchMode) -> tuple[str, list[object]]:
        """What ORDER BY has, and its values."""
        if mode == "vector":
            return "embedding ANN OF ?", [self.vector]
        words = f"BM25(body, {self._words})"
        if mode == "text":
            return words, [self.text]
        return f"RRF(ANN(embedding, ?), {words})", [self.vector, self.text]

    @property
    def _words(self) -> str:
        return "?" if self.uses_language else "bm25_words(?)"

    # Answers

    def _reads(self, answers: list[list[Row]], mode: SearchMode) -> list[_Read]:
        """The rows of all answers, each once."""
        names = ("id", "body", "metadata", *self._names(mode))
        return list({row[0]: dict(zip(names, row, strict=True)) for answer in answers for row in answer}.values())

    def _ranked(self, answers: list[list[Row]], mode: Literal["vector", "text"]) -> list[_Read]:
        """The rows of a search for one thing with their ranks, the best first."""
        reads = self._reads(answers, mode)
        if len(answers) > 1:
            reads.sort(key=lambda read: -float(read[f"{mode}_score"]))
        return [read | {f"{mode}_rank": rank} for rank, read in enumerate(reads, start=1)]

    def _as_ranked(self, answers: list[list[Row]]) -> list[Hit]:
        """The rows of a search for both, which the database put in order."""
        reads = self._reads(answers, "hybrid")
        return [self._hit(read, self.fusion.score(read["vector_rank"], read["text_rank"])) for read in reads]

    def _fused(self, answers: list[list[Row]]) -> list[Hit]:
        """The rows of searches for the vector, then of searches for the words, in the order of both.

        As in the database, equal scores are ordered by ranks."""
        half, requested = len(answers) // 2, self.fusion.requested(self.k)
        found: dict[str, _Read] = {}
        for read in (
            *self._ranked(answers[:half], "vector")[:requested],
            *self._ranked(answers[half:], "text")[:requested],
        ):
            found[read["id"]] = found.get(read["id"], {}) | read
        hits = [
            self._hit(read, self.fusion.score(read.get("vector_rank"), read.get("text_rank")))
            for read in found.values()
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.vector_rank or math.inf, hit.text_rank or math.inf))
        return hits[: self.k]

    def _hit(self, read: _Read, score: float) -> Hit:
        known = {name: read[name] for name in _KNOWN if name in read}
        return Hit(document_of(read["id"], read["body"], read["metadata"]), score, **known)


def document_of(id: str, body: str | None, metadata: str | None) -> Document:
    """The document of a row."""
    return Document(body or "", id=id, metadata=_metadata.from_text(metadata or "{}"))


def _spread(hits: list[Hit], k: int, lambda_mult: float) -> list[Hit]:
    """Chooses `k` rows one after the other, each with a good score and far from those before it."""
    vectors = numpy.array([hit.vector for hit in hits], dtype=float)
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = numpy.divide(vectors, lengths, out=numpy.zeros_like(vectors), where=lengths > 0)
    scores = numpy.array([hit.score for hit in hits], dtype=float)
    worth = lambda_mult * scores / (scores.max() or 1.0)
    chosen: list[int] = []
    likeness = numpy.zeros(len(hits))
    while len(chosen) < min(k, len(hits)):
        worths = worth - (1 - lambda_mult) * likeness
        worths[chosen] = -math.inf
        best = int(worths.argmax())
        likeness_to_best = vectors @ vectors[best]
        likeness = numpy.maximum(likeness, likeness_to_best) if chosen else likeness_to_best
        chosen.append(best)
    return [hits[number] for number in chosen]
