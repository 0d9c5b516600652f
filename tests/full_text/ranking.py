"""What a ranked answer must be, where not everything is certain: the place of rows with equal scores
is not, so that a rank, and a score made of ranks, is between two bounds."""

import bisect
import collections

ORDER_TOLERANCE = 1e-4
"""Scores that differ by less are equal: the index computes with floats of 32 bits."""

SCORE_TOLERANCE = 0.03
"""By how much a score may differ from the formula's, relative to it."""

Entry = collections.namedtuple("Entry", "low high is_certain", defaults=(True,))
"""What is known of a row: the bounds of its score, and whether it must be among the candidates."""


def exact(scores):
    """Entries of rows whose scores are known."""
    return {key: Entry(score, score) for key, score in scores.items()}


def fault(entries, keys, limit):
    """What is wrong with an answer, the keys in its order; None if it is right."""
    if len(set(keys)) < len(keys):
        return f"a row comes twice: {keys}"
    strangers = [key for key in keys if key not in entries]
    if strangers:
        return f"these rows don't belong here: {strangers[:5]}"
    wanted = min(limit, sum(entry.is_certain for entry in entries.values()))
    missing = [key for key, entry in entries.items() if entry.is_certain and key not in set(keys)]
    if not wanted <= len(keys) <= limit:
        return f"{len(keys)} rows of {wanted}; not among them {missing[:5]}"
    for left, right in zip(keys, keys[1:]):
        if _is_less(entries[left].high, entries[right].low):
            return f"{left} {entries[left]} comes before {right} {entries[right]}"
    if len(keys) == limit and keys:
        worst = min(entries[key].high for key in keys)
        for key in missing:
            if _is_less(worst, entries[key].low):
                return f"{key} {entries[key]} is missing, and the worst there is {worst}"
    return None


def fault_of_scores(scores, told, tolerance=SCORE_TOLERANCE):
    """What is wrong with the scores [(key, score)] that an answer tells."""
    for key, score in told:
        if abs(scores[key] - score) > tolerance * abs(scores[key]) + 1e-6:
            return f"{key} has {score} where the formula has {scores[key]}"
    values = [score for _, score in told]
    if any(_is_less(left, right) for left, right in zip(values, values[1:])):
        return f"scores not in order: {values}"
    return None


def _is_less(left, right):
    return left < right - ORDER_TOLERANCE * max(abs(left), abs(right))


def ranks(scores):
    """{key: (best, worst)} of the ranks that rows may have, from 1."""
    values, count = sorted(scores.values()), len(scores)
    places = {}
    for key, score in scores.items():
        first_better = bisect.bisect_left(values, True, key=lambda other: _is_less(score, other))  # noqa: B023
        first_equal = bisect.bisect_left(values, True, key=lambda other: not _is_less(other, score))  # noqa: B023
        places[key] = (count - first_better + 1, count - first_equal)
    return places


def fused(searches, candidates, constant=60, weights=None):
    """Entries of RRF: the sum of weight / (constant + rank) over searches that name the row. Each of
    `searches` has the scores of all rows that it could name; the best `candidates` it does."""
    weights = weights or [1] * len(searches)
    bounds = collections.defaultdict(lambda: [0.0, 0.0, False, False])
    for scores, weight in zip(searches, weights):
        for key, (best, worst) in ranks(scores).items():
            row = bounds[key]
            if best <= candidates:
                row[1] += weight / (constant + best)
                row[3] = True
            if worst <= candidates:
                row[0] += weight / (constant + worst)
                row[2] = True
    return {key: Entry(low, high, certain) for key, (low, high, certain, possible) in bounds.items() if possible}


def summed(searches, candidates, score):
    """Entries of an expression: `score(key)` of each row that a search names."""
    certain, possible = set(), set()
    for scores in searches:
        for key, (best, worst) in ranks(scores).items():
            possible |= {key} if best <= candidates else set()
            certain |= {key} if worst <= candidates else set()
    return {key: Entry(score(key), score(key), key in certain) for key in possible}


def fault_of_ranks(scores, candidates, told):
    """What is wrong with the ranks and scores {key: (score, rank)} that an answer tells of a search;
    both are None where the search did not name the row."""
    places = ranks(scores)
    for key, (score, rank) in told.items():
        best, worst = places.get(key, (candidates + 1, candidates + 1))
        if rank is None:
            if worst <= candidates:
                return f"{key} has no rank, and should have {best} to {worst}"
            if score is not None:
                return f"{key} has no rank and the score {score}"
        elif not best <= rank <= worst:
            return f"{key} has rank {rank}, which should be {best} to {worst}"
        elif abs(scores[key] - score) > SCORE_TOLERANCE * abs(scores[key]) + 1e-6:
            return f"{key} has {score} where the formula has {scores[key]}"
    return None
