"""Tests of statements that search for words: what their SELECT may have, and what is refused, in
words that name the thing and the remedy."""

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.protocol import SyntaxException
from cassandra.query import SimpleStatement

FILMS = [
    (1, "a black cat", "Cats", 2000, [1.0, 0.0]),
    (2, "a black dog and another black dog", "Dogs & cats", 2001, [0.0, 1.0]),
    (3, "white mice", "Mice", None, [0.9, 0.1]),
    (4, None, "Nothing", 2001, [0.5, 0.5]),
    (5, "the cat in the hat, a black hat", "Hats", 2002, None),
]
PAGING = "Paging is not supported for"


@pytest.fixture(scope="module")
def films(session, service, keyspace):
    session.execute(
        f"CREATE TABLE {keyspace}.films (id int PRIMARY KEY, body text, title text, plain text, year int, v vector<float, 2>)"
    )
    for name, target, kind in [
        ("films_body", "body, year", "'fulltext_index'"),
        ("films_title", "title", "'fulltext_index'"),
        ("films_v", "v, year", "'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"),
    ]:
        session.execute(f"CREATE CUSTOM INDEX {name} ON {keyspace}.films ({target}) USING {kind}")
        service.eventually_serves(keyspace, name)
    for film in FILMS:
        session.execute(f"INSERT INTO {keyspace}.films (id, body, title, year, v) VALUES (%s, %s, %s, %s, %s)", film)
    session.set_keyspace(keyspace)
    return session


def ids(rows):
    return [row.id for row in rows]


# What a SELECT may have.


def test_scores_and_ranks_come_with_rows(films):
    rows = films.execute(
        "SELECT id, BM25(body, 'black') AS hit, BM25_SCORE(body, 'black') AS score, BM25_RANK(body, 'black') AS place "
        "FROM films WHERE BM25(body, 'black') > 0 ORDER BY BM25(body, 'black') LIMIT 9"
    ).all()
    assert sorted(ids(rows)) == [1, 2, 5] and [row.place for row in rows] == [1, 2, 3]
    assert [tuple(row.hit) for row in rows] == [(row.score, row.place) for row in rows]
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)


def test_both_searches_come_with_rows_of_both(films):
    rows = films.execute(
        "SELECT id, ANN(v, [1, 0]) AS near, BM25(body, 'cat') AS words, similarity_euclidean(v, [1, 0]) AS own FROM films "
        "ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'cat')) LIMIT 9"
    ).all()
    assert ids(rows)[0] == 1 and set(ids(rows)) == {1, 2, 3, 4, 5}
    by_id = {row.id: row for row in rows}
    assert by_id[1].near[1] == 1 and by_id[1].words[1] == 1
    assert by_id[3].words == (None, None) or by_id[3].words is None
    assert by_id[5].near == (None, None) or by_id[5].near is None
    assert all(row.near[0] == pytest.approx(row.own, abs=1e-6) for row in rows if row.id != 5)


def test_any_selection_goes_with_words(films):
    one = films.execute("SELECT * FROM films ORDER BY BM25(body, 'dog') LIMIT 1").one()
    assert (one.id, one.title) == (2, "Dogs & cats")
    named = films.prepare("SELECT id, body AS title FROM films ORDER BY BM25(body, :words) LIMIT :rows")
    assert [tuple(row) for row in films.execute(named, {"words": "mice", "rows": 1})] == [(3, "white mice")]
    prepared = films.prepare("SELECT id FROM films WHERE BM25(body, ?) > 0 ORDER BY BM25(body, ?) LIMIT ?")
    told = [(column.name, column.type.cql_parameterized_type()) for column in prepared.column_metadata]
    assert told == [("body", "varchar"), ("body", "varchar"), ("[limit]", "int")]
    by_system = films.execute("SELECT id FROM films ORDER BY system.bm25(body, 'mice') LIMIT 2")
    assert ids(by_system) == [3]


def test_equal_calls_are_one_search_also_by_markers(films):
    text = "SELECT id, BM25_SCORE(body, ?) AS score FROM films WHERE BM25(body, ?) > 0 ORDER BY BM25(body, ?) LIMIT 5"
    prepared = films.prepare(text)
    assert ids(films.execute(prepared, ("mice", "mice", "mice"))) == [3]
    # The words of WHERE and of ORDER BY may differ. Then both hold.
    assert ids(films.execute(films.prepare(text.replace("BM25_SCORE(body, ?) AS score", "id AS a")), ("hat", "black"))) == [5]


def test_an_excerpt_comes_with_a_row(films):
    rows = films.execute(
        "SELECT id, BM25_HIGHLIGHT(body, 'cat') AS mark, BM25_HIGHLIGHT(title, 'cats') AS other FROM films "
        "ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'cat')) LIMIT 9"
    ).all()
    marks = {row.id: row.mark for row in rows}
    assert marks[1] == "a black <b>cat</b>" and marks[3] is None and marks[4] is None and "<b>cat</b>" in marks[5]
    assert {row.id: row.other for row in rows}[2] == "Dogs &amp; <b>cats</b>"


def test_words_as_a_user_typed_them(films):
    for typed in ("cat)", '"cat', "AND cat", "cat^", "NOT cat OR", "-cat +dog*"):
        rows = films.execute("SELECT id FROM films ORDER BY BM25(body, bm25_words(%s)) LIMIT 9", (typed,))
        assert {1, 5} <= set(ids(rows)), typed
        prepared = films.prepare("SELECT id FROM films WHERE BM25(body, bm25_words(?)) > 0")
        assert {1, 5} <= set(ids(films.execute(prepared, (typed,)))), typed


def test_all_that_match_come_in_pages_and_can_be_counted(films):
    statement = SimpleStatement("SELECT id, body FROM films WHERE BM25(body, 'black OR mice') > 0", fetch_size=1)
    assert sorted(ids(films.execute(statement))) == [1, 2, 3, 5]
    assert sorted(ids(films.execute("SELECT id FROM films WHERE BM25(body, 'black OR mice') > 0 LIMIT 2"))) != [1, 2, 3, 5]
    counted = films.execute("SELECT count(*), max(year) FROM films WHERE BM25(body, 'black') > 0").one()
    assert tuple(counted) == (3, 2002)
    assert ids(films.execute("SELECT id FROM films WHERE BM25(body, 'black') > 0 AND year > 2001")) == [5]
    two = "SELECT id FROM films WHERE BM25(body, 'black') > 0 AND BM25(title, 'cats') > 0"
    assert sorted(ids(films.execute(two))) == [1, 2]


def test_scores_and_excerpts_come_with_all_that_match(films):
    best = films.execute("SELECT id, BM25_SCORE(body, 'black') AS score FROM films ORDER BY BM25(body, 'black') LIMIT 9")
    rows = films.execute(
        "SELECT id, BM25_SCORE(body, 'black') AS score, BM25_HIGHLIGHT(body, 'black') AS mark FROM films WHERE BM25(body, 'black') > 0"
    ).all()
    assert {row.id: row.score for row in rows} == pytest.approx({row.id: row.score for row in best}, rel=1e-4)
    assert all("<b>black</b>" in row.mark for row in rows)
    with pytest.raises(InvalidRequest, match="there are no ranks"):
        films.execute("SELECT BM25_RANK(body, 'black') FROM films WHERE BM25(body, 'black') > 0").all()


def test_scores_of_a_search_that_does_not_order(films):
    rows = films.execute(
        "SELECT id, ANN_SCORE(v, [1, 0]) AS near, BM25_RANK(title, 'cats') AS title FROM films ORDER BY BM25(body, 'black') LIMIT 9"
    ).all()
    assert sorted(ids(rows)) == [1, 2, 5]
    assert {row.id: row.near for row in rows} == {1: pytest.approx(1), 2: pytest.approx(1 / 3), 5: None}
    assert {row.id for row in rows if row.title} == {1, 2}


def test_words_of_another_column_filter(films):
    rows = films.execute("SELECT id FROM films WHERE BM25(title, 'cats') > 0 ORDER BY BM25(body, 'black') LIMIT 9")
    assert sorted(ids(rows)) == [1, 2]
    rows = films.execute("SELECT id FROM films WHERE BM25(title, 'mice OR dogs') > 0 ORDER BY v ANN OF [1, 0] LIMIT 9")
    assert ids(rows) == [3, 2]


@pytest.mark.parametrize("level", [ConsistencyLevel.ONE, ConsistencyLevel.QUORUM])
def test_answers_are_the_same_at_every_consistency(films, level):
    text = "SELECT id, year FROM films WHERE year >= 2000 ORDER BY BM25(body, 'black') LIMIT 9"
    rows = films.execute(SimpleStatement(text, consistency_level=level))
    assert {tuple(row) for row in rows} == {(1, 2000), (2, 2001), (5, 2002)}


def test_ranks_of_the_indexes_alone_are_those_of_the_rows(films):
    text = (
        "SELECT id, year, ANN_SCORE(v, [1, 0]) AS near, BM25_RANK(body, 'black') AS place FROM films WHERE year >= 2000 "
        "ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'black')) LIMIT 9"
    )
    answers = []
    for level in [ConsistencyLevel.ONE, ConsistencyLevel.QUORUM]:
        answer = films.execute(SimpleStatement(text, consistency_level=level), trace=True)
        steps = [event.description for event in answer.get_query_trace().events]
        assert any("no rows are read" in step for step in steps) == (level == ConsistencyLevel.ONE)
        answers.append([tuple(row) for row in answer])
    assert answers[0] == answers[1] and len(answers[0]) > 2


def test_an_expression_orders_by_true_scores(films):
    rows = films.execute(
        "SELECT id, ANN_SCORE(v, [1, 0]) AS near, BM25_SCORE(body, 'dog') AS words, BM25_RANK(body, 'dog') AS place FROM films "
        "ORDER BY 0.01 * ANN_SCORE(v, [1, 0]) + BM25_SCORE(body, 'dog') LIMIT 4"
    ).all()
    assert ids(rows)[:3] == [2, 1, 3]
    assert [row.words for row in rows[1:3]] == [0, 0] and rows[0].words > 0
    assert (rows[0].place, rows[1].place) == (1, None)
    negative = films.execute("SELECT id FROM films ORDER BY -ANN_SCORE(v, [1, 0]) LIMIT 4")
    assert ids(negative)[0] == 2


def test_one_search_can_be_fused_alone_and_twice(films):
    assert ids(films.execute("SELECT id FROM films ORDER BY RRF(BM25(body, 'mice')) LIMIT 3")) == [3]
    rows = films.execute(
        "SELECT id FROM films ORDER BY RRF(BM25(body, 'cat'), BM25(body, 'hat'), BM25(title, 'hats'), ANN(v, [1, 0])) LIMIT 3"
    )
    assert ids(rows)[0] == 5


def test_a_weight_decides(films):
    text = (
        "SELECT id FROM films ORDER BY RRF(ANN(v, [0, 1]), BM25(body, 'mice')) LIMIT 1 "
        "WITH hybrid_options = {{'candidates': 5, 'rank_constant': 1, 'weights': {}}}"
    )
    assert ids(films.execute(text.format("[1, 0]"))) == [2]
    assert ids(films.execute(text.format("[0.1, 5]"))) == [3]


def test_a_warning_says_that_there_are_no_pages(films):
    for order, name in [("BM25(body, 'black')", ""), ("RRF(ANN(v, [1, 0]), BM25(body, 'black'))", "Hybrid Search")]:
        answer = films.execute(SimpleStatement(f"SELECT id FROM films ORDER BY {order} LIMIT 3", fetch_size=2))
        assert len(answer.all()) == 3
        assert any(PAGING in warning and name in warning for warning in answer.response_future.warnings)


# What is refused.


@pytest.mark.parametrize(
    "rest, words",
    [
        ("ORDER BY BM25(body, 'x')", ["must have a limit specified"]),
        ("ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'x'))", ["must have a limit specified"]),
        ("ORDER BY 2 * BM25_SCORE(body, 'x')", ["must have a limit specified"]),
        ("ORDER BY BM25(body, 'x') LIMIT 1001", ["LIMIT that is not greater than 1000. LIMIT was 1001"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 1001", ["LIMIT that is not greater than 1000. LIMIT was 1001"]),
        ("ORDER BY BM25(body, 'x') LIMIT 0", ["LIMIT must be strictly positive"]),
        ("ORDER BY BM25(body, 'x') DESC LIMIT 3", ["Descending BM25 ordering is not supported"]),
        ("ORDER BY BM25(body, 'x') PER PARTITION LIMIT 1 LIMIT 3", ["do not support per-partition limits"]),
        ("ORDER BY BM25(body, 'x'), id LIMIT 3", ["does not support any other ordering"]),
        ("ORDER BY BM25(body, 'x'), BM25(title, 'x') LIMIT 3", ["RRF"]),
        ("ORDER BY v ANN OF [1, 0], BM25(body, 'x') LIMIT 3", ["BM25 and ANN cannot be combined", "RRF"]),
        ("ORDER BY BM25(plain, 'x') LIMIT 3", ["BM25 requires the column to be indexed using 'fulltext_index', but column plain is not"]),
        ("WHERE BM25(plain, 'x') > 0", ["BM25 requires the column to be indexed using 'fulltext_index', but column plain is not"]),
        ("ORDER BY BM25(year, 'x') LIMIT 3", ["column year"]),
        ("ORDER BY BM25(nothing, 'x') LIMIT 3", ["nothing"]),
        ("ORDER BY BM25(body, 5) LIMIT 3", ["body"]),
        ("ORDER BY BM25(body, null) LIMIT 3", ["Unsupported null value for column body"]),
        ("ORDER BY BM25(body) LIMIT 3", ["2 required but 1 provided"]),
        ("ORDER BY BM25_RANK(body, 'x') LIMIT 3", ["BM25_RANK() is for the selection"]),
        ("ORDER BY RRF(BM25_SCORE(body, 'x')) LIMIT 3", ["RRF() takes searches"]),
        ("ORDER BY year * BM25_SCORE(body, 'x') LIMIT 3", ["column year"]),
        ("ORDER BY 1 + 2 LIMIT 3", ["ANN_SCORE() or BM25_SCORE()"]),
        ("WHERE BM25(body, 'x') >= 0", ["operator >", "literal 0"]),
        ("WHERE BM25(body, 'x') > 1", ["operator >", "literal 0"]),
        ("WHERE BM25_SCORE(body, 'x') > 0", ["WHERE"]),
        ("WHERE BM25(body, 'x') > 0 ORDER BY id", ["ordering by columns", "BM25(column, words)"]),
        ("WHERE BM25(body, 'x') > 0 GROUP BY id", ["GROUP BY", "in the application", "columns in WHERE"]),
        ("WHERE ANN(v, [1, 0]) > 0", ["WHERE"]),
        ("WHERE BM25(body, 'x') > 0 AND plain = 'x'", ["ALLOW FILTERING"]),
        ("WHERE plain = 'x' ORDER BY BM25(body, 'x') LIMIT 3", ["plain", "ALLOW FILTERING"]),
        ("WHERE nothing = 1 ORDER BY BM25(body, 'x') LIMIT 3", ["nothing"]),
        ("WHERE year = 'x' ORDER BY BM25(body, 'x') LIMIT 3", ["STRING", "int"]),
        ("ORDER BY BM25(body, 'x') LIMIT 3 WITH hybrid_options = {'candidates': 5}", ["hybrid_options"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'candidates': 2}", ["'candidates'", "3"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'candidates': 10001}", ["'candidates'", "10000"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'rank_constant': 0}", ["'rank_constant'", "10000"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'rank_constant': 10001}", ["'rank_constant'"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'weights': [1, 2]}", ["'weights'", "1", "2"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'weights': [1001]}", ["'weights'", "1000"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'weights': [-1]}", ["'weights'", "-1"]),
        ("ORDER BY RRF(BM25(body, 'x')) LIMIT 3 WITH hybrid_options = {'width': 5}", ["width", "candidates"]),
        ("ORDER BY 2 * BM25_SCORE(body, 'x') LIMIT 3 WITH hybrid_options = {'weights': [1]}", ["'weights'"]),
    ],
)
def test_a_statement_is_refused(films, rest, words):
    with pytest.raises((InvalidRequest, SyntaxException)) as error:
        films.execute(f"SELECT id FROM films {rest}").all()
    text = str(error.value)
    assert isinstance(error.value, InvalidRequest), text
    assert all(word in text for word in words), text


def test_ordered_rows_are_not_aggregated(films):
    for order in ("BM25(body, 'x')", "RRF(ANN(v, [1, 0]), BM25(body, 'x'))"):
        with pytest.raises(InvalidRequest, match="cannot be run with aggregation"):
            films.execute(f"SELECT count(*) FROM films ORDER BY {order} LIMIT 3")


def test_a_selection_has_searches_that_the_statement_makes(films):
    with pytest.raises(InvalidRequest, match="need a search"):
        films.execute("SELECT id, BM25_SCORE(body, 'x') FROM films").all()


@pytest.mark.parametrize(
    "target, words",
    [
        ("id", ["id"]),
        ("year", ["year"]),
        ("v", ["v"]),
        ("body, body", ["Duplicate column", "body"]),
        ("body, nothing", ["nothing"]),
        ("body, v", ["filtering column"]),
    ],
)
def test_a_column_that_has_no_text_index(films, keyspace, target, words):
    with pytest.raises(InvalidRequest) as error:
        films.execute(f"CREATE CUSTOM INDEX other ON {keyspace}.films ({target}) USING 'fulltext_index'")
    assert all(word in str(error.value) for word in words), error.value


def test_indexes_of_several_kinds_on_one_table(films, session, service, keyspace):
    """A text, a vector and a secondary index, each for itself and together."""
    session.execute(f"CREATE INDEX films_plain ON {keyspace}.films (plain)")
    session.execute(f"UPDATE {keyspace}.films SET plain = 'x' WHERE id = 5")
    assert ids(films.execute("SELECT id FROM films WHERE plain = 'x'")) == [5]
    assert ids(films.execute("SELECT id FROM films ORDER BY BM25(body, 'mice') LIMIT 3")) == [3]
    assert ids(films.execute("SELECT id FROM films ORDER BY v ANN OF [1, 0] LIMIT 1")) == [1]
    assert ids(films.execute("SELECT id FROM films WHERE plain = 'x' ORDER BY BM25(body, 'black') LIMIT 3")) == [5]
    session.execute(f"DROP INDEX {keyspace}.films_plain")
