"""Tests of what a text index finds, one for each behaviour that the contract names (section 5, row
`fts`), by CQL and over HTTP."""

import ranking
import pytest
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from films import WORDS, Films
from server import eventually
from service import Refused
from texts import Texts

PETS = {
    1: "The black cat sat on the mat.",
    2: "A dog and a cat are friends",
    3: "Dogs bark; the dog sleeps",
    4: "black dog, black night",
    5: "Nothing to see here",
    6: None,
}


@pytest.fixture(params=["cql", "http"])
def texts(request, session, service, keyspace):
    """Makes a table of texts, searched in one of two ways."""
    made = []

    def make(rows, **options):
        made.append(Texts(session, service, keyspace, request.param, **options))
        return made[-1].create_index().put(rows)

    yield make
    for one in made:
        one.drop()


def test_an_index_comes_and_goes(texts, session, service, keyspace):
    pets = texts(PETS)
    assert pets.find("friends") == [2]
    # A null is no text.
    service.wait(keyspace, pets.index, 5)
    session.execute(f"DROP INDEX {keyspace}.{pets.index}")
    with pytest.raises((InvalidRequest, Refused)) as error:
        eventually(lambda: pets.find("friends") != [2])
    assert "missing index" in str(error.value) or "requires the column to be indexed using 'fulltext_index'" in str(error.value)
    eventually(lambda: service.post(keyspace, pets.index, "bm25", {"query": "cat"})[0] == 404)


def test_rows_come_change_and_go(texts):
    pets = texts(PETS)
    pets.put({7: "a parrot"})
    assert pets.find("parrot") == [7]
    pets.put({7: "a hamster"})
    assert (pets.find("parrot"), pets.find("hamster")) == ([], [7])
    pets.put({7: None})
    assert pets.find("hamster") == []
    pets.put({7: "a parrot again"})
    pets.delete(7)
    assert pets.find("parrot") == []
    for _ in range(3):
        pets.put({7: "a parrot again"})
        assert pets.find("parrot") == [7]
        pets.delete(7)
        assert pets.find("parrot") == []


@pytest.mark.parametrize(
    "query, found",
    [
        ("cat", {1, 2}),
        ("cat night", {1, 2, 4}),
        ("cat OR night", {1, 2, 4}),
        ("cat AND dog", {2}),
        ("cat AND black", {1}),
        ("cat NOT dog", {1}),
        ("cat AND NOT dog", {1}),
        ("cat AND dog OR night", {2, 4}),
        ("night OR cat AND dog", {2, 4}),
        ("(cat OR night) AND black", {1, 4}),
        ("(cat OR night) AND (dog OR mat)", {1, 2, 4}),
        ("+dog -cat", {3, 4}),
        ("+black cat", {1, 4}),
        ("NOT cat", set()),
        ('"black cat"', {1}),
        ('"cat black"', set()),
        ('"black dog"', {4}),
        ('"dog black"', {4}),
        ('"black night"', {4}),
        ('"dog night"', set()),
        ('"dog night"~1', {4}),
        # Between both there are two stop words.
        ('"dog cat"', set()),
        ('"dog and a cat"', {2}),
        ('"cat sat on the mat"', {1}),
        ("slee*", {3}),
        ("ca*", {1, 2}),
        ("do*", {2, 3, 4}),
        ("cot~1", {1, 2}),
        ("sleps~1", {3}),
        ("nigt~1 friendz~1", {2, 4}),
        ("cat^2 OR night^0.5", {1, 2, 4}),
        # Nothing is found.
        ("elephant", set()),
        ("elephant AND cat", set()),
        ("zz*", set()),
        # Upper case, punctuation, stop words.
        ("CAT", {1, 2}),
        ("Cat,", {1, 2}),
        ("mat.", {1}),
        ("the", set()),
        ("the cat", {1, 2}),
        ("the AND cat", {1, 2}),
        ("\\\"cat\\\" \\(night\\)", {1, 2, 4}),
    ],
)
def test_a_query_finds(pets, query, found):
    assert pets.found(query) == found == pets.reference().matching(query)


@pytest.fixture(scope="module", params=["cql", "http"])
def pets(request, session, service, keyspace):
    return Texts(session, service, keyspace, request.param).create_index().put(PETS)


def test_the_best_come_first(pets):
    for query in ("dog", "cat", "black", "black dog", "dog night mat", "black^3 dog", "do*", '"black dog" cat'):
        scores = pets.reference().scores(query)
        ranked = pets.ranked(query)
        assert ranking.fault(ranking.exact(scores), [key for key, _ in ranked], 1000) is None
        assert ranking.fault_of_scores(scores, ranked) is None, query


def test_a_boost_is_a_factor(pets):
    once, thrice = dict(pets.ranked("night")), dict(pets.ranked("night^3"))
    assert thrice == pytest.approx({key: 3 * score for key, score in once.items()}, rel=1e-4)


def test_a_limit_is_kept(pets):
    best = pets.find("dog cat black")
    assert len(best) == 4
    for limit in (1, 2, 3, 4, 1000):
        assert pets.find("dog cat black", limit) == best[:limit]


def test_an_index_over_rows_that_are_there(session, service, keyspace):
    for way in ("cql", "http"):
        pets = Texts(session, service, keyspace, way).put(PETS).create_index()
        service.wait(keyspace, pets.index, 5)
        assert pets.found("cat") == {1, 2}
        session.execute(f"DROP INDEX {keyspace}.{pets.index}")
        eventually(lambda: service.post(keyspace, pets.index, "bm25", {"query": "cat"})[0] == 404)  # noqa: B023
        pets.put({8: "one more cat"})
        pets.create_index()
        service.wait(keyspace, pets.index, 6)
        assert pets.found("cat") == {1, 2, 8}
        pets.drop()


def test_a_large_set(session, service, keyspace):
    """Of thousands of texts, written side by side, with half of them deleted: scores are those of the
    rows that live."""
    films = Films(keyspace, "made", partitions=1, rows_each=1, seed=9)
    large = Texts(session, service, keyspace).create_index()
    rows = {id: films.text(films.rng.randrange(3, 60)) for id in range(4000)}
    insert = session.prepare(f"INSERT INTO {large.table} (id, body) VALUES (?, ?)")
    execute_concurrent_with_args(session, insert, rows.items(), concurrency=64)
    large.rows = rows
    service.wait(keyspace, large.index, 4000)
    _is_right(large)
    execute_concurrent_with_args(
        session, session.prepare(f"DELETE FROM {large.table} WHERE id = ?"), [(id,) for id in range(0, 4000, 2)], concurrency=64
    )
    large.rows = {id: text for id, text in rows.items() if id % 2}
    _is_right(large)
    service.wait(keyspace, large.index, 2000)
    _is_right(large)
    large.drop()


def _is_right(large):
    reference = large.reference()
    for way in ("cql", "http"):
        large.way = way
        for query in ("moon", WORDS[-1], "moon AND silver", '"paper tiger"', "river garden winter letter ladder"):
            scores, ranked = reference.scores(query), large.ranked(query)
            told = dict(ranked)
            assert len(told) == len(ranked) == min(1000, len(scores)) and set(told) <= set(scores)
            assert told == pytest.approx({key: scores[key] for key in told}, rel=ranking.SCORE_TOLERANCE), query
            worst = min(told.values())
            better = [key for key, score in scores.items() if score > worst * (1 + 2 * ranking.SCORE_TOLERANCE)]
            assert set(better) <= set(told), query
            assert [score for _, score in ranked] == sorted(told.values(), reverse=True), query


def test_types_and_kinds_of_columns(session, service, keyspace):
    session.execute(
        f"CREATE TABLE {keyspace}.kinds (p int, c text, a ascii, v varchar, s text STATIC, l list<text>, n int, PRIMARY KEY (p, c))"
    )
    for column in ("c", "a", "v", "s"):
        session.execute(f"CREATE CUSTOM INDEX kinds_{column} ON {keyspace}.kinds ({column}) USING 'fulltext_index'")
        service.eventually_serves(keyspace, f"kinds_{column}")
    for p, c, word in [(1, "red fox", "one"), (1, "blue fox", "two"), (2, "red hen", "three")]:
        session.execute(
            f"INSERT INTO {keyspace}.kinds (p, c, a, v) VALUES (%s, %s, %s, %s)", (p, c, f"ascii {word}", f"varchar {word}")
        )
    session.execute(f"UPDATE {keyspace}.kinds SET s = 'of all rows' WHERE p = 1")
    for column, query, keys in [
        ("c", "fox", {(1, "red fox"), (1, "blue fox")}),
        ("c", "red", {(1, "red fox"), (2, "red hen")}),
        ("a", "two", {(1, "blue fox")}),
        ("v", "varchar AND three", {(2, "red hen")}),
        ("s", "rows", {(1, "red fox"), (1, "blue fox")}),
    ]:
        text = f"SELECT p, c FROM {keyspace}.kinds ORDER BY BM25({column}, '{query}') LIMIT 10"
        assert {(row.p, row.c) for row in session.execute(text)} == keys, text
        assert {key for key, _ in service.bm25(keyspace, f"kinds_{column}", query, 10)} == keys, text
    for column in ("n", "l", "p"):
        with pytest.raises(InvalidRequest) as error:
            session.execute(f"CREATE CUSTOM INDEX ON {keyspace}.kinds ({column}) USING 'fulltext_index'")
        assert column in str(error.value)
    session.execute(f"DROP TABLE {keyspace}.kinds")
