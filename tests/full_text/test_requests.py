"""Tests of the routes of text indexes: their bodies, their statuses, and what they refuse."""

import json
import urllib.error

import pytest
from cassandra import InvalidRequest
from server import eventually
from service import has_words, restriction, restrictions, tree
from texts import Texts

DOCUMENTS = {1: "a black cat", 2: "a <black> dog & a cat", 3: "nothing", 4: None}
ROUTES = {
    "bm25": {"query": "cat"},
    "matches": {"query": "cat"},
    "highlight": {"query": "cat", "documents": ["a cat"]},
    "scores": {"query": "cat", "texts": ["a cat"]},
}
DEFAULT_BODY_BYTES, TEXTS_BODY_BYTES = 2 << 20, 32 << 20

# Queries that have no meaning, with the character at which that shows, from 1.
MALFORMED = ["(cat", "cat)", '"cat', "cat AND", "OR cat", "cat AND OR dog", "cat^", "cat^x", "NOT", "+", "cat -", "()("]


@pytest.fixture(scope="module")
def texts(session, service, keyspace):
    return Texts(session, service, keyspace, column="body text, v vector<float, 2>, year int").create_index().put(DOCUMENTS)


@pytest.fixture(scope="module")
def others(texts, session, service, keyspace):
    """An index on vectors, and a text index with filter columns, of the same table."""
    session.execute(f"CREATE CUSTOM INDEX near ON {texts.table} (v) USING 'vector_index'")
    session.execute(f"CREATE TABLE {keyspace}.local (p int, c int, body text, year int, PRIMARY KEY (p, c))")
    session.execute(f"CREATE CUSTOM INDEX of_tenants ON {keyspace}.local ((p), body, year) USING 'fulltext_index'")
    for p in (1, 2):
        session.execute(f"INSERT INTO {keyspace}.local (p, c, body, year) VALUES ({p}, 1, 'a cat', 2000)")
    for index in ("near", "of_tenants"):
        service.eventually_serves(keyspace, index)
    service.wait(keyspace, "of_tenants", 2)


def post(service, keyspace, index, route, body):
    return service.post(keyspace, index, route, body)


def test_an_answer_has_keys_and_scores(service, keyspace, texts):
    status, text = post(service, keyspace, texts.index, "bm25", {"query": "cat", "limit": 5})
    answer = json.loads(text)
    assert status == 200 and set(answer) == {"primary_keys", "scores"}
    assert answer["primary_keys"]["id"] == [1, 2] and answer["scores"][0] > answer["scores"][1] > 0


def test_the_limit_is_one_unless_given(service, keyspace, texts):
    for body in ({"query": "cat"}, {"query": "cat", "filter": None}, {"query": "cat", "filter": restrictions()}):
        status, text = post(service, keyspace, texts.index, "bm25", body)
        assert status == 200 and json.loads(text)["primary_keys"] == {"id": [1]}


def test_words_are_taken_as_they_are(service, keyspace, texts):
    for words in ("cat", 'AND ("cat', "-cat", "cat^", "NOT cat"):
        status, text = post(service, keyspace, texts.index, "bm25", {"words": words, "limit": 5})
        assert status == 200 and json.loads(text)["primary_keys"]["id"] == [1, 2], words
    for body in ({"limit": 1}, {"query": "cat", "words": "cat"}):
        assert post(service, keyspace, texts.index, "bm25", body)[0] == 422


def test_columns_come_with_the_keys(service, keyspace, others):
    body = {"query": "cat", "limit": 5, "filter": restrictions(restriction("==", "p", 1)), "return_columns": ["year"]}
    status, text = post(service, keyspace, "of_tenants", "bm25", body)
    assert status == 200 and json.loads(text)["column_values"] == {"year": [2000]}


def test_pages_have_all_that_match(service, keyspace, texts):
    for limit in (1, 2, 100):
        assert sorted(service.matches(keyspace, texts.index, "cat OR nothing", limit)) == [(1,), (2,), (3,)]
    assert service.matches(keyspace, texts.index, "nowhere", 10) == []
    for after in ("x", "00", "", 5):
        status, _ = post(service, keyspace, texts.index, "matches", {"query": "cat", "after": after})
        assert status in (400, 422)


def test_pages_go_on_after_the_index_was_built_again(session, service, keyspace):
    rows = {id: "a cat" for id in range(5)}
    texts = Texts(session, service, keyspace).create_index().put(rows)

    def page(after):
        return json.loads(post(service, keyspace, texts.index, "matches", {"query": "cat", "limit": 2} | after)[1])

    first = page({})
    session.execute(f"TRUNCATE {texts.table}")
    texts.put(rows)

    def rest():
        found, last = [], first
        while "next" in last:
            last = page({"after": last["next"]})
            found += last.get("primary_keys", {}).get("id", [])
        return found

    eventually(lambda: sorted(first["primary_keys"]["id"] + rest()) == sorted(rows))
    texts.drop()


@pytest.mark.parametrize("query", MALFORMED)
def test_a_malformed_query_is_400_with_the_place(session, service, keyspace, texts, query):
    for route, body in ROUTES.items():
        status, text = post(service, keyspace, texts.index, route, body | {"query": query})
        assert status == 400 and "at character " in text and " of the query" in text, f"{route}: {text}"
    for select in (
        "SELECT id FROM {} WHERE BM25(body, %s) > 0",
        "SELECT id FROM {} ORDER BY BM25(body, %s) LIMIT 3",
        "SELECT id, BM25_HIGHLIGHT(body, %s) FROM {} ORDER BY BM25(body, 'cat') LIMIT 3",
        "SELECT id FROM {} ORDER BY RRF(BM25(body, 'cat'), BM25(body, %s)) LIMIT 3",
        "SELECT id FROM {} ORDER BY 2 * BM25_SCORE(body, %s) LIMIT 3",
    ):
        with pytest.raises(InvalidRequest, match=r"at character \d+ of the query"):
            session.execute(select.format(texts.table), (query,))


@pytest.mark.parametrize("query, place", [("(cat", 1), ("cat)", 4), ('dog "cat', 5), ("cat^", 4), ("cat AND", 5)])
def test_the_place_is_where_the_fault_shows(service, keyspace, texts, query, place):
    _, text = post(service, keyspace, texts.index, "bm25", {"query": query})
    assert f"at character {place} of the query" in text


@pytest.mark.parametrize(
    "route, body",
    [
        ("bm25", {"query": "cat", "limit": 0}),
        ("bm25", {"query": "cat", "limit": -1}),
        ("bm25", {"query": "cat", "limit": "1"}),
        ("bm25", {"query": 5}),
        ("bm25", {"query": ["cat"]}),
        ("bm25", {"query": "cat", "filter": []}),
        ("matches", {"query": "cat", "limit": 0}),
        ("highlight", {"query": "cat"}),
        ("highlight", {"query": "cat", "documents": "a cat"}),
        ("highlight", {"query": "cat", "documents": [5]}),
        ("highlight", {"query": "cat", "documents": ["a cat"], "options": {"max_num_chars": "x"}}),
        ("scores", {"query": "cat"}),
    ],
)
def test_a_body_of_a_wrong_shape_is_422(service, keyspace, texts, route, body):
    status, text = post(service, keyspace, texts.index, route, body)
    assert status == 422 and text


@pytest.mark.parametrize("route", ROUTES)
def test_statuses_that_all_routes_have(service, keyspace, texts, others, route):
    body, index = ROUTES[route], texts.index
    assert post(service, keyspace, index, route, body)[0] == 200
    assert post(service, keyspace, index, route, b'{"query": ')[0] == 400
    assert post(service, keyspace, index, route, body | {"quary": "x"})[0] == 400
    for missing in ("none", "near"):
        status, text = post(service, keyspace, missing, route, body)
        assert status == 404 and "missing index" in text
    headers = {"Content-type": "text/plain"}
    path = f"/api/v1/indexes/{keyspace}/{index}/{route}"
    assert service.server.http(path, json.dumps(body).encode(), headers)[0] == 415
    assert service.server.http(path)[0] == 405


def test_a_text_index_has_no_neighbours(service, keyspace, texts):
    status, text = post(service, keyspace, texts.index, "ann", {"vector": [1, 0]})
    assert status == 404 and "missing index" in text


@pytest.mark.parametrize(
    "filter, words",
    [
        (restrictions(restriction("==", "year", 5)), ["year"]),
        (restrictions(restriction("==", "nothing", 5)), ["nothing"]),
        (restrictions(restriction("==", "id", "x")), ["id", "int"]),
        (tree({"or": [restriction("==", "id", 1), restriction("==", "year", 5)]}), ["year"]),
        (tree({"not": has_words("body", "(cat")}), ["at character 1"]),
        ({"restrictions": [restriction("==", "id", 1)]}, ["requires ALLOW FILTERING"]),
    ],
)
def test_a_filter_that_cannot_be_served_is_400(service, keyspace, texts, filter, words):
    for route in ("bm25", "matches"):
        status, text = post(service, keyspace, texts.index, route, ROUTES[route] | {"filter": filter})
        assert status == 400 and all(word in text for word in words), text


def test_words_of_a_column_without_a_text_index_are_no_filter(service, keyspace, texts):
    for column in ("id", "year", "nothing"):
        status, text = post(service, keyspace, texts.index, "bm25", {"query": "cat", "filter": tree(has_words(column, "cat"))})
        assert status in (400, 404) and column in text, text


def test_a_filter_says_one_thing(service, keyspace, texts):
    for filter in ({}, {"and": [], "or": []}, {"restrictions": [], "not": {"and": []}}, {"xor": []}, {"or": 5}):
        status, _ = post(service, keyspace, texts.index, "bm25", {"query": "cat", "filter": filter})
        assert status in (400, 422), filter


def test_an_index_with_a_key_is_searched_by_it_alone(service, session, keyspace, others):
    by_key = restrictions(restriction("==", "p", 1))
    assert [key for key, _ in service.bm25(keyspace, "of_tenants", "cat", 5, by_key)] == [(1, 1)]
    for filter in (None, restrictions(restriction("==", "year", 2000)), tree({"not": restriction("==", "p", 2)})):
        status, text = post(service, keyspace, "of_tenants", "bm25", {"query": "cat", "filter": filter})
        assert status == 400 and "only a local" in text, text
    select = f"SELECT c FROM {keyspace}.local WHERE {{}} ORDER BY BM25(body, 'cat') LIMIT 3"
    assert [row.c for row in session.execute(select.format("p = 1"))] == [1]
    with pytest.raises(InvalidRequest, match="only a local"):
        session.execute(select.format("year = 2000"))


# Highlights.


def test_an_excerpt_has_the_words_in_bold(service, keyspace, texts):
    documents = ["a black cat", "no such animal", "CATS and a Cat", "", "cat <cat> & \"cat\""]
    marked = service.highlight(keyspace, texts.index, "cat", documents)
    assert marked[:4] == ["a black <b>cat</b>", None, "CATS and a <b>Cat</b>", None]
    assert marked[4].startswith("<b>cat</b> &lt;<b>cat</b>&gt; &amp; ")


def test_an_excerpt_is_short_and_of_the_best_place(service, keyspace, texts):
    document = "word " * 100 + "the black cat sat here " + "word " * 100
    (marked,) = service.highlight(keyspace, texts.index, "black cat", [document])
    assert "<b>black</b> <b>cat</b>" in marked
    assert len(marked.replace("<b>", "").replace("</b>", "")) <= 150
    (marked,) = service.highlight(keyspace, texts.index, "cat", [document], max_num_chars=20, pre_tag="[", post_tag="]")
    assert "[cat]" in marked and len(marked) <= 22


def test_a_query_without_words_marks_nothing(service, keyspace, texts):
    for query in ("", "the", "elephant"):
        assert service.highlight(keyspace, texts.index, query, ["a black cat", "the"]) == [None, None]


def test_a_body_of_highlights_may_be_large_but_not_too_large(service, keyspace, texts):
    documents = ["a cat " + "word " * 200_000] * 4
    assert len(json.dumps(documents)) > DEFAULT_BODY_BYTES
    marked = service.highlight(keyspace, texts.index, "cat", documents)
    assert all(mark.startswith("a <b>cat</b>") for mark in marked)
    for route, body, bytes_max in [
        ("highlight", {"query": "cat", "documents": ["word " * (TEXTS_BODY_BYTES // 5)]}, TEXTS_BODY_BYTES),
        ("scores", {"query": "cat", "texts": ["word " * (TEXTS_BODY_BYTES // 5)]}, TEXTS_BODY_BYTES),
        ("bm25", {"query": "word " * (DEFAULT_BODY_BYTES // 5)}, DEFAULT_BODY_BYTES),
        ("matches", {"query": "word " * (DEFAULT_BODY_BYTES // 5)}, DEFAULT_BODY_BYTES),
    ]:
        assert len(json.dumps(body)) > bytes_max
        try:
            status = post(service, keyspace, texts.index, route, body)[0]
        except urllib.error.URLError as error:
            # The server answers and closes before it has read all. What is still sent then meets no reader.
            assert isinstance(error.reason, (BrokenPipeError, ConnectionResetError)), error
            continue
        assert status == 413, route


# Scores, state and metrics.


def test_texts_are_scored_by_the_index(service, keyspace, texts):
    ranked = dict(texts.ranked("black cat"))
    body = {"query": "black cat", "texts": [DOCUMENTS[1], "elephant", None, DOCUMENTS[2]]}
    status, text = post(service, keyspace, texts.index, "scores", body)
    scores = json.loads(text)["scores"]
    assert status == 200 and scores[1:3] == [None, None]
    assert [scores[0], scores[3]] == pytest.approx([ranked[1], ranked[2]], rel=1e-4)


def test_the_list_has_text_indexes(service, keyspace, texts):
    service.wait(keyspace, texts.index, 3)
    (mine,) = [each for each in json.loads(service.server.http("/api/v1/indexes")[1]) if each["index"] == texts.index]
    assert mine["options"] == {"type": "fulltext", "analyzer": "standard", "positions": True}
    assert (mine["status"], mine["count"]) == ("SERVING", 3)


def test_metrics_of_an_index_go_with_it(session, service, keyspace):
    texts = Texts(session, service, keyspace).create_index().put({1: "a cat"})

    def series():
        lines = service.server.http("/metrics")[1].splitlines()
        return {line.split("{")[0] for line in lines if f'index_name="{texts.index}"' in line}

    wanted = {"fts_index_size_bytes", "fts_segment_count", "index_size"}
    assert texts.found("cat") == {1}
    eventually(lambda: wanted <= series())
    texts.drop()
    eventually(lambda: not wanted & series())
