"""Tests searches over HTTP against the same searches by CQL, and against what is counted here."""

import itertools
import random

import pytest
from server import eventually

COLOURS = ["red", "green", "brown", None]


@pytest.fixture(scope="module")
def rows():
    numbers = random.Random(7)
    return [
        {
            "id": id,
            "colour": COLOURS[id % 4],
            "price": numbers.randrange(20) if id % 5 else None,
            "about": f"{'tea ' * (id % 3)}cocoa {'hot drink' if id % 2 else 'cold'}",
            "v": [numbers.uniform(-1, 1) for _ in range(4)],
        }
        for id in range(120)
    ]


@pytest.fixture(scope="module")
def path(session, api, server, rows):
    """A table with an index on vectors and one on texts, made over HTTP. Returns its path."""
    api.ok("PUT", "/keyspaces/searches_of_http", b"")
    path = "/tables/searches_of_http/products"
    types = [("id", "int"), ("colour", "text"), ("price", "int"), ("about", "text"), ("v", "vector<float, 4>")]
    columns = [{"name": name, "type": cql_type} for name, cql_type in types]
    api.ok("PUT", path, {"columns": columns + [{"name": "size", "type": "int"}], "key": ["id"]})
    filters = ["colour", "price"]
    api.ok("PUT", f"{path}/indexes/products_v", {"column": "v", "kind": "vector", "filter_columns": filters})
    about = {"column": "about", "kind": "text", "filter_columns": filters, "options": {"analyzer": "simple"}}
    api.ok("PUT", f"{path}/indexes/products_about", about)
    assert api.ok("PUT", f"{path}/rows", {"rows": rows}) == {"written": len(rows)}
    for index in ("products_v", "products_about"):
        eventually(lambda index=index: server.index_status("searches_of_http", index)["status"] == "SERVING")
    yield path
    api.ok("DELETE", "/keyspaces/searches_of_http")


QUERY = [0.5, -0.25, 1.0, 0.0]


def ids(answer):
    return [row["id"] for row in answer["rows"]]


def nearest(session, where="", limit=120):
    text = f"SELECT id FROM searches_of_http.products {where} ORDER BY v ANN OF {QUERY} LIMIT {limit}"
    return [id for (id,) in session.execute(text)]


def test_a_search_is_that_of_cql(session, api, path):
    answer = api.ok("POST", f"{path}/search", {"vector": QUERY, "limit": 7})
    assert ids(answer) == nearest(session, limit=7)
    assert set(answer["rows"][0]) == {"id", "colour", "price", "about", "size"}
    assert answer["scores"] == sorted(answer["scores"], reverse=True)


def test_offset_limit_threshold_columns_and_vectors(session, api, path, rows):
    search = f"{path}/search"
    all_of = nearest(session)
    assert ids(api.ok("POST", search, {"vector": QUERY, "limit": 5, "offset": 10, "columns": ["id"]})) == all_of[10:15]
    assert len(api.ok("POST", search, {"vector": QUERY})["rows"]) == 10
    scored = api.ok("POST", search, {"vector": QUERY, "limit": 20})
    least = scored["scores"][6]
    good = api.ok("POST", search, {"vector": QUERY, "limit": 20, "score_threshold": least})
    assert good["scores"] == [score for score in scored["scores"] if score >= least] and len(good["rows"]) >= 7
    (row,) = api.ok("POST", search, {"vector": QUERY, "limit": 1, "columns": ["price"], "with_vector": True})["rows"]
    assert set(row) == {"price", "v"} and row["v"] == pytest.approx(rows[all_of[0]]["v"], rel=1e-6)
    (row,) = api.ok("POST", search, {"vector": QUERY, "limit": 1, "columns": ["id"], "with_vector": ["v"]})["rows"]
    assert set(row) == {"id", "v"}


FILTERS = [
    ({"colour": "red"}, lambda row: row["colour"] == "red"),
    ({"price": {"gt": 5, "lte": 9}}, lambda row: row["price"] is not None and 5 < row["price"] <= 9),
    ({"colour": {"in": ["red", "brown"]}}, lambda row: row["colour"] in ("red", "brown")),
    (
        {"and": [{"colour": "red"}, {"price": {"gte": 8}}]},
        lambda row: row["colour"] == "red" and (row["price"] or 0) >= 8,
    ),
    (
        {"or": [{"colour": "red"}, {"price": {"lt": 3}}]},
        lambda row: row["colour"] == "red" or row["price"] in (0, 1, 2),
    ),
    ({"not": {"colour": "red"}}, lambda row: row["colour"] not in ("red", None)),
    ({"colour": {"ne": "red"}}, lambda row: row["colour"] not in ("red", None)),
    (
        {"not": {"or": [{"colour": "red"}, {"price": {"gt": 10}}]}},
        lambda row: row["colour"] not in ("red", None) and row["price"] is not None and row["price"] <= 10,
    ),
    (
        {"colour": "green", "or": [{"price": {"lt": 4}}, {"id": {"gt": 100}}]},
        lambda row: row["colour"] == "green" and (row["id"] > 100 or row["price"] in (0, 1, 2, 3)),
    ),
    ({"and": [{"price": {"gt": 3}}, {"price": {"gt": 6}}]}, lambda row: (row["price"] or 0) > 6),
    ({"or": []}, lambda row: False),
]


@pytest.mark.parametrize("filter, holds", FILTERS)
def test_filters_name_the_rows_that_satisfy_them(session, api, path, rows, filter, holds):
    expected = {row["id"] for row in rows if holds(row)}
    found = ids(api.ok("POST", f"{path}/search", {"vector": QUERY, "limit": 120, "filter": filter}))
    assert found == [id for id in nearest(session) if id in expected]
    words = api.ok("POST", f"{path}/search", {"text": "cocoa", "limit": 120, "filter": filter})
    assert set(ids(words)) == expected


def test_a_filter_by_a_column_that_no_index_has_must_be_allowed(api, path):
    for filter in ({"size": 3}, {"not": {"size": 3}}):
        search = {"vector": QUERY, "filter": filter}
        assert "size" in api.refused(400, "POST", f"{path}/search", search)
        assert api.ok("POST", f"{path}/search", {**search, "allow_filtering": True})["rows"] == []


def test_a_search_is_traced_whatever_its_filter(api, path):
    for filter in ({"colour": "red"}, {"or": [{"colour": "red"}, {"price": {"lt": 3}}]}):
        headers = {"X-Annulus-Trace": "1"}
        status, answered, _ = api.raw("POST", f"{path}/search", {"vector": QUERY, "filter": filter}, headers)
        assert status == 200 and answered["X-Annulus-Trace"], filter
        last = answered["X-Annulus-Trace"].split()[-1]
        steps = {"query": f"SELECT activity FROM system_traces.events WHERE session_id = {last}"}
        activities = [row["activity"] for row in api.ok("POST", "/cql", steps)["rows"]]
        assert any(activity.startswith("Searched the index") for activity in activities), activities


def test_words_go_with_and_without_operators(session, api, path):
    text = "SELECT id FROM searches_of_http.products ORDER BY BM25(about, 'tea AND cold') LIMIT 10"
    by_query = api.ok("POST", f"{path}/search", {"query": "tea AND cold"})
    assert ids(by_query) == [id for (id,) in session.execute(text)]
    by_text = api.ok("POST", f"{path}/search", {"text": "AND (tea", "limit": 120})
    assert set(ids(by_text)) == {id for id in range(120) if id % 3}
    both = api.ok("POST", f"{path}/search", {"vector": QUERY, "limit": 120, "filter": {"about": {"match": "tea"}}})
    assert ids(both) == [id for id in nearest(session) if id % 3]
    assert "character" in api.refused(400, "POST", f"{path}/search", {"query": "tea AND"})


def test_hybrid_orders_are_explained(session, api, path):
    answer = api.ok("POST", f"{path}/search", {"vector": QUERY, "text": "tea", "explain": True, "columns": ["id"]})
    text = (
        "SELECT id, ANN_RANK(v, ?), BM25_RANK(about, bm25_words(?)) FROM searches_of_http.products "
        "ORDER BY RRF(ANN(v, ?), BM25(about, bm25_words(?))) LIMIT 10"
    )
    by_cql = list(session.execute(session.prepare(text), (QUERY, "tea", QUERY, "tea")))
    assert ids(answer) == [row[0] for row in by_cql]
    for row, score, (near, words) in zip(by_cql, answer["scores"], answer["explain"]):
        assert (near["rank"], words["rank"]) == tuple(row[1:])
        assert (near["column"], near["by"], words["by"]) == ("v", "vector", "words")
        assert score == pytest.approx(sum(1 / (60 + rank) for rank in row[1:] if rank is not None))
    weighted = {
        "queries": [{"vector": QUERY, "weight": 0.7}, {"text": "tea", "weight": 0.3}],
        "rank": {"by": "score"},
        "explain": True,
    }
    answer = api.ok("POST", f"{path}/search", weighted)
    for score, (near, words) in zip(answer["scores"], answer["explain"]):
        assert score == pytest.approx(0.7 * near["score"] + 0.3 * (words["score"] or 0))
    assert answer["scores"] == sorted(answer["scores"], reverse=True)
    fused = {**weighted, "rank": {"by": "rrf", "constant": 10, "candidates": 200}}
    assert len(api.ok("POST", f"{path}/search", fused)["rows"]) == 10


def test_a_row_is_the_query_and_not_found(session, api, path, rows):
    answer = api.ok("POST", f"{path}/search", {"row": {"id": 3}, "limit": 5})
    text = "SELECT id FROM searches_of_http.products ORDER BY v ANN OF ? LIMIT 6"
    expected = [id for (id,) in session.execute(session.prepare(text), [rows[3]["v"]])]
    assert expected[0] == 3 and ids(answer) == expected[1:]
    by_text = api.ok("POST", f"{path}/search", {"row": {"id": 3}, "column": "about", "limit": 120})
    assert 3 not in ids(by_text) and len(by_text["rows"]) == 119
    assert "no row" in api.refused(404, "POST", f"{path}/search", {"row": {"id": 999}})


def test_counts_are_of_the_best_rows(session, api, path, rows):
    search = {"vector": QUERY, "limit": 1, "columns": ["id"], "counts": ["colour"], "among": 50}
    answer = api.ok("POST", f"{path}/search", search)
    colours = [rows[id]["colour"] for id in nearest(session, limit=50)]
    counted = {one["value"]: one["count"] for one in answer["counts"]["colour"]}
    assert counted == {colour: colours.count(colour) for colour in set(colours)}
    counts = [one["count"] for one in answer["counts"]["colour"]]
    assert counts == sorted(counts, reverse=True) and len(answer["rows"]) == 1 and set(answer["rows"][0]) == {"id"}


def test_several_searches_have_an_answer_each(session, api, path):
    searches = [{"vector": QUERY, "limit": 3}, {"text": "tea", "limit": 2}]
    answers = api.ok("POST", f"{path}/search", {"searches": searches})["answers"]
    assert answers == [api.ok("POST", f"{path}/search", search) for search in searches]
    error = api.refused(400, "POST", f"{path}/search", {"searches": [{"vector": QUERY}, {"vector": [1]}]})
    assert "search 2" in error


def test_searches_that_make_no_sense_are_refused(api, path):
    wrong = [
        ({}, "nothing to search for"),
        ({"vector": [1, 2]}, "vector"),
        ({"vector": QUERY, "limit": 0}, "limit is 0"),
        ({"vector": QUERY, "limit": 1000, "offset": 1}, "1000 rows at most"),
        ({"vector": QUERY, "limt": 3}, "limt"),
        ({"vector": QUERY, "columns": ["nme"]}, "no column nme"),
        ({"vector": QUERY, "filter": {"colr": 1}}, "no column colr"),
        ({"vector": QUERY, "filter": {"price": "much"}}, "price"),
        ({"vector": QUERY, "filter": {"not": {"price": None}}}, "null"),
        ({"vector": QUERY, "filter": {"or": [{"about": {"match": "tea"}}]}}, "match"),
        ({"vector": QUERY, "column": "price"}, "price"),
        ({"vector": QUERY, "among": 3}, "among goes with counts"),
        ({"vector": QUERY, "rank": {}}, "several queries"),
        ({"text": "tea", "exact": True}, "exact"),
        ({"queries": [{"vector": QUERY, "text": "tea"}]}, "one of vector, text"),
    ]
    for search, words in wrong:
        assert words in api.refused(400, "POST", f"{path}/search", search), search


def test_names_and_values_are_never_a_part_of_a_statement(session, api, path):
    evil = "x'; DROP TABLE searches_of_http.products; --"
    for search in ({"text": evil}, {"vector": QUERY, "filter": {"colour": evil}}):
        api.ok("POST", f"{path}/search", search)
    for place, value in itertools.product(("column", "columns", "filter"), (f'{evil}"', 'v" = 1')):
        given = {"column": value, "columns": [value], "filter": {value: 1}}[place]
        api.refused(400, "POST", f"{path}/search", {"vector": QUERY, place: given})
    assert session.execute("SELECT count(*) FROM searches_of_http.products").one()[0] == 120
