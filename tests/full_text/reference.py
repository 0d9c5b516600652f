"""A text index of our own, small and slow: what documents a query finds and their BM25 scores, by
definition."""

import math

from analysis import tokens
from grammar import Boolean, Fuzzy, Nothing, Phrase, Prefix, Term, parse

K1, B = 1.2, 0.75


class Document:
    """The tokens of one text."""

    def __init__(self, text, analyzer):
        self.positions = {}
        for term, position in tokens(text, analyzer):
            self.positions.setdefault(term, []).append(position)
        self.length = sum(map(len, self.positions.values()))

    def count(self, term):
        return len(self.positions.get(term, ()))

    def count_of_phrase(self, phrase):
        """How often the terms stand in their places: where the beginnings of the phrase that each
        term tells are the same, or with slop, as far apart as that at most. No occurrence has a term
        at a place that another has."""
        begins = [[at - offset for at in self.positions.get(term, ())] for offset, term in phrase.terms]
        if not phrase.slop:
            return len(set(begins[0]).intersection(*begins[1:]))
        count = 0
        while all(begins):
            last = max(places[0] for places in begins)
            kept = [[place for place in places if place >= last - phrase.slop] for places in begins]
            if kept == begins:
                count += 1
                kept = [places[1:] for places in begins]
            begins = kept
        return count


class Statistics:
    """What the scores of a query depend on: the documents that count."""

    def __init__(self, documents):
        self._documents = list(documents)
        self.average_length = sum(document.length for document in self._documents) / max(len(self._documents), 1)
        self._idf = {}

    def idf(self, term):
        if term not in self._idf:
            df = sum(term in document.positions for document in self._documents)
            self._idf[term] = math.log(1 + (len(self._documents) - df + 0.5) / (df + 0.5))
        return self._idf[term]

    def bm25(self, idf, count, document):
        longer = 1 - B + B * document.length / self.average_length
        return idf * count * (K1 + 1) / (count + K1 * longer)


class TextIndex:
    """Texts by key. A null text is no document."""

    def __init__(self, texts, analyzer="standard"):
        self.analyzer = analyzer
        self.documents = {key: Document(text, analyzer) for key, text in texts.items() if text is not None}

    def scores(self, query, within=None):
        """{key: score} of the documents that a query finds. `within` says of a key whether its
        document counts in the statistics, and may be found."""
        documents = {key: one for key, one in self.documents.items() if within is None or within(key)}
        statistics, clause = Statistics(documents.values()), parse(query, self.analyzer)
        found = {key: score(clause, document, statistics) for key, document in documents.items()}
        return {key: value for key, value in found.items() if value is not None}

    def matching(self, query):
        """The keys of the documents that a query finds."""
        return set(self.scores(query))


def score(clause, document, statistics):
    """The score of a document; None if the clause does not match it."""
    match clause:
        case Nothing():
            return None
        case Term(term, boost):
            count = document.count(term)
            return boost * statistics.bm25(statistics.idf(term), count, document) if count else None
        case Phrase(terms, _, boost):
            count = document.count_of_phrase(clause)
            idf = sum(statistics.idf(term) for _, term in terms)
            return boost * statistics.bm25(idf, count, document) if count else None
        case Prefix(prefix, boost):
            return boost if any(term.startswith(prefix) for term in document.positions) else None
        case Fuzzy(term, distance, boost):
            return boost if any(is_near(term, other, distance) for other in document.positions) else None
        case Boolean():
            return _score_of_all(clause, document, statistics)
    raise AssertionError(clause)


def _score_of_all(clause, document, statistics):
    of = lambda clauses: [score(one, document, statistics) for one in clauses]  # noqa: E731
    must, should = of(clause.must), of(clause.should)
    if any(value is not None for value in of(clause.must_not)) or None in must:
        return None
    values = must + [value for value in should if value is not None]
    return sum(values) if values else None


def is_near(left, right, distance):
    """Whether so many changes make one word the other: a character more, less or another, or two
    neighbours that change places."""
    if abs(len(left) - len(right)) > distance:
        return False
    before, last = [], list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1] <= distance
