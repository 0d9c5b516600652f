"""A semantic cache for language models, in a table of a CQL database with vector search."""

from annulus_semantic_cache.answers import Answer, Hit, Miss, Prices
from annulus_semantic_cache.cache import AsyncSemanticCache, SemanticCache
from annulus_semantic_cache.questions import Question, UncachedError
from annulus_semantic_cache.rows import DatabaseDownError
from annulus_semantic_cache.settings import Settings

__all__ = [
    "Answer",
    "AsyncSemanticCache",
    "DatabaseDownError",
    "Hit",
    "Miss",
    "Prices",
    "Question",
    "SemanticCache",
    "Settings",
    "UncachedError",
]
