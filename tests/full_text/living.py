"""Films that come, change and go: random writes to the table, and the same to the model.

Each row is written by one thread, so that the order of its writes is known. Of each row there is its
history (tests/filters/intervals.py), by which a search that runs meanwhile is judged; what the rows
are now is what `settle` makes of the model."""

import random
import threading
import time

from films import DAY, DIMENSIONS, FIRST_SEEN, LANGUAGES, TAGS, Films
from intervals import MARKER, Cell, History
from reference import TextIndex

COLUMNS = ("body", "title", "year", "lang", "seen", "tags", "plain", "v", "w")
COPIES = {"body": "note", "v": "x"}
"""Columns that another one always equals."""


class Living(Films):
    """A table of films whose rows change."""

    def __init__(self, keyspace, name, seed, partitions=4, rows_each=25):
        super().__init__(keyspace, name, partitions, rows_each, seed)
        self.rows_each = rows_each
        self.histories = {key: History({}) for key in self.by_key}
        self._lock = threading.Lock()
        self.rows, self.by_key = [], {}
        self.settle()

    def settle(self):
        """Makes the model of what the rows are now, when no writer writes."""
        self.rows = []
        for (p, c), history in self.histories.items():
            cells = history.versions[-1].cells
            if cells:
                self.rows.append({"p": p, "c": c} | {column: _value(cells, column) for column in COLUMNS})
        self.by_key = {(row["p"], row["c"]): row for row in self.rows}
        self.indexes = {"body": TextIndex(self.texts("body")), "title": TextIndex(self.texts("title"), "simple")}
        self._found = {}

    @property
    def table(self):
        return f"{self.keyspace}.{self.name}"

    def write(self, session, text, values, changes):
        """Runs a write, and does the same to the histories: `changes` has for each key the function
        of the cells of its row."""
        sent = time.time()
        session.execute(text, values)
        acknowledged = time.time()
        with self._lock:
            for key, change in changes.items():
                self.histories[key].write(sent, acknowledged, change)


def _value(cells, column):
    cell = cells.get((column, None))
    return None if cell is None else cell.value


class Writer:
    """Makes random writes to some partitions of a table."""

    def __init__(self, living, session, seed, partitions):
        self.living, self.session = living, session
        self.rng = random.Random(f"writes {seed}")
        self.partitions = list(partitions)
        # Texts and values by a generator of this writer's own.
        self._made = Films("", "", 1, 1)
        self._made.rng = self.rng

    def step(self):
        kinds = {self._insert: 6, self._update: 5, self._delete_cell: 1, self._delete_row: 1.5}
        kinds |= {self._batch: 1, self._delete_range: 0.3, self._delete_partition: 0.1}
        (kind,) = self.rng.choices(list(kinds), kinds.values())
        kind()

    def _key(self):
        return self.rng.choice(self.partitions), self.rng.randrange(self.living.rows_each)

    def _value(self, column):
        rng = self.rng
        if rng.random() < 0.08 and column not in ("w", "title"):
            return None
        makers = {
            "body": lambda: self._made.text(rng.randrange(2, 36)),
            "title": lambda: self._made.text(rng.randrange(1, 6)),
            "year": lambda: rng.randrange(1990, 2000),
            "lang": lambda: rng.choice(LANGUAGES),
            "seen": lambda: FIRST_SEEN + rng.randrange(100) * DAY,
            "tags": lambda: set(rng.sample(TAGS, rng.randrange(1, 3))),
            "plain": lambda: rng.randrange(3),
            "v": lambda: [round(rng.uniform(-1, 1), 4) for _ in range(DIMENSIONS)],
            "w": lambda: [float(rng.randrange(10_000)), float(rng.randrange(10_000))],
        }
        return makers[column]()

    def _an_insert(self):
        """(text, values, key, change) of an INSERT of all columns."""
        key, new = self._key(), {column: self._value(column) for column in COLUMNS}
        columns = {column: new[column] for column in COLUMNS} | {copy: new[column] for column, copy in COPIES.items()}
        names, markers = ", ".join(["p", "c", *columns]), ", ".join("?" * (len(columns) + 2))

        def change(_cells):
            return {MARKER: Cell(True)} | {(column, None): Cell(value) for column, value in new.items() if value is not None}

        return f"INSERT INTO {self.living.table} ({names}) VALUES ({markers})", (*key, *columns.values()), key, change

    def _insert(self):
        text, values, key, change = self._an_insert()
        self._run(text, values, {key: change})

    def _batch(self):
        parts = {key: (text, values, change) for text, values, key, change in (self._an_insert() for _ in range(3))}
        text = "BEGIN BATCH " + "; ".join(text for text, _, _ in parts.values()) + "; APPLY BATCH"
        values = [value for _, values, _ in parts.values() for value in values]
        self._run(text, values, {key: change for key, (_, _, change) in parts.items()})

    def _update(self):
        key, column = self._key(), self.rng.choice(COLUMNS)
        value = self._value(column)
        sets = [column, *([COPIES[column]] if column in COPIES else [])]

        def change(cells):
            kept = {place: cell for place, cell in cells.items() if place != (column, None)}
            return kept if value is None else kept | {(column, None): Cell(value)}

        text = f"UPDATE {self.living.table} SET {', '.join(f'{name} = ?' for name in sets)} WHERE p = ? AND c = ?"
        self._run(text, [*([value] * len(sets)), *key], {key: change})

    def _delete_cell(self):
        key, column = self._key(), self.rng.choice(["body", "year", "lang", "v", "tags"])
        names = ", ".join([column, *([COPIES[column]] if column in COPIES else [])])
        without = lambda cells: {place: cell for place, cell in cells.items() if place != (column, None)}  # noqa: E731
        self._run(f"DELETE {names} FROM {self.living.table} WHERE p = ? AND c = ?", key, {key: without})

    def _delete_row(self):
        key = self._key()
        self._run(f"DELETE FROM {self.living.table} WHERE p = ? AND c = ?", key, {key: _nothing})

    def _delete_range(self):
        p, first = self._key()
        last = min(first + self.rng.randrange(1, 6), self.living.rows_each)
        gone = {(p, c): _nothing for c in range(first, last)}
        self._run(f"DELETE FROM {self.living.table} WHERE p = ? AND c >= ? AND c < ?", (p, first, last), gone)

    def _delete_partition(self):
        p = self.rng.choice(self.partitions)
        gone = {(p, c): _nothing for c in range(self.living.rows_each)}
        self._run(f"DELETE FROM {self.living.table} WHERE p = ?", (p,), gone)

    def _run(self, text, values, changes):
        self.living.write(self.session, self.session.prepare(text), values, changes)


def _nothing(_cells):
    return {}
