"""The table of texts: changes it, and checks its contents."""

from cassandra.concurrent import execute_concurrent_with_args
from server import eventually

INSERTS_IN_FLIGHT = 32
SEARCHES_IN_FLIGHT = 8

# The longest wait for an index. The largest tables are still written while their index is built.
INDEXED_SECONDS = 900


class Table:
    """The table of texts by number. `rows` has the numbers of the texts that must be in the table
    and in the index."""

    KEYSPACE, INDEX = "texts", "near"

    def __init__(self, session, replicas, texts):
        self.session, self.texts = session, texts
        self.rows = set()
        session.execute(
            f"CREATE KEYSPACE texts WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': {replicas}}}"
        )
        session.execute(f"CREATE TABLE texts.senses (id int PRIMARY KEY, text text, v vector<float, {texts.dimensions}>)")
        self._insert = self._prepared("INSERT INTO texts.senses (id, text, v) VALUES (?, ?, ?)")
        self._update = self._prepared("UPDATE texts.senses SET v = ? WHERE id = ?")
        self._delete = self._prepared("DELETE FROM texts.senses WHERE id = ?")
        self._select = self._prepared("SELECT text FROM texts.senses WHERE id = ?")
        self._nearest = None

    def _prepared(self, text):
        statement = self.session.prepare(text)
        # The statements set what a row is to be, so running one twice has the same effect.
        statement.is_idempotent = True
        return statement

    def create_index(self):
        self.session.execute(
            "CREATE CUSTOM INDEX near ON texts.senses (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}"
        )

    def insert(self, positions):
        """Inserts the texts at some positions of the set."""
        texts = self.texts
        rows = ((texts.ids[at], texts.texts[at], texts.vectors[at].tolist()) for at in positions)
        execute_concurrent_with_args(self.session, self._insert, rows, INSERTS_IN_FLIGHT)
        self.rows.update(texts.ids[at] for at in positions)

    def put(self, number, text, vector):
        self.session.execute(self._insert, (number, text, vector.tolist()))
        self.rows.add(number)

    def update(self, number, vector):
        self.session.execute(self._update, (None if vector is None else vector.tolist(), number))
        (self.rows.discard if vector is None else self.rows.add)(number)

    def delete(self, number):
        self.session.execute(self._delete, (number,))
        self.rows.discard(number)

    def text(self, number):
        return self.session.execute(self._select, (number,)).one().text

    def nearest(self, vector, k):
        """The numbers of the nearest texts."""
        return [row.id for row in self.session.execute(self._ann(), (vector.tolist(), k))]

    def nearest_of_each(self, vectors, k):
        values = ((vector.tolist(), k) for vector in vectors)
        answers = execute_concurrent_with_args(self.session, self._ann(), values, SEARCHES_IN_FLIGHT)
        return [{row.id for row in answer.result_or_exc} for answer in answers]

    def _ann(self):
        # The statement can't be prepared before there is an index.
        if self._nearest is None:
            self._nearest = self._prepared("SELECT id FROM texts.senses ORDER BY v ANN OF ? LIMIT ?")
        return self._nearest

    def recall(self, queries, k=10):
        """The share of the true neighbours that searches for some queries find."""
        found = self.nearest_of_each(queries, k)
        true = self.texts.nearest(queries, k)
        return sum(len(a & b) for a, b in zip(found, true)) / (k * len(queries))

    def is_equal_in(self, store):
        """Waits until the index of a store has as many rows as the table must have."""
        eventually(lambda: store.serves(self.KEYSPACE, self.INDEX, len(self.rows)), seconds=INDEXED_SECONDS, every=0.2)
