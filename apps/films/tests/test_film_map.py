"""The map: a place for each film, with its neighbours near it."""

from __future__ import annotations

from annulus_films.film_map import FilmMap
from annulus_films.highlight import marked
from annulus_films.make_map import kept, principal
from annulus_films.migrate import sample_vectors


def test_the_map_keeps_more_neighbours_than_principal_components() -> None:
    vectors, films = sample_vectors(), FilmMap()
    assert len(films) == len(vectors) == 10_000
    by_map, by_components = kept(vectors, films.points), kept(vectors, principal(vectors, 2))
    assert by_map > 0.2 > 0.02 > by_components


def test_films_that_are_not_bundled_have_no_place() -> None:
    places = FilmMap().places([0, 1, 10_000, 10_001])
    assert sorted(places) == [1, 10_000]
    assert all(-1 <= x <= 1 for place in places.values() for x in place)


def test_marks_are_only_at_words_that_were_found() -> None:
    assert (
        marked("Robots & a robot's love", "<b>Robots</b> &amp; a <b>love</b>")
        == "<mark>Robots</mark> &amp; a robot&#x27;s <mark>love</mark>"
    )
    assert marked("<b>no</b>", None) == "&lt;b&gt;no&lt;/b&gt;"
    assert marked("a glove", "my <b>love</b>") == "a glove"
