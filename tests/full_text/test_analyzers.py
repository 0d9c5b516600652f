"""Tests that each analyzer makes the same of documents, queries and highlights, and what it makes of
them."""

import json

import pytest
import ranking
from analysis import ANALYZERS
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from grammar import words_as_they_are
from texts import Texts

DOCUMENTS = {
    1: "The quick brown foxes were running over the lazy dogs' houses.",
    2: "Die schnellen Füchse liefen über die Häuser der faulen Hunde",
    3: "Les renards bruns couraient rapidement dans les maisons des chiens",
    4: "Los zorros corrían rápidamente por las casas de los perros",
    5: "Le volpi correvano velocemente nelle case dei cani",
    6: "As raposas corriam rapidamente pelas casas dos cães",
    7: "Быстрые лисы бегали по домам ленивых собак",
    8: "東京都の天気は晴れです。Tokyo is sunny.",
    9: "北京大学的学生喜欢音乐",
    10: "서울의 날씨는 맑습니다",
    11: "Running-shoes, size 42; e-mail: someone@example.org C++",
    12: "ΟΔΟΣ Straße ÉCOLE naïve",
    13: "   ",
    14: "of the and",
    15: "x" * 300 + " beside a word of 300 letters",
}

# Of each analyzer: a query, and what it finds.
FOUND = {
    "standard": [("foxes", {1}), ("fox", set()), ("running", {1, 11}), ("houses the", {1}), ('"over the lazy"', {1}), ("école", {12})],
    "simple": [("the", {1, 14}), ("is", {8}), ("42", {11}), ('"running shoes"', {11}), ("FOXES", {1})],
    "whitespace": [("The", {1}), ("the", {1, 14}), ("Running-shoes,", {11}), ("running", {1}), ("ÉCOLE", {12}), ("école", set())],
    "english": [("fox", {1}), ("run", {1, 11}), ("house", {1}), ("runs dog", {1, 11}), ("the", set())],
    "german": [("haus", {2}), ("schnell", {2}), ("die", set())],
    "french": [("maison", {3}), ("courir", {3}), ("renard", {3}), ("les", set())],
    "spanish": [("casa", {4, 6}), ("perro", {4}), ("zorro", {4})],
    "italian": [("cane", {5}), ("casa", {5, 4, 6}), ("volpe", {5})],
    "portuguese": [("casa", {4, 6}), ("raposa", {6})],
    "russian": [("собака", {7}), ("дом", {7}), ("лиса", {7})],
    "cjk": [("東京", {8}), ("京都", {8}), ("天気", {8}), ("大学", {9}), ("音乐", {9}), ("서울", {10}), ("tokyo", {8}), ("the", {1, 14})],
}  # fmt: skip


@pytest.fixture(scope="module", params=ANALYZERS)
def analyzed(request, session, service, keyspace):
    return Texts(session, service, keyspace, options=f"'analyzer': '{request.param}'").create_index().put(DOCUMENTS), request.param


def test_an_analyzer_finds_what_the_reference_finds(analyzed, session, service, keyspace):
    """Each word of the documents, as a user types it."""
    texts, analyzer = analyzed
    reference = texts.reference(analyzer)
    words = sorted({word for text in DOCUMENTS.values() for word in text.split() if len(word) < 60})
    select = texts.select("bm25_words(?)")
    answers = execute_concurrent_with_args(session, select, [(word, word, word, 1000) for word in words])
    found = [(word, [(row.id, row.score) for row in answer.result_or_exc]) for word, answer in zip(words, answers)]
    for word in words[::7]:
        status, text = service.post(keyspace, texts.index, "bm25", {"words": word, "limit": 1000})
        assert status == 200, text
        answer = json.loads(text)
        found.append((word, list(zip(answer["primary_keys"]["id"], answer["scores"]))))
    for word, ranked in found:
        scores = reference.scores(words_as_they_are(word))
        assert ranking.fault(ranking.exact(scores), [key for key, _ in ranked], 1000) is None, word
        assert ranking.fault_of_scores(scores, ranked) is None, word


def test_stems_stop_words_and_pairs(analyzed):
    texts, analyzer = analyzed
    reference = texts.reference(analyzer)
    for query, found in FOUND[analyzer]:
        assert texts.found(query) == reference.matching(query), query
        if analyzer not in ("french", "spanish", "italian", "portuguese"):
            assert texts.found(query) == found, query


def test_highlights_have_the_words_that_the_analyzer_finds(analyzed, service, keyspace):
    texts, analyzer = analyzed
    query, found = FOUND[analyzer][0]
    marked = service.highlight(keyspace, texts.index, query, list(DOCUMENTS.values()))
    assert {key for key, mark in zip(DOCUMENTS, marked) if mark is not None} == texts.found(query)
    assert all("<b>" in mark and "</b>" in mark for mark in marked if mark is not None)


def test_the_options_are_shown(analyzed, service, keyspace):
    texts, analyzer = analyzed
    status, text = service.server.http(f"/api/v1/indexes/{keyspace}/{texts.index}")
    assert status == 200 and json.loads(text)["options"] == {"type": "fulltext", "analyzer": analyzer, "positions": True}


def test_without_positions_there_are_no_phrases(session, service, keyspace):
    texts = Texts(session, service, keyspace, options="'positions': 'false'").create_index().put({1: "black cat", 2: "cat black"})
    assert texts.found("black AND cat") == {1, 2}
    for way in ("cql", "http"):
        texts.way = way
        with pytest.raises(Exception, match="phrase queries need an index with 'positions': 'true'"):
            texts.find('"black cat"')
    status, text = service.post(keyspace, texts.index, "bm25", {"query": '"black cat"'})
    assert status == 400, text
    assert json.loads(service.server.http(f"/api/v1/indexes/{keyspace}/{texts.index}")[1])["options"]["positions"] is False


@pytest.mark.parametrize(
    "options, words",
    [
        ("'analyzer': 'klingon'", ["klingon", "standard", "cjk"]),
        ("'analyzer': 'chinese'", ["chinese", "cjk"]),
        ("'analyzer': 'japanese'", ["cjk"]),
        ("'analyzer': 'korean'", ["cjk"]),
        ("'positions': 'maybe'", ["maybe", "true, false"]),
        ("'similarity_function': 'cosine'", ["similarity_function"]),
        ("'index_version': 'x'", ["index_version"]),
    ],
)
def test_options_that_cannot_be_are_refused(session, service, keyspace, options, words):
    texts = Texts(session, service, keyspace, options=options)
    with pytest.raises(InvalidRequest) as error:
        texts.create_index()
    assert all(word in str(error.value) for word in words), error.value
    texts.drop()


def test_options_are_taken_in_any_case(session, service, keyspace):
    texts = Texts(session, service, keyspace, options="'analyzer': 'English', 'positions': 'True'").create_index()
    assert texts.put({1: "running"}).found("run") == {1}
    texts.drop()
