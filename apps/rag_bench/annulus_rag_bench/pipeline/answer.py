"""The values that go into the pipeline and come out of it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Self

from pydantic import BaseModel

# As the dates of all stores have milliseconds.
END_OF_DAY = time(23, 59, 59, 999_000)


class Outcome(StrEnum):
    """How a question ended."""

    ANSWERED = "answered"
    NOT_IN_DOCUMENTS = "not in the documents"
    # The articles were found, and the model gave no answer.
    NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and which articles it is about. Both dates belong to the range."""

    text: str
    limit: int = 5
    published_from: datetime | None = None
    published_until: datetime | None = None
    hybrid: bool = False

    @classmethod
    def between(
        cls, text: str, limit: int, first: date | None = None, last: date | None = None, hybrid: bool = False
    ) -> Self:
        """A question about the articles of whole days, in UTC."""
        published_from = None if first is None else datetime.combine(first, time(), UTC)
        published_until = None if last is None else datetime.combine(last, END_OF_DAY, UTC)
        return cls(text, limit, published_from, published_until, hybrid)


class Source(BaseModel):
    """An article that was found for a question."""

    # By which the answer cites it. None: it was graded as no help, and the model did not see it.
    number: int | None
    cited: bool
    url: str
    title: str
    body: str
    publication_date: datetime
    distance: float


class Answer(BaseModel):
    """What the pipeline says to a question."""

    question: str
    outcome: Outcome
    # The model's answer, with [1] where it cites the source of this number.
    text: str
    sources: list[Source]
    # How long each step took.
    seconds: dict[str, float]
    # What a reader should know of this answer.
    notes: list[str] = []
    # Why there is no answer.
    error: str | None = None
    store: str
    model: str
