"""The table of cases: statements of every form, and requests over HTTP, with filters of every kind,
and what brute force finds for them."""

import os

import ranking
import relations as rel
from cassandra.concurrent import execute_concurrent
from cassandra.query import SimpleStatement
from conditions import filters, trees
from films import DIMENSIONS, LOCAL, PAIR, WORDS
from ranking import exact
from service import Refused, has_words, restrictions, tree

QUERIES_EACH = int(os.environ.get("QUERIES_EACH", 1))
"""The number of queries for each statement form, form of index and filter."""

IN_FULL = "ALL_FORMS" in os.environ
"""Whether tests that need only some of the forms take all."""

LIMITS = (1, 3, 10, 40, 1000)
PAGE_ROWS = 7
CANDIDATES = 100


def queries(films):
    """A text query of a random kind."""
    rng = films.rng
    often, seldom = (lambda: rng.choice(WORDS[:8])), (lambda: rng.choice(WORDS))
    return rng.choice([
        often,
        seldom,
        lambda: f"{often()} {seldom()} {seldom()}",
        lambda: f"{often()} AND {often()}",
        lambda: f"{often()} OR {often()} AND {often()}",
        lambda: f"{often()} NOT {often()}",
        lambda: f"+{often()} -{often()} {seldom()}",
        lambda: f"({often()} OR {seldom()}) AND ({often()} OR {often()})",
        lambda: f'"{PAIR[0]} {PAIR[1]}"',
        lambda: f'"{PAIR[0]} {PAIR[1]}" {often()}',
        lambda: f"{often().upper()} the {PAIR[1].capitalize()}!",
        lambda: f"{seldom()[:3]}*",
        lambda: f"{often()}^3 {often()}",
        lambda: f"{often()} {often()[:2]}*",
        lambda: f"{often()[:-1]}x~1",
        lambda: "nowhere",
    ])()  # fmt: skip


class Text:
    """The text of a statement while it is written, with the values of its markers."""

    def __init__(self, with_literals):
        self.with_literals, self.values = with_literals, []

    def value(self, value, literal=None):
        if self.with_literals:
            return literal or (_quoted(value) if isinstance(value, str) else str(value))
        self.values.append(value)
        return "?"

    def relation(self, relation):
        if self.with_literals:
            return relation.with_literals()
        self.values += relation.values
        return relation.text


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Case:
    """One search by one form of indexes: a query of words, a vector, relations and a limit."""

    def __init__(self, films, form, relations):
        rng = films.rng
        self.films, self.form, self.relations = films, form, list(relations)
        if form is LOCAL and not any("p" in relation.key for relation in relations):
            wanted = rng.sample(range(films.partitions), 2)
            self.relations.append(rng.choice([rel.compare(films, "p", "=", wanted[0]), rel.is_in(films, "p", wanted)]))
        self.query, self.other = queries(films), rng.choice(WORDS[:5])
        self.vector = [round(rng.uniform(-1, 1), 3) for _ in range(DIMENSIONS)]
        self.place = [float(rng.randrange(10_000)), float(rng.randrange(10_000))]
        self.limit = rng.choice(LIMITS)
        self.with_literals = rng.random() < 0.3
        self.is_kept = not any("plain" in relation.columns for relation in self.relations)
        self.is_by_key = all(relation.columns <= {"p", "c"} for relation in self.relations)
        self.partitions = None
        if form is LOCAL:
            of_key = [relation for relation in self.relations if relation.columns == {"p"}]
            self.partitions = [p for p in range(films.partitions) if all(one.holds({"p": p}) for one in of_key)]

    def admitted(self, scores):
        """Of scores those of rows that satisfy the relations."""
        rows = self.films.by_key
        return {key: score for key, score in scores.items() if all(one.holds(rows[key]) for one in self.relations)}

    def words(self, query=None):
        return self.admitted(self.films.words(query or self.query, "body", self.partitions))

    def near(self):
        return self.admitted(self.films.near(self.vector))

    # Parts of statements.

    def bm25(self, text, function="BM25", query=None):
        return f"{function}({self.form.text}, {text.value(query or self.query)})"

    def ann(self, text, function="ANN"):
        return f"{function}({self.form.vector}, {text.value(self.vector)})"

    def where(self, text, *more):
        """WHERE with the relations, and more of them given as functions of the text."""
        parts = [text.relation(relation) for relation in self.relations] + [one(text) for one in more]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def has_words(self, query=None):
        return lambda text: f"{self.bm25(text, query=query)} > 0"

    def end(self, with_options=""):
        options = f" WITH hybrid_options = {with_options}" if with_options else ""
        return f" LIMIT {self.limit}{'' if self.is_kept else ' ALLOW FILTERING'}{options}"

    @property
    def table(self):
        return f"{self.films.keyspace}.{self.films.name}"


def _select(case, text, names):
    """SELECT of the key and of scores and ranks, by the names of their functions."""
    makers = {"ANN": case.ann, "BM2": case.bm25}
    called = "".join(f", {makers[name[:3]](text, name)} AS {name.lower()}" for name in names)
    return f"SELECT p, c{called} FROM {case.table}"


class Kind:
    """A form of statement: `write(case, text)` gives its text, and `fault(case, rows)` what is wrong
    with an answer. `fits(case)` says whether it makes sense for a case."""

    page_rows = 5000

    def fits(self, case):
        return True


def _keys(rows):
    return [(row.p, row.c) for row in rows]


def _fault_of_words(case, rows, scores):
    keys = _keys(rows)
    told = {key: (row.bm25_score, row.bm25_rank) for key, row in zip(keys, rows)}
    return (
        ranking.fault(exact(scores), keys, case.limit)
        or ranking.fault_of_scores(scores, [(key, told[key][0]) for key in keys])
        or _fault_of_places(keys, told)
    )


def _fault_of_places(keys, told):
    """The ranks of a single search are the places of the answer."""
    places = [told[key][1] for key in keys]
    return None if places == list(range(1, len(keys) + 1)) else f"ranks {places}"


class WordsInBoth(Kind):
    """WHERE and ORDER BY have the search for words, as ScyllaDB has it."""

    def write(self, case, text):
        head = _select(case, text, ["BM25_SCORE", "BM25_RANK"])
        return head + case.where(text, case.has_words()) + f" ORDER BY {case.bm25(text)}" + case.end()

    def fault(self, case, rows):
        return _fault_of_words(case, rows, case.words())


class WordsInOrder(Kind):
    def write(self, case, text):
        head = _select(case, text, ["BM25_SCORE", "BM25_RANK"])
        return head + case.where(text) + f" ORDER BY {case.bm25(text)}" + case.end()

    def fault(self, case, rows):
        return _fault_of_words(case, rows, case.words())


class WordsOfTwoQueries(Kind):
    """Words of one query order the rows that another finds."""

    def write(self, case, text):
        head = _select(case, text, ["BM25_SCORE", "BM25_RANK"])
        return head + case.where(text, case.has_words(case.other)) + f" ORDER BY {case.bm25(text)}" + case.end()

    def fault(self, case, rows):
        others = case.words(case.other)
        return _fault_of_words(case, rows, {key: score for key, score in case.words().items() if key in others})


class Near(Kind):
    """A search of vectors, with the function in place of ANN OF."""

    def write(self, case, text):
        head = _select(case, text, ["ANN_SCORE", "ANN_RANK"])
        return head + case.where(text) + f" ORDER BY {case.ann(text)}" + case.end()

    def scores(self, case):
        return case.near()

    def fault(self, case, rows):
        scores, keys = self.scores(case), _keys(rows)
        told = {key: (row.ann_score, row.ann_rank) for key, row in zip(keys, rows)}
        return (
            ranking.fault(exact(scores), keys, case.limit)
            or ranking.fault_of_scores(scores, [(key, told[key][0]) for key in keys], 1e-4)
            or _fault_of_places(keys, told)
        )


class NearWithWords(Near):
    """Words as a filter of a search of vectors."""

    def write(self, case, text):
        head = _select(case, text, ["ANN_SCORE", "ANN_RANK"])
        where = case.where(text, case.has_words())
        return head + where + f" ORDER BY {case.form.vector} ANN OF {text.value(case.vector)}" + case.end()

    def scores(self, case):
        words = case.words()
        return {key: score for key, score in case.near().items() if key in words}


class AllWithWords(Kind):
    """All rows that match, in pages."""

    page_rows = PAGE_ROWS

    def write(self, case, text):
        allow = "" if case.is_kept else " ALLOW FILTERING"
        return f"SELECT p, c FROM {case.table}" + case.where(text, case.has_words()) + allow

    def fault(self, case, rows):
        return _fault_of_set(case, _keys(rows))


def _fault_of_set(case, keys):
    wanted = set(case.words())
    if len(set(keys)) < len(keys):
        return f"a row comes twice: {keys}"
    return None if set(keys) == wanted else f"missing {sorted(wanted - set(keys))[:5]}, too much {sorted(set(keys) - wanted)[:5]}"


class Count(Kind):
    def write(self, case, text):
        allow = "" if case.is_kept else " ALLOW FILTERING"
        return f"SELECT count(*) AS counted FROM {case.table}" + case.where(text, case.has_words()) + allow

    def fault(self, case, rows):
        counted, wanted = rows[0].counted, len(case.words())
        return None if counted == wanted else f"{counted} of {wanted}"


class Fused(Kind):
    """RRF of vectors and words."""

    NAMES = ["ANN_SCORE", "ANN_RANK", "BM25_SCORE", "BM25_RANK"]
    constant, weights = 60, None

    def candidates(self, case):
        # A row that is dropped after it was read counts in no rank, so all rows are candidates there.
        return max(case.limit, CANDIDATES) if case.is_kept else 1000

    def options(self, case):
        return "" if case.is_kept else "{'candidates': 1000}"

    def where(self, case, text):
        return case.where(text)

    def order(self, case, text):
        return f"RRF({case.ann(text)}, {case.bm25(text)})"

    def write(self, case, text):
        head = _select(case, text, self.NAMES) + self.where(case, text)
        return head + f" ORDER BY {self.order(case, text)}" + case.end(self.options(case))

    def searches(self, case):
        return [case.near(), case.words()]

    def fault(self, case, rows):
        searches, candidates, keys = self.searches(case), self.candidates(case), _keys(rows)
        near, words = searches[:2]
        entries = ranking.fused(searches, candidates, self.constant, self.weights)
        return (
            ranking.fault(entries, keys, case.limit)
            or ranking.fault_of_ranks(near, candidates, {(row.p, row.c): (row.ann_score, row.ann_rank) for row in rows})
            or ranking.fault_of_ranks(words, candidates, {(row.p, row.c): (row.bm25_score, row.bm25_rank) for row in rows})
        )


class FusedWithOptions(Fused):
    constant, weights = 10, [0.3, 1.7]

    def candidates(self, case):
        return max(case.limit, 20) if case.is_kept else 1000

    def options(self, case):
        return f"{{'candidates': {self.candidates(case)}, 'rank_constant': 10, 'weights': [0.3, 1.7]}}"


class FusedOfFour(Fused):
    """Two vectors of a row and texts in two columns."""

    def fits(self, case):
        # Two of these indexes have no filter columns.
        return case.is_by_key

    def order(self, case, text):
        parts = [case.ann(text), case.bm25(text)]
        parts += [f"ANN(w, {text.value(case.place)})", f"BM25(title, {text.value(case.other)})"]
        return f"RRF({', '.join(parts)})"

    def searches(self, case):
        places, titles = case.films.near(case.place, "w"), case.films.words(case.other, "title")
        return [case.near(), case.words(), case.admitted(places), case.admitted(titles)]


class FusedWithWords(Fused):
    """RRF of rows that have other words."""

    def where(self, case, text):
        return case.where(text, case.has_words(case.other))

    def searches(self, case):
        others = case.words(case.other)
        return [{key: score for key, score in scores.items() if key in others} for scores in (case.near(), case.words())]


class Expression(Fused):
    """A sum of true scores, also of rows that one search did not name."""

    NAMES = ["ANN_SCORE", "BM25_SCORE"]

    def order(self, case, text):
        if case.with_literals:
            return f"0.7 * {case.ann(text, 'ANN_SCORE')} + 0.3 * {case.bm25(text, 'BM25_SCORE')}"
        near = f"{text.value(7.0)} * {case.ann(text, 'ANN_SCORE')}"
        return f"({near} - {text.value(-3.0)} * {case.bm25(text, 'BM25_SCORE')}) / 10"

    def fault(self, case, rows):
        near, words = self.searches(case)
        score = lambda key: 0.7 * near.get(key, 0) + 0.3 * words.get(key, 0)  # noqa: E731
        entries = ranking.summed([near, words], self.candidates(case), score)
        found = ranking.fault(entries, _keys(rows), case.limit)
        for row in rows:
            key = row.p, row.c
            if not _is_about(row.bm25_score or 0, words.get(key, 0)) or not _is_about(row.ann_score or 0, near.get(key, 0)):
                found = found or f"{row} where the scores are {near.get(key)} and {words.get(key)}"
        return found


def _is_about(told, wanted):
    return abs(told - wanted) <= ranking.SCORE_TOLERANCE * abs(wanted) + 1e-6


KINDS = [
    WordsInBoth(), WordsInOrder(), WordsOfTwoQueries(), Near(), NearWithWords(), AllWithWords(), Count(),
    Fused(), FusedWithOptions(), FusedOfFour(), FusedWithWords(), Expression(),
]  # fmt: skip


def cases(films, form, each=None):
    """Cases with filters of every kind."""
    for _ in range(each or QUERIES_EACH):
        for name, relations in filters(films):
            yield name, Case(films, form, relations)


def by_cql(session, kind, cases):
    """The faults of the answers to statements of one kind: [(statement, fault)]."""
    prepared, asked, statements = {}, [], []
    for name, case in cases:
        if not kind.fits(case):
            continue
        text = Text(case.with_literals)
        statement = kind.write(case, text)
        asked.append((f"{name}: {statement} {text.values or ''} [{case.query}]", case))
        if case.with_literals:
            statements.append((SimpleStatement(statement, fetch_size=kind.page_rows), ()))
            continue
        if statement not in prepared:
            prepared[statement] = session.prepare(statement)
            prepared[statement].fetch_size = kind.page_rows
        statements.append((prepared[statement], text.values))
    answers = execute_concurrent(session, statements, concurrency=8, raise_on_first_error=False)
    for (shown, case), (is_done, answer) in zip(asked, answers):
        fault = kind.fault(case, list(answer)) if is_done else f"{type(answer).__name__} {answer}"
        if fault:
            yield shown, fault


def by_http(service, films, form, each=None):
    """The faults of the answers to requests with restrictions and with trees of conditions:
    [(request, fault)]."""
    for _ in range(each or QUERIES_EACH):
        for name, relations in filters(films):
            case = Case(films, form, relations)
            if case.is_kept:
                conditions = [relation.json for relation in case.relations]
                yield from _by_http(service, name, case, restrictions(*conditions), conditions, lambda row: True)
        for name, condition in trees(films):
            case = Case(films, form, [])
            # The key of a local index is beside the tree.
            conditions = [*(relation.json for relation in case.relations), condition.json]
            yield from _by_http(service, name, case, tree(*conditions), conditions, condition.holds)


def _by_http(service, name, case, filter, conditions, holds):
    films, form = case.films, case.form
    of_words = {key: score for key, score in case.words().items() if holds(films.by_key[key])}
    near = {key: score for key, score in case.near().items() if holds(films.by_key[key])}
    both = {key: score for key, score in near.items() if key in of_words}
    words_index, near_index = form.words_index(films), form.near_index(films)
    with_words = tree(*conditions, has_words(form.text, case.query))
    requests = {
        "bm25": (lambda: service.bm25(films.keyspace, words_index, case.query, case.limit, filter), of_words),
        "ann": (lambda: service.ann(films.keyspace, near_index, case.vector, case.limit, filter), near),
        "ann with words": (lambda: service.ann(films.keyspace, near_index, case.vector, case.limit, with_words), both),
        "matches": (lambda: service.matches(films.keyspace, words_index, case.query, PAGE_ROWS, filter), None),
    }
    for route, (ask, scores) in requests.items():
        shown = f"{form.name} {route} {name} [{case.query}] limit {case.limit} {filter}"
        try:
            answer = ask()
        except Refused as refused:
            yield shown, str(refused)
            continue
        if scores is None:
            fault = None if sorted(answer) == sorted(of_words) else f"{sorted(answer)} where {sorted(of_words)} match"
        else:
            keys = [key for key, _ in answer]
            fault = ranking.fault(exact(scores), keys, case.limit) or ranking.fault_of_scores(scores, answer)
        if fault:
            yield shown, fault


SHOWN = 5


def none(faults):
    """Fails if there are faults, given as [(request, fault)], and shows the first."""
    faults = list(faults)
    shown = "\n".join(f"  {request}\n    {fault}" for request, fault in faults[:SHOWN])
    assert not faults, f"{len(faults)} wrong answers, such as\n{shown}"
