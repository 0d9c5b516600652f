"""Tests that a search for words sees every write that was acknowledged before it: inserts, updates,
all kinds of deletes, values that expire, TRUNCATE, static columns."""

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement
from server import eventually


class Notes:
    """A table with a text in a regular column and one in a static column, each with an index."""

    def __init__(self, session, service, keyspace):
        self.session, self.service, self.keyspace = session, service, keyspace
        session.execute(
            f"CREATE TABLE {keyspace}.notes (p int, c int, body text, topic text STATIC, tag int, v vector<float, 2>, PRIMARY KEY (p, c))"
        )
        for name, target, kind in [
            ("notes_body", "body, tag, topic", "fulltext_index"),
            ("notes_local", "(p), body, tag", "fulltext_index"),
            ("notes_topic", "topic", "fulltext_index"),
            ("notes_v", "v, tag, topic", "vector_index"),
        ]:
            session.execute(f"CREATE CUSTOM INDEX {name} ON {keyspace}.notes ({target}) USING '{kind}'")
            service.eventually_serves(keyspace, name)

    def write(self, text, *values):
        self.session.execute(text.replace("notes", f"{self.keyspace}.notes"), values)

    def insert(self, p, c, body, ttl=None):
        using = f" USING TTL {ttl}" if ttl else ""
        self.write(f"INSERT INTO notes (p, c, body, tag, v) VALUES (%s, %s, %s, %s, [1, 1]){using}", p, c, body, c)

    def found(self, query, where=""):
        """The keys that each way of searching finds, which must agree."""
        more = f" AND {where}" if where else ""
        table = f"{self.keyspace}.notes"
        texts = [
            f"SELECT p, c FROM {table} WHERE BM25(body, %s) > 0{more} ORDER BY BM25(body, %s) LIMIT 1000",
            f"SELECT p, c FROM {table} WHERE BM25(body, %s) > 0{more} ORDER BY v ANN OF [1, 0] LIMIT 1000",
            f"SELECT p, c FROM {table} WHERE BM25(body, %s) > 0{more}",
        ]
        answers = [{(row.p, row.c) for row in self.session.execute(text, [query] * text.count("%s"))} for text in texts]
        if not where:
            answers.append({key for key, _ in self.service.bm25(self.keyspace, "notes_body", query, 1000)})
            answers.append(set(self.service.matches(self.keyspace, "notes_body", query, 3)))
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]

    def topics(self, query):
        rows = self.session.execute(
            f"SELECT p, c FROM {self.keyspace}.notes ORDER BY BM25(topic, %s) LIMIT 1000", (query,)
        )
        return {(row.p, row.c) for row in rows}


@pytest.fixture(scope="module")
def made(session, service, keyspace):
    return Notes(session, service, keyspace)


@pytest.fixture
def notes(made):
    yield made
    made.write("TRUNCATE notes")
    eventually(lambda: serves(made))


def serves(notes):
    """Whether all indexes answer again after a TRUNCATE."""
    names = ("notes_body", "notes_local", "notes_topic", "notes_v")
    return all(notes.service.server.index_status(notes.keyspace, name)["status"] == "SERVING" for name in names)


def test_each_write_is_found_by_the_next_search(notes):
    for number in range(30):
        notes.insert(1, number, f"note number{number}")
        assert notes.found(f"number{number}") == {(1, number)}
        notes.insert(1, number, f"changed to value{number}")
        assert notes.found(f"number{number}") == set()
        assert notes.found(f"value{number}") == {(1, number)}
    assert len(notes.found("changed")) == 30


def test_each_search_knows_writes_of_other_clients(notes):
    rows = [(number % 5, number, f"word{number} all") for number in range(500)]
    insert = notes.session.prepare(f"INSERT INTO {notes.keyspace}.notes (p, c, body, v) VALUES (?, ?, ?, [1, 1])")
    execute_concurrent_with_args(notes.session, insert, rows, concurrency=32)
    assert notes.found("all") == {(p, c) for p, c, _ in rows}
    assert notes.found("word7 word499") == {(2, 7), (4, 499)}


def test_all_kinds_of_deletes(notes):
    for p in (1, 2, 3):
        for c in range(10):
            notes.insert(p, c, f"note of {'even' if c % 2 == 0 else 'odd'}")
    notes.write("DELETE FROM notes WHERE p = 1 AND c = 0")
    assert notes.found("even") == {(p, c) for p in (1, 2, 3) for c in range(0, 10, 2)} - {(1, 0)}
    notes.write("DELETE body FROM notes WHERE p = 1 AND c = 2")
    assert (1, 2) not in notes.found("even")
    notes.write("UPDATE notes SET body = null WHERE p = 1 AND c = 4")
    assert (1, 4) not in notes.found("even")
    notes.write("DELETE FROM notes WHERE p = 2 AND c >= 3 AND c < 8")
    assert {key for key in notes.found("note") if key[0] == 2} == {(2, c) for c in (0, 1, 2, 8, 9)}
    notes.write("DELETE FROM notes WHERE p = 3")
    assert {p for p, _ in notes.found("note")} == {1, 2}
    notes.write("TRUNCATE notes")
    eventually(lambda: serves(notes))
    assert notes.found("note") == set()
    notes.insert(1, 1, "note again")
    assert notes.found("note") == {(1, 1)}


def test_conditional_writes_and_batches(notes):
    notes.write("INSERT INTO notes (p, c, body, v) VALUES (1, 1, 'first note', [1, 1]) IF NOT EXISTS")
    notes.write("INSERT INTO notes (p, c, body, v) VALUES (1, 1, 'second note', [1, 1]) IF NOT EXISTS")
    assert (notes.found("first"), notes.found("second")) == ({(1, 1)}, set())
    notes.write("UPDATE notes SET body = 'third note' WHERE p = 1 AND c = 1 IF body = 'first note'")
    assert (notes.found("first"), notes.found("third")) == (set(), {(1, 1)})
    batch = BatchStatement()
    insert = notes.session.prepare(f"INSERT INTO {notes.keyspace}.notes (p, c, body, v) VALUES (?, ?, ?, [1, 1])")
    for c in range(20):
        batch.add(insert, (2, c, f"batched note {c}"))
    notes.session.execute(batch)
    assert notes.found("batched") == {(2, c) for c in range(20)}


def test_texts_that_expire(notes):
    notes.insert(1, 1, "note for ever")
    notes.insert(1, 2, "note for a moment", ttl=1)
    notes.write("UPDATE notes USING TTL 1 SET body = 'soon gone' WHERE p = 1 AND c = 1")
    select = f"SELECT p, c FROM {notes.keyspace}.notes WHERE BM25(body, 'note OR gone') > 0"
    # Between two ways of searching a text may expire.
    eventually(lambda: not notes.session.execute(select).all())
    assert notes.found("note OR gone") == set()


def test_values_of_filter_columns_follow_their_rows(notes):
    for c in range(6):
        notes.insert(1, c, "note")
    assert notes.found("note", "tag >= 3") == {(1, 3), (1, 4), (1, 5)}
    notes.write("UPDATE notes SET tag = 9 WHERE p = 1 AND c = 0")
    notes.write("DELETE tag FROM notes WHERE p = 1 AND c = 5")
    assert notes.found("note", "tag >= 3") == {(1, 0), (1, 3), (1, 4)}
    assert notes.found("note", "p = 1 AND tag < 3") == {(1, 1), (1, 2)}


def test_static_texts_are_those_of_all_rows(notes):
    for c in range(3):
        notes.insert(1, c, "note")
    notes.insert(2, 1, "note")
    notes.write("UPDATE notes SET topic = 'about cats' WHERE p = 1")
    assert notes.topics("cats") == {(1, 0), (1, 1), (1, 2)}
    notes.insert(1, 3, "note")
    assert notes.topics("cats") == {(1, 0), (1, 1), (1, 2), (1, 3)}
    assert notes.found("note", "topic = 'about cats'") == {(1, 0), (1, 1), (1, 2), (1, 3)}
    notes.write("UPDATE notes SET topic = 'about dogs' WHERE p = 1")
    assert (notes.topics("cats"), len(notes.topics("dogs"))) == (set(), 4)
    notes.write("DELETE topic FROM notes WHERE p = 1")
    assert notes.topics("dogs") == set()


def test_scores_are_those_of_rows_that_live_now(notes):
    """Of a common word the score rises as rows with it go."""
    for c in range(20):
        notes.insert(1, c, "common note")
    notes.insert(1, 20, "other note")

    def score():
        rows = notes.session.execute(
            f"SELECT BM25_SCORE(body, 'common') AS score FROM {notes.keyspace}.notes ORDER BY BM25(body, 'common') LIMIT 1"
        )
        return rows.one().score

    before = score()
    notes.write("DELETE FROM notes WHERE p = 1 AND c < 19")
    assert score() > 3 * before
