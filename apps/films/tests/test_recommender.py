"""Sentences, films, filters and opinions as searches."""

from __future__ import annotations

import numpy as np
import pytest
from annulus_embedder.model import Embedder
from annulus_films.database import DatabaseError, FilmDatabase
from annulus_films.models import Match, Wish
from annulus_films.recommender import Recommender, moved
from pydantic import ValidationError

ROBOT = "a lonely robot learns to love"
HEARTBEEPS, CHAPPIE, KING_KONG = 6830, 9357, 2567


def titles(matches: list[Match]) -> list[str]:
    return [match.film.title for match in matches]


@pytest.mark.smoke
def test_the_example_sentence_finds_robots(recommender: Recommender) -> None:
    best, *others = recommender.recommend(Wish(sentence=ROBOT))
    assert best.film.title == "Heartbeeps"
    assert "two robots who fall in love" in best.film.plot
    assert len(others) == 4


def test_a_match_says_why_it_is_there(recommender: Recommender, database: FilmDatabase, embedder: Embedder) -> None:
    best = recommender.recommend(Wish(sentence=ROBOT))[0]
    plot = np.array(database.embeddings([best.film.id])[best.film.id])
    cosine = float(plot @ embedder.embed([ROBOT])[0])
    assert best.cosine == pytest.approx(cosine, abs=1e-3)
    assert best.similarity == pytest.approx((1 + cosine) / 2, abs=1e-3)
    assert best.words_rank == 1 and best.words_score is not None and best.words_score > 5
    assert best.highlight is not None and "<b>robots</b>" in best.highlight


def test_vectors_alone_come_in_the_order_of_their_cosines(recommender: Recommender) -> None:
    matches = recommender.recommend(Wish(sentence=ROBOT, hybrid=False, limit=20))
    assert len(matches) == 20
    cosines = [match.cosine for match in matches]
    assert cosines == sorted(cosines, reverse=True)
    assert all(match.highlight is None and match.words_rank is None for match in matches)


@pytest.mark.parametrize("hybrid", [True, False])
def test_all_films_of_an_answer_satisfy_its_filters(recommender: Recommender, hybrid: bool) -> None:
    wish = Wish(
        sentence="vampires in a small town", year_from=1980, year_to=1999, genre="Horror", limit=20, hybrid=hybrid
    )
    matches = recommender.recommend(wish)
    assert len(matches) == 20
    for film in (match.film for match in matches):
        assert 1980 <= film.release_date.year <= 1999
        assert "Horror" in film.genres


def test_filters_that_no_film_satisfies_give_an_empty_answer(recommender: Recommender) -> None:
    assert recommender.recommend(Wish(sentence=ROBOT, genre="Knitting")) == []
    assert recommender.recommend(Wish(sentence=ROBOT, year_from=2050)) == []


def test_a_film_finds_others_that_are_like_it_and_not_itself(recommender: Recommender) -> None:
    matches = recommender.recommend(Wish(like_film=KING_KONG, limit=10))
    assert len(matches) == 10
    assert KING_KONG not in [match.film.id for match in matches]
    assert any("monster" in match.film.plot.lower() or "kong" in match.film.plot.lower() for match in matches)


def test_a_liked_film_comes_nearer_and_a_disliked_one_goes_away(
    recommender: Recommender, database: FilmDatabase
) -> None:
    vectors = {id: np.array(vector) for id, vector in database.embeddings([HEARTBEEPS, CHAPPIE]).items()}
    plain = recommender.query_vector(Wish(sentence=ROBOT))
    liked = recommender.query_vector(Wish(sentence=ROBOT, liked=frozenset({CHAPPIE})))
    disliked = recommender.query_vector(Wish(sentence=ROBOT, disliked=frozenset({CHAPPIE})))
    assert liked @ vectors[CHAPPIE] > plain @ vectors[CHAPPIE] > disliked @ vectors[CHAPPIE]
    assert np.linalg.norm(liked) == pytest.approx(1) == np.linalg.norm(disliked)


def test_liking_robots_gives_more_of_them(recommender: Recommender) -> None:
    def robots(wish: Wish) -> int:
        plots = [match.film.plot.lower() for match in recommender.recommend(wish)]
        return sum("robot" in plot or "android" in plot for plot in plots)

    before = robots(Wish(sentence=ROBOT, limit=10))
    after = robots(Wish(sentence=ROBOT, limit=10, liked=frozenset({HEARTBEEPS, CHAPPIE})))
    # The two that were liked are not among them any more.
    assert after > before - 2 and after >= 3


def test_films_that_were_judged_do_not_come_again(recommender: Recommender) -> None:
    first = recommender.recommend(Wish(sentence=ROBOT, limit=6))
    liked, disliked = frozenset({first[0].film.id, first[1].film.id}), frozenset({first[2].film.id})
    found = {
        match.film.id for match in recommender.recommend(Wish(sentence=ROBOT, limit=6, liked=liked, disliked=disliked))
    }
    assert len(found) == 6 and not found & (liked | disliked)


def test_opinions_that_cancel_the_sentence_leave_the_sentence() -> None:
    start = np.array([1.0, 0.0], np.float32)
    assert moved(start, [], [[4.0, 0.0]]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "sentence",
    [
        "un robot solitaire qui apprend à aimer",
        "孤独なロボットが愛を学ぶ",
        "🤖❤️",
        "?!",
        "the of and",
        "AND OR NOT \"( ~2 ^* \\ ' ; DROP KEYSPACE recommend",
        "<script>alert(1)</script>",
        "robot\x00love",
        "half a character: \ud83e",
        "robot " * 20_000,
    ],
    ids=["French", "Japanese", "emoji", "signs", "stop words", "operators", "tags", "NUL", "surrogate", "120 kB"],
)
def test_any_text_is_a_sentence(recommender: Recommender, sentence: str) -> None:
    assert len(recommender.recommend(Wish(sentence=sentence))) == 5


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({}, "say what the film should be about"),
        ({"sentence": " \n"}, "say what the film should be about"),
        ({"sentence": "x", "year_from": 1990, "year_to": 1980}, "no year is both after 1990 and before 1980"),
        ({"sentence": "x", "year_from": 0}, "greater than or equal to 1"),
        ({"sentence": "x", "limit": 51}, "less than or equal to 50"),
        ({"sentence": "x", "liked": {1}, "disliked": {1}}, "liked or disliked, not both"),
    ],
)
def test_wishes_without_a_meaning_are_refused_in_words(wish: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Wish(**wish)


def test_a_film_that_is_not_there_is_named(recommender: Recommender) -> None:
    with pytest.raises(DatabaseError, match="There is no film 123456"):
        recommender.recommend(Wish(like_film=123456))
    # An opinion about one is no reason to fail.
    assert recommender.recommend(Wish(sentence=ROBOT, liked=frozenset({123456})))
