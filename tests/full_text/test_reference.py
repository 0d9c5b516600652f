"""Tests of the reference itself, by numbers that were computed by hand, without a server."""

import math

import pytest
import ranking
from analysis import tokens
from grammar import Boolean, Malformed, Nothing, Phrase, Term, parse, words_as_they_are
from ranking import Entry
from reference import TextIndex, is_near

TEXTS = {1: "the black cat sat", 2: "a dog and a cat", 3: None, 4: "black dogs, black"}


def test_a_score_is_that_of_the_formula():
    # Three texts with 3, 2 and 3 words; two of them have the word.
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    norm = lambda length: 1.2 * (1 - 0.75 + 0.75 * length / (8 / 3))  # noqa: E731
    wanted = {1: idf * 2.2 / (1 + norm(3)), 4: idf * 2 * 2.2 / (2 + norm(3))}
    assert TextIndex(TEXTS).scores("black") == pytest.approx(wanted)


def test_a_phrase_has_the_idf_of_all_its_words():
    index = TextIndex(TEXTS)
    assert index.scores('"black cat"')[1] == pytest.approx(index.scores("black")[1] + index.scores("cat")[1])
    # A stop word leaves a gap.
    assert TextIndex({1: "cat of dogs", 2: "cat dogs"}).matching('"cat the dogs"') == {1}
    assert TextIndex({1: "a cat sleeps now", 2: "cat now"}).matching('"cat now"~1') == {1, 2}
    assert TextIndex({1: "now cat"}).matching('"cat now"~1') == set()
    assert TextIndex({1: "now cat"}).matching('"cat now"~2') == {1}


def test_only_what_is_within_makes_the_statistics():
    index = TextIndex({(1, 1): "cat", (1, 2): "dog", (2, 1): "cat", (2, 2): "cat"})
    alone = TextIndex({(1, 1): "cat", (1, 2): "dog"})
    assert index.scores("cat", lambda key: key[0] == 1) == alone.scores("cat")


@pytest.mark.parametrize(
    "analyzer, terms",
    [
        ("standard", [("running", 1), ("foxes", 2), ("42", 4), ("東京都", 5)]),
        ("simple", [("the", 0), ("running", 1), ("foxes", 2), ("and", 3), ("42", 4), ("東京都", 5)]),
        ("whitespace", [("The", 0), ("Running-Foxes,", 1), ("and", 2), ("42!", 3), ("東京都", 4)]),
        ("english", [("run", 1), ("fox", 2), ("42", 4), ("東京都", 5)]),
        ("cjk", [("the", 0), ("running", 1), ("foxes", 2), ("and", 3), ("42", 4), ("東京", 5), ("京都", 6)]),
    ],
)
def test_an_analyzer_makes_terms(analyzer, terms):
    assert tokens("The Running-Foxes, and 42! 東京都", analyzer) == terms


def test_words_that_are_too_long_leave_a_gap():
    assert tokens("a1 " + "é" * 128 + " b1", "simple") == [("a1", 0), ("b1", 2)]


@pytest.mark.parametrize(
    "query, place",
    [
        ("(cat", 1), ("cat)", 4), ('x "cat', 3), ("cat AND", 5), ("OR cat", 1), ("cat^", 4), ("x ()", 3), ("+", 1),
        ("cat NOT AND x", 9), ("NOT", 1),
    ],  # fmt: skip
)
def test_a_malformed_query_has_a_place(query, place):
    with pytest.raises(Malformed) as malformed:
        parse(query)
    assert malformed.value.place == place


def test_queries_are_trees():
    a, b, c = (Term(letter * 2, 1.0) for letter in "xyz")
    assert parse("xx AND yy OR zz") == Boolean(should=[Boolean(must=[a, b]), c])
    assert parse("xx yy") == parse("xx OR yy") == Boolean(should=[a, b])
    assert parse("xx NOT yy") == parse("xx -yy") == Boolean(should=[a], must_not=[b])
    assert parse("(xx yy)^2") == Boolean(should=[a._replace(boost=2.0), b._replace(boost=2.0)])
    assert parse('"xx yy"~3^2') == Phrase(((0, "xx"), (1, "yy")), 3, 2.0)
    assert parse("the") == parse("") == Nothing()


@pytest.mark.parametrize("text", ["C++ (or C#)?", 'AND OR NOT "', "-cat +dog wor* a^2 b~1", "back\\slash", "", "  "])
def test_words_as_they_are_have_no_operators(text):
    clause = parse(words_as_they_are(text), "whitespace")
    terms = [clause] if isinstance(clause, Term) else getattr(clause, "should", [])
    assert [term.term for term in terms] == text.split()


@pytest.mark.parametrize("left, right, distance", [("cat", "cat", 0), ("cat", "cut", 1), ("cat", "act", 1), ("cat", "cats", 1), ("cat", "dog", 3)])
def test_words_are_near(left, right, distance):
    assert [is_near(left, right, most) for most in range(4)] == [most >= distance for most in range(4)]


def test_ranks_of_equal_scores_have_bounds():
    assert ranking.ranks({"a": 3, "b": 2, "c": 2.00001, "d": 1}) == {"a": (1, 1), "b": (2, 3), "c": (2, 3), "d": (4, 4)}
    entries = ranking.fused([{"a": 2, "b": 1}, {"b": 5}], candidates=1, constant=60)
    assert entries == {"a": Entry(1 / 61, 1 / 61), "b": Entry(1 / 61, 1 / 61)}


def test_wrong_answers_have_a_fault():
    entries = ranking.exact({"a": 3, "b": 2, "c": 1})
    assert ranking.fault(entries, ["a", "b"], 2) is None
    for keys, limit, words in [
        (["a", "a"], 2, "twice"),
        (["a", "x"], 2, "belong"),
        (["a"], 2, "1 rows of 2"),
        (["b", "a"], 2, "comes before"),
        (["a", "c"], 2, "is missing"),
    ]:
        assert words in ranking.fault(entries, keys, limit)
    assert ranking.fault_of_scores({"a": 1.0}, [("a", 1.02)]) is None
    assert "formula" in ranking.fault_of_scores({"a": 1.0}, [("a", 1.04)])
