"""The judged questions, and the measure of an answer by them.

`questions.md` says how the questions were written and judged.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

QUESTIONS = Path(__file__).with_name("questions.jsonl")
DEPTH = 5


class JudgedQuestion(BaseModel):
    """A question, the days that its answers were published between, and the grades of articles by their addresses."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    question: str = Field(min_length=1)
    first: date | None = Field(default=None, alias="from")
    last: date | None = Field(default=None, alias="until")
    relevant: dict[str, int] = Field(min_length=1)

    @property
    def published_from(self) -> datetime | None:
        return None if self.first is None else datetime.combine(self.first, time(), UTC)

    @property
    def published_until(self) -> datetime | None:
        return None if self.last is None else datetime.combine(self.last, time(), UTC)

    @property
    def has_dates(self) -> bool:
        return self.first is not None or self.last is not None


def judged_questions(path: Path = QUESTIONS) -> list[JudgedQuestion]:
    """The questions of the file."""
    return [JudgedQuestion.model_validate(json.loads(line)) for line in path.read_text().splitlines()]


def ndcg(found: Sequence[str], relevant: Mapping[str, int], depth: int = DEPTH) -> float:
    """The normalised discounted cumulative gain of an answer (Järvelin and Kekäläinen, 2002), 0 to 1."""

    def gain(grades: Sequence[int]) -> float:
        return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:depth]))

    best = gain(sorted(relevant.values(), reverse=True))
    return gain([relevant.get(url, 0) for url in found]) / best if best else 0.0
