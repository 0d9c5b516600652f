"""Tests searches with filters while several threads write: every answer has rows that match, each
once and with its score, the nearest of them and as many as there are, and what was acknowledged
before.

`make filters-test SEEDS=20` runs more of them, and `make filters-test FIRST_SEED=7 SEEDS=1` repeats
one, in which threads may meet otherwise than before."""

import json
import os
import random
import threading
import time

import pytest
import relations as rel
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import SimpleStatement
from edges import BY_NAME, INT
from intervals import MARKER, Cell, History, expiry
from server import eventually

FIRST_SEED = int(os.environ.get("FIRST_SEED", 1))
SEEDS = int(os.environ.get("SEEDS", 2))

WRITERS, SEARCHERS = 3, 1
STEPS = 400
"""The number of writes and searches of a thread."""

PARTITIONS, ROWS_EACH, GRID = 6, 20, 30
STATIC = "static"
TEXT = BY_NAME["text"]
COLLECTIONS = {"g": set, "m": dict}


class Table:
    """The table, and the histories of its rows."""

    PARTITION = ("p",)
    types = {"p": INT, "c": INT, "f": INT, "u": TEXT, "st": INT}
    parts = {"g": (None, INT), "m": (TEXT, INT)}

    def __init__(self, session, name):
        self.session, self.name = session, f"random.{name}"
        session.execute(
            f"CREATE TABLE {self.name} (p int, c int, st int STATIC, f int, u text, g set<int>, m map<text, int>, "
            "v vector<float, 2>, w vector<float, 2>, PRIMARY KEY (p, c))"
        )
        self.indexes = {"v": f"{name}_global", "w": f"{name}_local"}
        for column, target in [("v", "v, f, g, m, st"), ("w", "(p), w, f")]:
            session.execute(
                f"CREATE CUSTOM INDEX {self.indexes[column]} ON {self.name} ({target}) "
                "USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
            )
        keys = [(p, c) for p in range(PARTITIONS) for c in [STATIC, *range(ROWS_EACH)]]
        self.histories = {key: History(COLLECTIONS) for key in keys}
        self.writers = threading.BoundedSemaphore(WRITERS)
        self._truncating = threading.Lock()

    def equality(self, _column):
        return INT.is_equal

    def token(self, row):
        raise AssertionError("no relation is on tokens")

    def write(self, text, values, change):
        """Runs a write. `change(sent, acknowledged)` does the same to the histories."""
        with self.writers:
            self._run(text, values, change)

    def truncate(self):
        """The only write to rows of others: it is alone."""
        with self._truncating:
            for _ in range(WRITERS):
                self.writers.acquire()
            try:
                self._run(f"TRUNCATE {self.name}", (), self._truncated)
            finally:
                self.writers.release(WRITERS)

    def _truncated(self, sent, acknowledged):
        for history in self.histories.values():
            history.delete(sent, acknowledged)

    def _run(self, text, values, change):
        sent = time.time()
        self.session.execute(text, values)
        change(sent, time.time())


class Writer:
    """Makes random writes to the partitions of one thread."""

    def __init__(self, rng, table, number):
        self.rng, self.table = rng, table
        self._partitions = range(number, PARTITIONS, WRITERS)

    def step(self):
        kinds = {self._insert: 5, self._update: 5, self._static: 1, self._delete_cells: 1, self._delete_row: 1}
        kinds |= {self._batch: 1, self._delete_range: 0.3, self._delete_partition: 0.1, self._truncate: 0.02}
        (kind,) = self.rng.choices(list(kinds), kinds.values())
        kind()

    def _key(self):
        return self.rng.choice(self._partitions), self.rng.randrange(ROWS_EACH)

    def _one(self, make):
        text, values, change = make()
        self.table.write(text, values, change)

    def _insert(self):
        self._one(self._an_insert)

    def _update(self):
        self._one(self._an_update)

    def _batch(self):
        parts = [self.rng.choice([self._an_insert, self._an_update])() for _ in range(self.rng.randrange(2, 5))]
        # Of two writes with one time to a cell the greater value wins, so each row comes once.
        parts = list({values[-2:]: (text, values, change) for text, values, change in parts}.values())
        kind = self.rng.choice(["BEGIN BATCH", "BEGIN UNLOGGED BATCH"])

        def change(sent, acknowledged):
            for _, _, change in parts:
                change(sent, acknowledged)

        text = f"{kind} {'; '.join(text for text, _, _ in parts)}; APPLY BATCH"
        self.table.write(text, [value for _, values, _ in parts for value in values], change)

    def _value(self, column):
        if self.rng.random() < 0.1:
            return None
        if column == "v":
            return [self.rng.randrange(GRID), self.rng.randrange(GRID)]
        if column == "g":
            return {self.rng.randrange(5) for _ in range(self.rng.randrange(1, 3))}
        if column == "m":
            return {self.rng.choice("ab"): self.rng.randrange(3) for _ in range(self.rng.randrange(1, 3))}
        return f"u{self.rng.randrange(4)}" if column == "u" else self.rng.randrange(6)

    def _ttl(self):
        return self.rng.randrange(1, 4) if self.rng.random() < 0.15 else None

    def _an_insert(self):
        """(text, values, change) of an INSERT of all columns, as an UPDATE has its key last."""
        key, ttl = self._key(), self._ttl()
        new = {column: self._value(column) for column in ("f", "u", "g", "m", "v")}
        text = f"INSERT INTO {self.table.name} (f, u, g, m, v, w, p, c) VALUES (%s, %s, %s, %s, %s, %s, %s, %s){_using(ttl)}"

        def change(sent, acknowledged):
            expires = expiry(ttl, sent, acknowledged)
            cells = {MARKER: Cell(True, expires)}
            for column, value in new.items():
                cells |= _cells(column, value, expires)
            self._change(key, sent, acknowledged, lambda _old: cells)

        return text, (*new.values(), new["v"], *key), change

    def _an_update(self):
        key, ttl = self._key(), self._ttl()
        column = self.rng.choice("fugmv")
        value = self._value(column)
        sets, values = f"{column} = %s", [value]
        clears = True
        if column == "v":
            sets, values = "v = %s, w = %s", [value, value]
        elif column in "gm" and value is not None and self.rng.random() < 0.6:
            sets, clears = f"{column} = {column} + %s", False

        def change(sent, acknowledged):
            def cells(old):
                kept = {place: cell for place, cell in old.items() if place[0] != column or not clears}
                return kept | _cells(column, value, expiry(ttl, sent, acknowledged))

            self._change(key, sent, acknowledged, cells)

        return f"UPDATE {self.table.name}{_using(ttl)} SET {sets} WHERE p = %s AND c = %s", (*values, *key), change

    def _change(self, key, sent, acknowledged, cells):
        self.table.histories[key].write(sent, acknowledged, cells)

    def _static(self):
        p, value = self.rng.choice(self._partitions), self._value("st")
        change = lambda sent, acknowledged: self._change(  # noqa: E731
            (p, STATIC), sent, acknowledged, lambda _old: _cells("st", value, None)
        )
        self.table.write(f"UPDATE {self.table.name} SET st = %s WHERE p = %s", (value, p), change)

    def _delete_cells(self):
        key, column = self._key(), self.rng.choice("fugmv")
        columns = "v, w" if column == "v" else column
        without = lambda old: {place: cell for place, cell in old.items() if place[0] != column}  # noqa: E731
        change = lambda sent, acknowledged: self._change(key, sent, acknowledged, without)  # noqa: E731
        self.table.write(f"DELETE {columns} FROM {self.table.name} WHERE p = %s AND c = %s", key, change)

    def _delete_row(self):
        key = self._key()
        self.table.write(
            f"DELETE FROM {self.table.name} WHERE p = %s AND c = %s", key, self.table.histories[key].delete
        )

    def _delete_range(self):
        (p, first), count = self._key(), self.rng.randrange(1, 6)
        rows = [(p, c) for c in range(first, min(first + count, ROWS_EACH))]
        text = f"DELETE FROM {self.table.name} WHERE p = %s AND c >= %s AND c < %s"
        self.table.write(text, (p, first, first + count), self._deleted(rows))

    def _delete_partition(self):
        p = self.rng.choice(self._partitions)
        rows = [key for key in self.table.histories if key[0] == p]
        self.table.write(f"DELETE FROM {self.table.name} WHERE p = %s", (p,), self._deleted(rows))

    def _deleted(self, rows):
        def change(sent, acknowledged):
            for row in rows:
                self.table.histories[row].delete(sent, acknowledged)

        return change

    def _truncate(self):
        self.table.truncate()


def _using(ttl):
    return "" if ttl is None else f" USING TTL {ttl}"


def _cells(column, value, expires):
    if value is None:
        return {}
    if column == "g":
        return {(column, path): Cell(path, expires) for path in value}
    if column == "m":
        return {(column, path): Cell(element, expires) for path, element in value.items()}
    return {(column, None): Cell(value, expires)}


class Search:
    """A search that was answered: what was asked, by which way and when, and which rows came, as (key,
    score, values of some columns). An answer of the index alone has no scores."""

    def __init__(self, table, rng):
        self.table = table
        self.column = rng.choice("vvw")
        self.vector = [rng.randrange(GRID), rng.randrange(GRID)]
        self.limit = rng.choice([1, 5, 10, 100])
        self.relations = self._relations(rng)
        columns = set().union(*(relation.columns for relation in self.relations))
        self.is_kept = columns <= {"p", "c", "f"} | ({"g", "m", "st"} if self.column == "v" else set())
        ways = [self._by_http, self._of_rows, self._of_index] if self.is_kept else [self._of_rows]
        self._way = rng.choice(ways)

    def _relations(self, rng):
        table, number = self.table, rng.randrange
        makers = {
            "p": lambda: rel.is_in(table, "p", [number(PARTITIONS) for _ in range(2)]),
            "c": lambda: rel.compare(table, "c", rng.choice(list(rel.SIGNS)), number(ROWS_EACH)),
            "f": lambda: rng.choice([
                rel.compare(table, "f", rng.choice(list(rel.SIGNS)), number(6)),
                rel.is_in(table, "f", [number(6) for _ in range(3)]),
            ]),
            "u": lambda: rel.compare(table, "u", "=", f"u{number(4)}"),
            "g": lambda: rel.contains(table, "g", number(5)),
            "m": lambda: rng.choice([
                rel.contains(table, "m", number(3)),
                rel.contains_key(table, "m", rng.choice("ab")),
                rel.entry(table, "m", rng.choice("ab"), number(3)),
            ]),
            "st": lambda: rel.compare(table, "st", rng.choice([">=", "="]), number(4)),
        }  # fmt: skip
        chosen = rng.sample(list(makers), rng.choice([1, 1, 2]))
        if self.column == "w" and "p" not in chosen:
            chosen.append("p")
        return [makers[column]() for column in chosen]

    def run(self, server):
        """Asks until there is an answer: an index that is built anew after a TRUNCATE may say so."""
        eventually(lambda: self._answered(server))

    def _answered(self, server):
        self.began = time.time()
        self.rows = self._way(server)
        self.ended = time.time()
        return self.rows is not None

    def _kept(self):
        """The columns beside the key whose values the index keeps and answers."""
        return ["f", "st"] if self.column == "v" else ["f"]

    def _of_rows(self, _server):
        """An answer of the rows."""
        score = f"similarity_euclidean({self.column}, {self.vector}) AS score"
        return self._by_cql(["f", "u", "st"], score, ConsistencyLevel.QUORUM)

    def _of_index(self, _server):
        """An answer of the index alone, which reads no rows."""
        return self._by_cql(self._kept(), None, ConsistencyLevel.ONE)

    def _by_cql(self, columns, score, consistency):
        selected = ["p", "c", *columns, *([score] if score else [])]
        where = " AND ".join(relation.with_literals() for relation in self.relations)
        filtering = "" if self.is_kept else " ALLOW FILTERING"
        text = (
            f"SELECT {', '.join(selected)} FROM {self.table.name} "
            f"WHERE {where} ORDER BY {self.column} ANN OF {self.vector} LIMIT {self.limit}{filtering}"
        )
        try:
            answer = self.table.session.execute(SimpleStatement(text, consistency_level=consistency))
        except InvalidRequest as error:
            assert "still being constructed" in str(error), f"{self}: {error}"
            return None
        rows = [row._asdict() for row in answer]
        return [((row["p"], row["c"]), row.get("score"), {column: row[column] for column in columns}) for row in rows]

    def _by_http(self, server):
        filter = {"restrictions": [relation.json for relation in self.relations], "allow_filtering": True}
        body = {"vector": self.vector, "limit": self.limit, "filter": filter, "return_columns": self._kept()}
        status, text = server.http(f"/api/v1/indexes/random/{self.table.indexes[self.column]}/ann", body)
        if status == 503:
            assert "INDEX_BUILDING" in text, f"{self}: {text}"
            return None
        assert status == 200, f"{self}: {status} {text}"
        answer = json.loads(text)
        keys = zip(*answer["primary_keys"].values())
        values = [dict(zip(answer["column_values"], row)) for row in zip(*answer["column_values"].values())]
        return list(zip(keys, answer["similarity_scores"], values))

    def fault(self):
        """What is wrong with the answer; None if a table that changed meanwhile explains it."""
        keys = [key for key, _, _ in self.rows]
        if len(set(keys)) < len(keys):
            return f"a row comes twice: {keys}"
        seen = {key: self._seen(key) for key in self.table.histories if key[1] != STATIC}
        for key, score, values in self.rows:
            found = [content for content in seen[key] if content is not None]
            if not any(self._is(content, score, values) for content in found):
                return f"row {key} with {score} and {values} is none of {found or 'what was written'}"
        certain = {key: contents for key, contents in seen.items() if all(map(self._matches, contents))}
        if len(keys) < min(self.limit, len(certain)):
            missing = [(key, seen[key]) for key in certain if key not in keys]
            return f"{len(keys)} rows of {min(self.limit, len(certain))}; not among them {missing}"
        # The scores of the vectors that may have been read with a row.
        ranks = [
            [content["score"] for content in seen[key] if content is not None and self._is(content, score, values)]
            for key, score, values in self.rows
        ]
        worst = min(map(max, ranks), default=0)
        for key, contents in certain.items():
            best = min(content["score"] for content in contents)
            if key not in keys and (best > worst + 1e-6 or len(keys) < self.limit):
                return f"row {key} with {best} is missing, and one with {worst} is there: {contents}"
        for at, scores in enumerate(ranks):
            if min(scores) > min(map(max, ranks[:at]), default=1) + 1e-6:
                return f"not in order: {self.rows}"
        return None

    def _seen(self, key):
        """What the search may have seen of a row: its contents, with statics and scores."""
        p, c = key
        statics = self.table.histories[p, STATIC].seen(self.began, self.ended)
        contents = []
        for content in self.table.histories[key].seen(self.began, self.ended):
            for static in statics if content is not None else [None]:
                contents.append(content and self._whole(p, c, content, static))
        return contents

    def _whole(self, p, c, content, static):
        row = {column: content[column] for column in "fugmv"} | {"p": p, "c": c, "st": static and static["st"]}
        row["score"] = row["v"] and 1 / (1 + sum((a - b) ** 2 for a, b in zip(row["v"], self.vector)))
        return row

    def _is(self, content, score, values):
        is_score = score is None or (content["score"] and abs(content["score"] - score) < 1e-6)
        return is_score and self._matches(content) and all(content[column] == value for column, value in values.items())

    def _matches(self, content):
        if content is None or content["score"] is None:
            return False
        return all(relation.holds(content) for relation in self.relations)

    def __str__(self):
        where = " AND ".join(relation.with_literals() for relation in self.relations)
        way = self._way.__name__.strip("_")
        return f"{way}, {self.table.indexes[self.column]} {self.vector} limit {self.limit}: {where}"


class Actor(threading.Thread):
    """A thread that writes and searches, or only searches."""

    def __init__(self, seed, number, server, table):
        super().__init__()
        self._rng = random.Random(f"{seed} {number}")
        self._server, self._table = server, table
        self._writer = Writer(self._rng, table, number) if number < WRITERS else None
        self.searches, self.error = [], None

    def run(self):
        try:
            for _ in range(STEPS):
                if self._writer and self._rng.random() < 0.6:
                    self._writer.step()
                else:
                    search = Search(self._table, self._rng)
                    search.run(self._server)
                    self.searches.append(search)
        except Exception as error:
            self.error = error


@pytest.fixture(scope="module")
def keyspace(session):
    session.execute("CREATE KEYSPACE random WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_answers_are_right_while_rows_change(server, session, keyspace, seed):
    table = Table(session, f"of_{seed}")
    actors = [Actor(seed, number, server, table) for number in range(WRITERS + SEARCHERS)]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join()
    again = f"again: make filters-test FIRST_SEED={seed} SEEDS=1"
    errors = [actor.error for actor in actors if actor.error]
    assert not errors, f"{errors}\n{again}"
    searches = [search for actor in actors for search in actor.searches]
    faults = [(search, fault) for search in searches if (fault := search.fault())]
    shown = "\n".join(f"  {search}\n    {fault}" for search, fault in faults[:3])
    assert not faults, f"{len(faults)} wrong answers of {len(searches)}, such as\n{shown}\n{again}"
    # A test whose filters found nothing would show nothing.
    assert sum(len(search.rows) for search in searches) > len(searches)
    session.execute(f"DROP TABLE {table.name}")
