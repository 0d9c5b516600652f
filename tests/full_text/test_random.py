"""Tests searches while several threads write. A search that runs meanwhile finds exactly the rows
that match, as far as it is known which those are. When the writers pause, every form of search, by
CQL and over HTTP, finds what brute force finds, with its scores and ranks.

`make test-full-text-all SEEDS=20` runs more of them, and FIRST_SEED=7 SEEDS=1 repeats one, in which
threads may meet otherwise than before."""

import functools
import os
import random
import threading
import time

import pytest
from cases import KINDS, Case, by_cql, by_http, cases, none
from conditions import filters
from films import FORMS, GLOBAL
from living import Living, Writer
from reference import TextIndex

FIRST_SEED = int(os.environ.get("FIRST_SEED", 1))
SEEDS = int(os.environ.get("SEEDS", 1))
WRITERS, PHASES, STEPS = 3, int(os.environ.get("PHASES", 3)), 150
"""In each phase a thread does so many steps."""

SEARCHES_MAX = 100
"""The most searches of a phase: each is judged by all rows afterwards."""


class Search:
    """A search for words that was answered while rows changed: the keys that came, and when."""

    def __init__(self, living, session, rng):
        name, relations = rng.choice([each for each in filters(living) if each[0] not in ("not_kept", "none")])
        self.case = Case(living, GLOBAL, relations)
        order, last = rng.choice([
            ("", []),
            (" ORDER BY BM25(body, ?) LIMIT 1000", [self.case.query]),
            (" ORDER BY v ANN OF ? LIMIT 1000", [self.case.vector]),
        ])  # fmt: skip
        self.needs_vector = "ANN" in order
        where = " AND ".join(["BM25(body, ?) > 0", *(relation.text for relation in relations)])
        self.text = f"SELECT p, c FROM {living.table} WHERE {where}{order}"
        self.values = [self.case.query, *(value for relation in relations for value in relation.values), *last]
        statement = session.prepare(self.text)
        # A page sees the rows of its own moment.
        statement.fetch_size = 5000
        self.began = time.time()
        self.keys = [(row.p, row.c) for row in session.execute(statement, self.values)]
        self.ended = time.time()

    def fault(self, living):
        """What is wrong with the answer; None if a table that changed meanwhile explains it."""
        if len(set(self.keys)) < len(self.keys):
            return f"a row comes twice: {self.keys}"
        for key, history in living.histories.items():
            seen = [self._matches(key, content) for content in history.seen(self.began, self.ended)]
            if key in self.keys and not any(seen):
                return f"{key} does not match"
            if key not in self.keys and all(seen):
                return f"{key} is missing"
        return None

    def _matches(self, key, content):
        if content is None or content["body"] is None or (self.needs_vector and content["v"] is None):
            return False
        row = content | {"p": key[0], "c": key[1]} | {name: content[name] for name in ("year", "lang", "seen", "tags")}
        return all(one.holds(row) for one in self.case.relations) and matches(self.case.query, content["body"])

    def __str__(self):
        return f"{self.text} {self.values}"


@functools.lru_cache(maxsize=100_000)
def matches(query, text):
    return bool(TextIndex({0: text}).matching(query))


def write(writer, steps, errors):
    try:
        for _ in range(steps):
            writer.step()
    except Exception as error:
        errors.append(error)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_answers_are_right_while_rows_change(session, service, keyspace, seed):
    living = Living(keyspace, f"of_{seed}", seed)
    living.create(session)
    rng = random.Random(seed)
    writers = [Writer(living, session, f"{seed} {n}", range(n, living.partitions, WRITERS)) for n in range(WRITERS)]
    again = f"again: make test-full-text-all FIRST_SEED={seed} SEEDS=1"
    for phase in range(PHASES):
        errors, searches = [], []
        threads = [threading.Thread(target=write, args=(writer, STEPS, errors)) for writer in writers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and len(searches) < SEARCHES_MAX:
            searches.append(Search(living, session, rng))
        for thread in threads:
            thread.join()
        assert not errors, f"{errors}\n{again}"
        faults = [(search, fault) for search in searches if (fault := search.fault(living))]
        shown = "\n".join(f"  {search}\n    {fault}" for search, fault in faults[:3])
        assert not faults, f"{len(faults)} wrong answers of {len(searches)} in phase {phase}, such as\n{shown}\n{again}"
        living.settle()
        for form in FORMS:
            for kind in rng.sample(KINDS, 4):
                none(by_cql(session, kind, cases(living, form, each=1)))
            none(by_http(service, living, form, each=1))
    assert any(search.keys for search in searches), "a test whose searches found nothing would show nothing"
    session.execute(f"DROP TABLE {living.table}")
