"""A table of made films with words and vectors, its indexes, and the model of its rows.

Each film has its text and its vector twice: in columns that global indexes are on, and in columns
that local ones are on. Rows have no text, no vector or no value of a filter column now and then."""

import random

import numpy
from edges import BY_NAME, INT
from matrix import send
from reference import TextIndex

TEXT, TIMESTAMP = BY_NAME["text"], BY_NAME["timestamp"]

DIMENSIONS = 8

WORDS = (
    "moon river silver garden winter letter stranger captain island thunder violin harvest mirror desert lantern "
    "orchard whisper kingdom engine sailor marble falcon bridge candle forest shadow copper village dancer comet "
    "anchor blossom cellar drummer ember fountain glacier hammer ivory jungle kettle ladder meadow needle"
).split()
"""The more in front, the more often: the first are in most texts, the last in few."""

STOP_WORDS = "the a of and in to with".split()
PAIR = ("paper", "tiger")
"""Two words of which many texts have both, side by side or not."""

LANGUAGES = ["en", "de", "fr"]
TAGS = ["old", "new", "long", "loud"]
FIRST_SEEN = 1_767_225_600_000
DAY = 86_400_000


class Form:
    """The columns and the indexes of one form: global, or local with a key."""

    def __init__(self, name, text, vector, key):
        self.name, self.text, self.vector, self.key = name, text, vector, key

    def words_index(self, films):
        return f"{films.name}_words_{self.name}"

    def near_index(self, films):
        return f"{films.name}_near_{self.name}"


GLOBAL, LOCAL = FORMS = [Form("global", "body", "v", ()), Form("local", "note", "x", ("p",))]


class Films:
    """The table, and the model of its rows."""

    PARTITION, CLUSTERING = ("p",), ("c",)
    FILTERS = ("year", "lang", "seen", "tags")
    types = {"p": INT, "c": INT, "year": INT, "lang": TEXT, "seen": TIMESTAMP, "plain": INT}
    parts = {"tags": (None, TEXT)}

    def __init__(self, keyspace, name, partitions=6, rows_each=40, seed=1):
        self.keyspace, self.name = keyspace, name
        self.rng = random.Random(seed)
        self.partitions = partitions
        self.vectors = numpy.random.default_rng(seed).normal(size=(partitions * rows_each, DIMENSIONS)).astype(numpy.float32)
        self.rows = [self._row(p, c, p * rows_each + c) for p in range(partitions) for c in range(rows_each)]
        self.by_key = {(row["p"], row["c"]): row for row in self.rows}
        self.indexes = {"body": TextIndex(self.texts("body")), "title": TextIndex(self.texts("title"), "simple")}
        self._found = {}

    def equality(self, _column):
        return lambda left, right: left == right

    def texts(self, column):
        return {(row["p"], row["c"]): row[column] for row in self.rows}

    def _maybe(self, value, chance=0.08):
        return None if self.rng.random() < chance else value

    def _row(self, p, c, number):
        rng = self.rng
        row = {"p": p, "c": c, "plain": rng.randrange(3)}
        row["body"] = self._maybe(self.text(rng.randrange(5, 36)), 0.05)
        row["title"] = self.text(rng.randrange(1, 6))
        row["year"] = self._maybe(rng.randrange(1990, 2000))
        row["lang"] = self._maybe(rng.choice(LANGUAGES))
        row["seen"] = self._maybe(FIRST_SEEN + rng.randrange(100) * DAY)
        row["tags"] = set(rng.sample(TAGS, rng.randrange(3))) or None
        row["v"] = self._maybe(self.vectors[number].tolist(), 0.05)
        row["w"] = [float(rng.randrange(10_000)), float(rng.randrange(10_000))]
        return row

    def text(self, length):
        """A text of so many words, with some stop words, capitals and punctuation in between."""
        rng = self.rng
        words = []
        while len(words) < length:
            if rng.random() < 0.12:
                words += PAIR if rng.random() < 0.6 else [rng.choice(PAIR)]
            else:
                words.append(WORDS[min(int(rng.expovariate(0.12)), len(WORDS) - 1)])
        shown = []
        for word in words[:length]:
            if rng.random() < 0.2:
                shown.append(rng.choice(STOP_WORDS))
            shown.append(rng.choice([word, word, word.capitalize(), word + rng.choice(",.;!")]))
        return " ".join(shown)

    def create(self, session):
        """Makes the table and its indexes. Half of the rows come before the indexes."""
        session.execute(
            f"CREATE TABLE {self.keyspace}.{self.name} (p int, c int, body text, note text, title text, year int, lang text, "
            f"seen timestamp, tags set<text>, plain int, v vector<float, {DIMENSIONS}>, x vector<float, {DIMENSIONS}>, "
            "w vector<float, 2>, PRIMARY KEY (p, c))"
        )
        self.insert(session, self.rows[::2])
        for form in FORMS:
            for name, column, kind in [
                (form.words_index(self), form.text, "'fulltext_index'"),
                (form.near_index(self), form.vector, "'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"),
            ]:
                parts = [f"({', '.join(form.key)})"] if form.key else []
                target = ", ".join([*parts, column, *self.FILTERS])
                self._create_index(session, name, target, kind)
        self._create_index(session, f"{self.name}_titles", "title", "'fulltext_index' WITH OPTIONS = {'analyzer': 'simple'}")
        self._create_index(
            session, f"{self.name}_places", "w", "'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
        )
        self.insert(session, self.rows[1::2])

    def _create_index(self, session, name, target, kind):
        session.execute(f"CREATE CUSTOM INDEX {name} ON {self.keyspace}.{self.name} ({target}) USING {kind}")

    def insert(self, session, rows):
        columns = ["p", "c", "body", "note", "title", "year", "lang", "seen", "tags", "plain", "v", "x", "w"]
        markers = ", ".join("?" * len(columns))
        insert = session.prepare(f"INSERT INTO {self.keyspace}.{self.name} ({', '.join(columns)}) VALUES ({markers})")
        of = {"note": "body", "x": "v"}
        send(session, [(insert, [row[of.get(column, column)] for column in columns]) for row in rows])

    def wait(self, serves):
        """Waits until `serves(keyspace, index, count)` of each index, which shows that all rows have
        come."""
        count = lambda column: sum(row[column] is not None for row in self.rows)  # noqa: E731
        for form in FORMS:
            serves(self.keyspace, form.words_index(self), count("body"))
            serves(self.keyspace, form.near_index(self), count("v"))
        serves(self.keyspace, f"{self.name}_titles", count("title"))
        serves(self.keyspace, f"{self.name}_places", count("w"))

    # What searches find, by definition.

    def words(self, query, column="body", partitions=None):
        """{key: score} of the rows that a query finds. In a local index the rows of the partitions
        alone make the statistics."""
        kept = None if partitions is None else frozenset(partitions)
        at = (query, column, kept)
        if at not in self._found:
            within = None if kept is None else lambda key: key[0] in kept
            self._found[at] = self.indexes[column].scores(query, within)
        return self._found[at]

    def near(self, vector, column="v"):
        """{key: score} of the rows with a vector."""
        rows = [row for row in self.rows if row[column] is not None]
        if not rows:
            return {}
        vectors = numpy.array([row[column] for row in rows], dtype=numpy.float64)
        scores = 1 / (1 + ((vectors - numpy.array(vector)) ** 2).sum(axis=1))
        return {(row["p"], row["c"]): float(score) for row, score in zip(rows, scores)}
