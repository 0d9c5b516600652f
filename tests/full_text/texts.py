"""A small table of texts with one index, and two ways to search it: by CQL and over HTTP."""

import itertools

from reference import TextIndex

_numbers = itertools.count()


class Texts:
    """The table `t` and its index `words` in a keyspace of many such tables. `rows` has the texts
    that must be in the table, by key."""

    def __init__(self, session, service, keyspace, way="cql", column="body text", options=""):
        self.session, self.service, self.keyspace, self.way = session, service, keyspace, way
        number = next(_numbers)
        self.name, self.index = f"t{number}", f"words{number}"
        self.options, self.rows, self._selects = options, {}, {}
        session.execute(f"CREATE TABLE {self.table} (id int PRIMARY KEY, {column})")

    @property
    def table(self):
        return f"{self.keyspace}.{self.name}"

    def create_index(self):
        options = f" WITH OPTIONS = {{{self.options}}}" if self.options else ""
        self.session.execute(f"CREATE CUSTOM INDEX {self.index} ON {self.table} (body) USING 'fulltext_index'{options}")
        self.service.eventually_serves(self.keyspace, self.index)
        return self

    def put(self, rows):
        insert = self.session.prepare(f"INSERT INTO {self.table} (id, body) VALUES (?, ?)")
        for id, text in rows.items():
            self.session.execute(insert, (id, text))
        self.rows |= rows
        return self

    def delete(self, id):
        self.session.execute(f"DELETE FROM {self.table} WHERE id = {id}")
        del self.rows[id]

    def ranked(self, query, limit=1000):
        """[(key, score)] of a search, best first."""
        if self.way == "http":
            return [(key, score) for (key,), score in self.service.bm25(self.keyspace, self.index, query, limit)]
        rows = self.session.execute(self.select(), (query, query, query, limit))
        return [(row.id, row.score) for row in rows]

    def select(self, words="?"):
        """The search, prepared: the query thrice, and the limit. `words` is the term of the query."""
        if words not in self._selects:
            self._selects[words] = self.session.prepare(
                f"SELECT id, BM25_SCORE(body, {words}) AS score FROM {self.table} "
                f"WHERE BM25(body, {words}) > 0 ORDER BY BM25(body, {words}) LIMIT ?"
            )
        return self._selects[words]

    def find(self, query, limit=1000):
        """The keys of a search, best first."""
        return [key for key, _ in self.ranked(query, limit)]

    def found(self, query):
        return set(self.find(query))

    def reference(self, analyzer="standard"):
        return TextIndex(self.rows, analyzer)

    def drop(self):
        self.session.execute(f"DROP TABLE {self.table}")
