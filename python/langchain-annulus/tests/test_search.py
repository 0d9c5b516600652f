"""Searches as statements, and answers as one order: what needs no server."""

import json

import pytest
from words import WordEmbeddings

from langchain_annulus import AnnulusVectorStore
from langchain_annulus._filter import alternatives
from langchain_annulus._metadata import Fields
from langchain_annulus._search import Fusion, Hit, Search, document_of
from langchain_annulus._table import Definition, Table, TextIndex

VECTOR = [1.0, 0.0]
ONE = [(" WHERE a = ?", [7])]
TWO = [(" WHERE a = ?", [7]), (" WHERE b = ?", [8])]


def row(name, *read):
    """A row of an answer: the document, and what is read with it."""
    return (name, f"text of {name}", "{}", *read)


def ids(hits):
    return [hit.document.id for hit in hits]


@pytest.mark.parametrize(
    ("search", "cql", "values"),
    [
        (
            Search(3, VECTOR, with_vectors=True),
            "SELECT id, body, metadata, similarity_cosine(embedding, ?) AS vector_score, embedding AS vector FROM t "
            "WHERE a = ? ORDER BY embedding ANN OF ? LIMIT ?",
            [VECTOR, 7, VECTOR, 3],
        ),
        (
            Search(3, text="tea"),
            "SELECT id, body, metadata, BM25_SCORE(body, bm25_words(?)) AS text_score FROM t WHERE a = ? "
            "ORDER BY BM25(body, bm25_words(?)) LIMIT ?",
            ["tea", 7, "tea", 3],
        ),
        (
            Search(3, VECTOR, "te*", uses_language=True, fusion=Fusion(50, 10, (0.7, 1))),
            "SELECT id, body, metadata, similarity_cosine(embedding, ?) AS vector_score, "
            "BM25_SCORE(body, ?) AS text_score, "
            "ANN_RANK(embedding, ?) AS vector_rank, BM25_RANK(body, ?) AS text_rank FROM t WHERE a = ? "
            "ORDER BY RRF(ANN(embedding, ?), BM25(body, ?)) LIMIT ? "
            "WITH hybrid_options = {'candidates': 50, 'rank_constant': 10, 'weights': [0.7, 1.0]}",
            [VECTOR, "te*", VECTOR, "te*", 7, VECTOR, "te*", 3],
        ),
    ],
    ids=["vector", "text", "hybrid"],
)
def test_a_search_is_one_statement(search, cql, values):
    (statement,) = search.statements("t", ONE)
    assert statement.cql == cql
    assert statement.values == values
    assert search.statements("t", []) == []


def test_a_hybrid_search_with_alternatives_is_two_statements_of_each():
    search = Search(3, VECTOR, "tea")
    orders = [statement.cql.split(" ORDER BY ")[1] for statement in search.statements("t", TWO)]
    assert orders == ["embedding ANN OF ? LIMIT ?"] * 2 + ["BM25(body, bm25_words(?)) LIMIT ?"] * 2
    assert all(statement.values[-1] == 100 for statement in search.statements("t", TWO))
    for refused in (Search(1001, VECTOR, "tea"), Search(3, VECTOR, "tea", fusion=Fusion(2000))):
        with pytest.raises(ValueError, match=r"takes up to 1,000 candidates, unlike"):
            refused.statements("t", TWO)
        assert len(refused.statements("t", ONE)) == 1


def test_a_search_for_no_rows_asks_for_nothing():
    for search in (Search(0, VECTOR), Search(0, text="tea"), Search(-1, VECTOR, "tea")):
        assert search.statements("t", TWO) == []
        assert search.hits([]) == []


def test_answers_of_alternatives_become_one_order():
    words = Search(2, text="tea")
    found = words.hits([[row("a", 3.0), row("b", 1.0)], [row("c", 2.0), row("a", 3.0)]])
    assert [(hit.document.id, hit.score, hit.text_rank) for hit in found] == [("a", 3.0, 1), ("c", 2.0, 2)]
    near = Search(9, VECTOR).hits([[row("a", 0.5)], [row("b", 0.9)], []])
    assert [(hit.document.id, hit.vector_rank, hit.text_score) for hit in near] == [("b", 1, None), ("a", 2, None)]


def test_ranks_of_both_searches_are_counted_over_all_alternatives():
    search = Search(2, VECTOR, "tea", fusion=Fusion(2))
    vectors = [[row("a", 0.9), row("b", 0.5)], [row("c", 0.7)]]
    words = [[row("b", 0.5, 4.0), row("a", 0.9, 1.0)], [row("d", 0.1, 6.0)]]
    found = search.hits(vectors + words)
    # Two candidates of each: of vectors a and c, of words d and b.
    assert [(hit.document.id, hit.vector_rank, hit.text_rank) for hit in found] == [("a", 1, None), ("d", None, 1)]
    assert [hit.score for hit in found] == pytest.approx([1 / 61, 1 / 61])
    assert [(hit.vector_score, hit.text_score) for hit in found] == [(0.9, None), (0.1, 6.0)]
    alone = Search(9, VECTOR, "tea", fusion=Fusion(weights=(0, 1)))
    assert ids(alone.hits(vectors + words)) == ["d", "b", "a", "c"]
    equal = Search(9, VECTOR, "tea").hits([[row("a", 0.9)], [], [row("b", 0.1, 6.0)], []])
    assert ids(equal) == ["a", "b"]


def test_rows_of_the_database_keep_their_order_and_get_its_score():
    search = Search(3, VECTOR, "tea", fusion=Fusion(weights=(1, 3)))
    found = search.hits([[row("b", 0.5, 4.0, None, 1), row("a", 0.9, 1.0, 1, 2), row("c", 0.2, None, 2, None)]])
    assert ids(found) == ["b", "a", "c"]
    assert [hit.score for hit in found] == pytest.approx([3 / 61, 1 / 61 + 3 / 62, 1 / 62])
    assert found[2] == Hit(document_of("c", "text of c", "{}"), 1 / 62, 0.2, 2, None, None)


def test_relevance_is_from_0_to_1_in_the_order_of_scores():
    assert Search(1, VECTOR).relevance(0.5) == 0.5
    assert [Search(1, text="tea").relevance(score) for score in (0, 1, 3)] == [0, 0.5, 0.75]
    both = Search(1, VECTOR, "tea", fusion=Fusion(rank_constant=1, weights=(3, 1)))
    assert both.relevance(both.fusion.score(1, 1)) == 1
    assert both.relevance(both.fusion.score(1, None)) == 0.75


def test_rows_that_are_chosen_are_good_and_apart():
    def hit(name, score, vector):
        return Hit(document_of(name, name, "{}"), score, vector=vector)

    hits = [hit("a", 4.0, [1, 0]), hit("b", 3.9, [2, 0]), hit("c", 2.0, [0, 1]), hit("d", 1.0, [0, 0])]
    for search in (Search(9, text="tea"), Search(9, VECTOR, "tea")):
        assert ids(search.diverse(hits, 3, 1.0)) == ["a", "b", "c"]
        assert ids(search.diverse(hits, 2, 0.5)) == ["a", "c"]
        assert ids(search.diverse(hits, 9, 0.0)) == ["a", "c", "d", "b"]
        assert search.diverse([], 3, 0.5) == [] and search.diverse(hits, 0, 0.5) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": 0}, "candidates are from 1 to 10,000, unlike 0"),
        ({"candidates": 10_001}, "candidates are from 1 to 10,000"),
        ({"rank_constant": 0}, "rank_constant is from 1 to 10,000, unlike 0"),
        ({"weights": (1,)}, "weights are two numbers from 0 to 1,000"),
        ({"weights": (1, -1)}, "weights are two numbers"),
        ({"weights": (1, float("nan"))}, "weights are two numbers"),
        ({"weights": (0, 0)}, "of which one may be 0"),
        ({"search_mode": "words"}, "search_mode is vector, text or hybrid, unlike 'words'"),
        ({"analyzer": "english"}, "are of the full-text index: give text_index=True, too"),
        ({"text_index_options": {"positions": "false"}}, "are of the full-text index"),
    ],
    ids=str,
)
def test_options_out_of_their_ranges_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AnnulusVectorStore(None, session=None, keyspace="k", table="t", **options)


def test_the_indexes_keep_the_same_columns():
    at = {"session": None, "keyspace": "k", "table": "t", "metadata_columns": {"year": int}, "dimensions": 3}
    for namespace, kept in ((None, ""), ("one", "(namespace), ")):
        options = {"analyzer": "english", "text_index_options": {"positions": "false"}}
        store = AnnulusVectorStore(None, namespace=namespace, text_index=True, **options, **at)
        assert store._definition().text_index == TextIndex(
            "body",
            "english",
            f'CREATE CUSTOM INDEX IF NOT EXISTS "t_body" ON "k"."t" ({kept}body, "terms", "field_year") '
            "USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english', 'positions': 'false'}",
        )
    unsaid = AnnulusVectorStore(None, search_mode="text", **at)._definition().text_index
    assert unsaid.analyzer is None and unsaid.create.endswith("'fulltext_index'")
    assert AnnulusVectorStore(None, **at)._definition().text_index is None


class Schema:
    """A connection to a database whose table has a column and these indexes."""

    def __init__(self, *indexes):
        self._indexes = indexes
        self.defined = []

    def define(self, cql):
        self.defined.append(cql)

    def execute(self, statements):
        of_columns = "system_schema.columns" in statements[0].cql
        return [[("body", "text")] if of_columns else [(options,) for options in self._indexes]]


def words_index(target="body", **options):
    return {"class_name": "FullText_Index", "target": target} | options


LOCAL = json.dumps({"tc": "body", "pk": ["namespace"], "fc": ["terms"]})
VECTORS = {"class_name": "vector_index", "target": "embedding"}


def set_up(schema, analyzer=None):
    definition = Definition({"body": "text"}, "body", "create vectors", TextIndex("body", analyzer, "create words"))
    Table(schema, "k", "t", lambda: definition).set_up()
    return schema.defined[1:]


def test_a_new_table_gets_its_full_text_index_first():
    # One that has neither index is being made by somebody else, or was left half made.
    assert set_up(Schema()) == ["create words", "create vectors"]


@pytest.mark.parametrize("target", ["body", '"body"', LOCAL])
def test_a_full_text_index_that_is_there_is_taken(target):
    assert set_up(Schema(words_index(target), VECTORS)) == ["create vectors"]
    assert set_up(Schema(words_index(target, analyzer="English"), VECTORS), "english") == ["create vectors"]


def test_a_table_without_a_full_text_index_is_refused_with_the_remedy():
    for indexes in ((VECTORS,), (VECTORS, words_index("title"))):
        with pytest.raises(ValueError, match=r"k\.t exists without a full-text index.* statement create words; or"):
            set_up(Schema(*indexes))


def test_another_analyzer_is_refused():
    with pytest.raises(ValueError, match=r"of the table k\.t has the analyzer standard, not english"):
        set_up(Schema(words_index(), VECTORS), "english")


def test_alternatives_of_a_filter_are_statements_of_a_hybrid_search():
    fields = Fields({"year": int}, None)
    for wanted, count in ((None, 1), ({"year": 1}, 1), ({"year": {"$ne": 1}}, 4), ({"year": {"$in": []}}, 0)):
        wheres = [("", []) for _ in alternatives(wanted, fields)]
        assert len(Search(3, VECTOR, "tea").statements("t", wheres)) == count


class Answers:
    """A database whose table is there, which gives each statement the same rows."""

    def __init__(self, *rows):
        self._rows = list(rows)
        self.statements = []

    def set_up(self):
        pass

    async def aset_up(self):
        pass

    def execute(self, statements):
        self.statements += statements
        return [self._rows for _ in statements]

    async def aexecute(self, statements):
        return self.execute(statements)


def store_of(answers, **options):
    store = AnnulusVectorStore(WordEmbeddings(2), session=None, keyspace="k", table="t", text_index=True, **options)
    store._connection = answers
    store._table.set_up, store._table.aset_up = answers.set_up, answers.aset_up
    return store


async def test_each_way_to_search_takes_the_mode_of_the_store_or_of_the_call():
    both = [row("a", 0.9, 4.0, 1, 1, [1.0, 0.0]), row("b", 0.8, None, 2, None, [0.0, 1.0])]
    with_vectors, without = Answers(*both), Answers(*(one[:-1] for one in both))
    store = store_of(without, search_mode="hybrid")
    assert [score for _, score in store.similarity_search_with_score("tea")] == pytest.approx([2 / 61, 1 / 62])
    assert [document.id for document in await store.asimilarity_search("tea")] == ["a", "b"]
    relevant = store.similarity_search_with_relevance_scores("tea", score_threshold=0.9)
    assert [(document.id, score) for document, score in relevant] == [("a", 1.0)]
    assert await store.asimilarity_search_with_relevance_scores("tea", score_threshold=0.9) == relevant
    assert store._select_relevance_score_fn()(2 / 61) == 1
    diverse = store_of(with_vectors, search_mode="hybrid")
    found = diverse.as_scored_retriever(search_type="mmr", search_kwargs={"k": 2}).invoke("tea")
    assert [document.metadata["scores"]["text_rank"] for document in found] == [1, None]
    assert await diverse.as_retriever(search_type="mmr").ainvoke("tea") == diverse.max_marginal_relevance_search("tea")
    for mode, order in (("text", "BM25(body, bm25_words(?))"), ("vector", "embedding ANN OF ?")):
        one = Answers(row("a", 0.5))
        retriever = store_of(one).as_scored_retriever(scores_key="why", search_kwargs={"search_mode": mode})
        (document,) = await retriever.ainvoke("tea")
        why = document.metadata["why"]
        assert why["rank"] == why[f"{mode}_rank"] == 1 and why["score"] == why[f"{mode}_score"] == 0.5
        assert [statement.cql.split(" ORDER BY ")[1] for statement in one.statements] == [f"{order} LIMIT ?"]
    by_vector = Answers(row("a", 0.5))
    assert ids_of(store_of(by_vector, search_mode="text").similarity_search_by_vector(VECTOR)) == ["a"]
    assert "ANN OF" in by_vector.statements[0].cql


def ids_of(documents):
    return [document.id for document in documents]


def test_calls_refuse_what_nothing_takes():
    store = store_of(Answers())
    for search in (
        store.similarity_search,
        store.max_marginal_relevance_search,
        store.similarity_search_with_relevance_scores,
    ):
        with pytest.raises(TypeError, match="unexpected arguments: filters"):
            search("tea", filters={})
        with pytest.raises(ValueError, match="search_mode is vector, text or hybrid, unlike 'words'"):
            search("tea", search_mode="words")
