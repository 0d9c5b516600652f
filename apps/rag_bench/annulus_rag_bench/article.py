"""The values that go through the application: an article, and one that was found."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Article:
    """An article as it is stored. Its address is its key, and its date is in UTC."""

    url: str
    title: str
    body: str
    publication_date: datetime


@dataclass(frozen=True, slots=True)
class FoundArticle(Article):
    """An article of an answer, with its distance from the question: 1 - cosine, so that nearer is smaller."""

    distance: float
