"""What a look-up finds, and what a model answers."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from annulus_semantic_cache.rows import Row


@dataclass(frozen=True)
class Hit:
    """An answer of the cache.

    `similarity` is the cosine of the two prompts, 0 to 1; `score` is `(1 + cosine) / 2`, which
    `ORDER BY ... ANN` and `similarity_cosine` of the database have, so that unrelated texts are
    near 0.5. Both are 1 for the same text."""

    prompt_id: uuid.UUID
    kind: Literal["exact", "similar"]
    response: str
    prompt: str
    similarity: float
    inserted_at: datetime
    updated_at: datetime
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float

    @property
    def score(self) -> float:
        """The database's score of the same pair."""
        return (1 + self.similarity) / 2


@dataclass(frozen=True)
class Miss:
    """No answer: why, and the row of too old an answer, which the next one replaces."""

    reason: str
    replaces: Row | None = None


@dataclass(frozen=True)
class Answer:
    """What a model answered, how many tokens that was, and how long it took."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Prices:
    """Money for a million tokens, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0


def hit_of(row: Row, kind: Literal["exact", "similar"], similarity: float) -> Hit:
    """A row as a hit."""
    return Hit(
        row.prompt_id,
        kind,
        row.llm_response,
        row.prompt_text,
        similarity,
        row.inserted_at,
        row.updated_at,
        row.prompt_tokens,
        row.completion_tokens,
        row.model_seconds,
    )
