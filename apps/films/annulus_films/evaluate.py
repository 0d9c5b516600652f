"""Measures the answers: nDCG@5 of 50 judged queries, ranked by vectors alone and by words as well.

`queries.jsonl` has a query a line, with the films that were judged for it by reading their plots: 3 is what was
wished for, 2 nearly, 1 touches it, 0 or not listed is none of these. Judged were the first films of searches by
vectors, by words and by both, and films that a search of the plots by regular expressions found besides. One person
judged, so that only differences of several hundredths mean something.

The weight of words was chosen on the first, third, fifth ... query. The others are held out.
"""

import json
import math
import pathlib
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from .models import Wish
from .recommender import Recommender

QUERIES = pathlib.Path(__file__).with_name("queries.jsonl")
DEPTH = 5


class JudgedQuery(BaseModel):
    """A query, and the grades of films by their ids."""

    query: str
    judged: dict[int, int] = Field(min_length=1)


class Scores(BaseModel):
    """nDCG@5 of each query, in their order."""

    vectors: list[float]
    hybrid: list[float]


def judged_queries(path: pathlib.Path = QUERIES) -> list[JudgedQuery]:
    """The queries of the file."""
    return [JudgedQuery.model_validate(json.loads(line)) for line in path.read_text().splitlines()]


def ndcg(found: Sequence[int], judged: Mapping[int, int], depth: int = DEPTH) -> float:
    """The normalised discounted cumulative gain of an answer (Järvelin and Kekäläinen, 2002), 0 to 1."""

    def gain(grades: Sequence[int]) -> float:
        return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:depth]))

    best = gain(sorted(judged.values(), reverse=True))
    return gain([judged.get(id, 0) for id in found]) / best if best else 0.0


def measure(recommender: Recommender) -> Scores:
    """The scores of all queries."""

    def scores(hybrid: bool) -> list[float]:
        answers = (
            (query, recommender.recommend(Wish(sentence=query.query, hybrid=hybrid, limit=DEPTH)))
            for query in judged_queries()
        )
        return [ndcg([match.film.id for match in answer], query.judged) for query, answer in answers]

    return Scores(vectors=scores(False), hybrid=scores(True))


def report(recommender: Recommender) -> str:
    """The scores as a table, and the queries that differ most."""
    scores = measure(recommender)
    lines = [f"nDCG@{DEPTH} of {len(scores.vectors)} queries", f"{'':22}{'vectors':>9}{'hybrid':>9}"]
    for name, part in (("all", slice(None)), ("chosen on", slice(0, None, 2)), ("held out", slice(1, None, 2))):
        lines.append(f"{name:22}{mean(scores.vectors[part]):9.3f}{mean(scores.hybrid[part]):9.3f}")
    pairs = list(zip(scores.vectors, scores.hybrid, strict=True))
    better, worse = (sum(sign * (after - before) > 1e-9 for before, after in pairs) for sign in (1, -1))
    lines.append(f"hybrid is better for {better}, worse for {worse}, equal for {len(pairs) - better - worse}")
    return "\n".join(lines)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
