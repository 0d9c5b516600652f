"""Searches by words, and by words and vectors together, compared with a plain reading of what they mean."""

import math
import threading

import numpy
import pytest
from cassandra.cluster import ResponseFuture, Session
from cassandra.query import dict_factory
from langchain_core.documents import Document
from test_filters import COLUMNS, DOCUMENTS, EMBEDDINGS, SCORES, SEVERAL_FIELDS, satisfies
from words import WordEmbeddings

from langchain_annulus import AnnulusVectorStore

# That of `SCORES`, too.
QUERY = "w3 w5"
BY_ID = {document.id: document for document in DOCUMENTS}
# BM25 is the formula's, within this part of it.
NEARLY = 0.03


def bodies(documents):
    return [document.page_content for document in documents]


def bm25(words, documents):
    """The score of each document that has one of the words."""
    texts = {document.id: document.page_content.split() for document in documents}
    average = sum(map(len, texts.values())) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for word in words.split():
        having = sum(word in text for text in texts.values())
        idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for id, text in texts.items():
            count = text.count(word)
            scores[id] += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(text) / average))
    return {id: score for id, score in scores.items() if score}


WORDS = bm25(QUERY, DOCUMENTS)
FILTERS = [None, {"year": 1990}, {"kind": "x", "new": True}, {"no such": "x"}, *SEVERAL_FIELDS]


@pytest.fixture(scope="module")
def stores(session):
    """A store without namespaces, and one with them whose other namespaces are full, too."""
    at = {"session": session, "keyspace": "langchain", "metadata_columns": COLUMNS, "text_index": True}
    plain = AnnulusVectorStore(EMBEDDINGS, table="modes", **at)
    tenant = AnnulusVectorStore(EMBEDDINGS, table="modes_of_tenants", namespace="one", **at)
    for store in (plain, tenant, tenant.for_namespace("two")):
        store.add_documents(DOCUMENTS)
    # What other tenants have doesn't count in the scores of one.
    tenant.for_namespace("two").add_texts([QUERY] * 50)
    return {"plain": plain, "namespace": tenant}


@pytest.mark.parametrize("kind", ["plain", "namespace"])
@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: str(wanted)[:60])
async def test_words_with_filters(stores, kind, wanted):
    matching = [document for document in DOCUMENTS if satisfies(document.metadata, wanted or {})]
    scores = sorted((WORDS[one.id] for one in matching if one.id in WORDS), reverse=True)
    for k in (3, len(DOCUMENTS)):
        found = stores[kind].similarity_search_with_score(QUERY, k=k, filter=wanted, search_mode="text")
        assert await stores[kind].asimilarity_search_with_score(QUERY, k=k, filter=wanted, search_mode="text") == found
        assert all(document == BY_ID[document.id] for document, _ in found)
        assert all(satisfies(document.metadata, wanted or {}) for document, _ in found)
        assert len({document.id for document, _ in found}) == len(found)
        assert [score for _, score in found] == pytest.approx(scores[:k], rel=NEARLY)


@pytest.mark.parametrize("kind", ["plain", "namespace"])
@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: str(wanted)[:60])
async def test_both_with_filters(stores, kind, wanted):
    matching = [document.id for document in DOCUMENTS if satisfies(document.metadata, wanted or {})]
    having = [id for id in matching if id in WORDS]
    retriever = stores[kind].as_scored_retriever(
        search_kwargs={"k": len(DOCUMENTS), "filter": wanted, "search_mode": "hybrid"}
    )
    found = retriever.invoke(QUERY)
    assert await retriever.ainvoke(QUERY) == found
    # All documents are candidates of the search for the vector, and those with a word of the other.
    assert sorted(document.id for document in found) == sorted(matching)
    scores = {document.id: document.metadata.pop("scores") for document in found}
    assert all(document == BY_ID[document.id] for document in found)
    assert [scores[document.id]["rank"] for document in found] == list(range(1, len(found) + 1))
    for name, true, ids in (("vector", SCORES, matching), ("text", WORDS, having)):
        ranked = {scores[id][f"{name}_rank"]: id for id in scores if scores[id][f"{name}_rank"] is not None}
        assert sorted(ranked) == list(range(1, len(ids) + 1))
        of_found = [scores[ranked[rank]][f"{name}_score"] for rank in sorted(ranked)]
        assert of_found == pytest.approx(sorted((true[id] for id in ids), reverse=True), rel=NEARLY)
    for one in scores.values():
        ranks = [rank for rank in (one["vector_rank"], one["text_rank"]) if rank is not None]
        assert one["score"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks))
        assert (one["text_score"] is None) == (one["text_rank"] is None)
    ordered = [scores[document.id]["score"] for document in found]
    assert ordered == sorted(ordered, reverse=True)
    best = stores[kind].similarity_search(QUERY, k=3, filter=wanted, search_mode="hybrid")
    assert len(best) == min(3, len(matching)) and {document.id for document in best} <= set(matching)


TEXTS = {
    "cats": "A cat sleeps, and the other cats play",
    "dog": "The dog plays in the garden",
    "sail": "A ship sails over the sea",
    "c++": "Programs in C++ (and C) AND their makers",
}


@pytest.fixture
def store(place):
    store = AnnulusVectorStore(WordEmbeddings(), search_mode="text", analyzer="english", **place)
    store.add_texts(list(TEXTS.values()), [{"n": number} for number in range(len(TEXTS))], ids=list(TEXTS))
    return store


def ids(documents):
    return [document.id for document in documents]


def test_words_are_those_of_the_analyzer_and_as_they_are(store):
    for query, found in (
        ("playing", {"cats", "dog"}),
        ("sailing ships", {"sail"}),
        ("the", set()),
        ("", set()),
        ("...", set()),
        ('"C++ (AND', {"c++"}),
        ("dog* -sea", {"dog", "sail"}),
    ):
        assert set(ids(store.similarity_search(query))) == found, query


async def test_the_query_language_is_read_on_request(store, place):
    language = AnnulusVectorStore(WordEmbeddings(), search_mode="text", query_language=True, **place)
    for query, found in (
        ("playing AND dog", {"dog"}),
        ("playing NOT dog", {"cats"}),
        ('"ship sails"', {"sail"}),
        ("gard* OR shipp~1", {"dog", "sail"}),
    ):
        assert set(ids(language.similarity_search(query))) == found, query
        assert set(ids(await store.asimilarity_search(query, query_language=True))) == found, query
    assert set(ids(language.similarity_search("playing AND dog", query_language=False))) == {"cats", "dog"}
    with pytest.raises(Exception, match="query"):
        language.similarity_search("(dog")


async def test_a_search_for_words_makes_no_embedding(store, place):
    class NoEmbeddings(WordEmbeddings):
        def embed_query(self, text):
            raise AssertionError("words need no vector")

    words = AnnulusVectorStore(NoEmbeddings(), search_mode="text", dimensions=32, **place)
    assert ids(words.similarity_search("dog")) == ["dog"]
    assert ids(words.max_marginal_relevance_search("dog")) == ["dog"]
    assert ids(await words.as_retriever(search_type="mmr").ainvoke("dog")) == ["dog"]
    with pytest.raises(AssertionError, match="words need no vector"):
        words.similarity_search("dog", search_mode="vector")


def test_changes_are_found_at_once(store):
    store.add_texts(["nothing of the kind"], ids=["dog"])
    assert store.similarity_search("dog") == []
    store.delete(["sail"])
    assert store.similarity_search("ship") == []
    assert ids(store.similarity_search("kind")) == ["dog"]
    store.clear()
    assert store.similarity_search("cat kind play") == []


async def test_thresholds_are_of_relevance(place):
    store = AnnulusVectorStore(WordEmbeddings(), search_mode="hybrid", **place)
    store.add_texts(["red tea", "red red wine", "blue sky"], ids=["tea", "wine", "sky"])
    both = store.similarity_search_with_relevance_scores("red tea", k=3)
    assert both[0][0].id == "tea" and both[0][1] == pytest.approx(1)
    assert await store.asimilarity_search_with_relevance_scores("red tea", k=3) == both
    above = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"k": 3, "score_threshold": 0.9})
    assert ids(above.invoke("red tea")) == ["tea", "wine"]
    words = store.similarity_search_with_relevance_scores("red tea", k=3, search_mode="text")
    raw = store.similarity_search_with_score("red tea", k=3, search_mode="text")
    assert ids(document for document, _ in words) == ["tea", "wine"]
    assert [score for _, score in words] == pytest.approx([score / (1 + score) for _, score in raw])
    options = {"k": 3, "score_threshold": words[0][1] - 1e-6, "search_mode": "text"}
    scored = store.as_scored_retriever(search_type="similarity_score_threshold", search_kwargs=options)
    (found,) = await scored.ainvoke("red tea")
    assert found.metadata["scores"] == {
        "rank": 1,
        "score": raw[0][1],
        "relevance": words[0][1],
        "vector_score": None,
        "vector_rank": None,
        "text_score": raw[0][1],
        "text_rank": 1,
    }


@pytest.mark.parametrize("mode", ["text", "hybrid"])
async def test_marginal_relevance(place, mode):
    store = AnnulusVectorStore(WordEmbeddings(), search_mode=mode, **place)
    texts = ["dog cat", "dog cat cat cat", "dog eel", "fox"]
    store.add_texts(texts, [{"n": n} for n in (1, 1, 1, 2)], ids=list("abcd"))
    options = {"k": 2, "filter": {"n": 1}}
    order = ids(store.similarity_search("dog cat", k=3, filter={"n": 1}))
    assert set(order) == {"a", "b", "c"} and order[2] == "c"
    assert ids(store.max_marginal_relevance_search("dog cat", lambda_mult=1, **options)) == order[:2]
    far = store.max_marginal_relevance_search("dog cat", lambda_mult=0.1, **options)
    assert ids(far) == [order[0], "c"]
    assert await store.amax_marginal_relevance_search("dog cat", lambda_mult=0.1, **options) == far
    retriever = store.as_scored_retriever(search_type="mmr", search_kwargs=options | {"lambda_mult": 0.1})
    assert [one.metadata["scores"]["rank"] for one in retriever.invoke("dog cat")] == [1, 3]
    assert store.max_marginal_relevance_search("dog cat", filter={"n": 3}) == []


def test_weights_candidates_and_the_constant_make_the_order(place):
    at = {"search_mode": "hybrid", **place}
    AnnulusVectorStore(WordEmbeddings(), **at).add_embeddings(
        [("red tea", unit(1)), ("tea", unit(2)), ("blue sky", unit(0))], ids=["both", "tea", "sky"]
    )

    class Zero(WordEmbeddings):
        def embed_query(self, text):
            return unit(0)

    def search(**options):
        return AnnulusVectorStore(Zero(), **at, **options).similarity_search_with_score("red tea", k=3)

    assert ids(one for one, _ in search()) == ["both", "tea", "sky"]
    assert ids(one for one, _ in search(weights=(1, 0))) == ["sky", "both", "tea"]
    assert ids(one for one, _ in search(weights=(0, 1))) == ["both", "tea", "sky"]
    # As high by its one rank is "sky", whose rank of vectors is the better one.
    steep = search(rank_constant=1, weights=(3, 1), candidates=3)
    assert [(one.id, round(score, 4)) for one, score in steep] == [("sky", 1.5), ("both", 1.5), ("tea", 1.0833)]
    with pytest.raises(Exception, match="1,?000"):
        AnnulusVectorStore(Zero(), **at).similarity_search("red tea", k=1001)


def unit(number):
    """A vector that is the nearer to that of 0, the smaller the number is."""
    return [math.cos(number / 2), math.sin(number / 2), *[0.0] * 30]


def test_rows_as_mappings(connect, store, place):
    session = connect(row_factory=dict_factory)
    other = AnnulusVectorStore(WordEmbeddings(), text_index=True, **place | {"session": session})
    for mode in ("text", "hybrid"):
        expected = store.similarity_search_with_score("cat plays", search_mode=mode)
        assert other.similarity_search_with_score("cat plays", search_mode=mode) == expected


async def test_asyncio_is_never_blocked_by_words(place, monkeypatch):
    loop = threading.current_thread()
    for of, name in ((Session, "execute"), (Session, "prepare"), (ResponseFuture, "result")):
        original = getattr(of, name)

        def call(*arguments, original=original, **named):
            assert threading.current_thread() is not loop
            return original(*arguments, **named)

        monkeypatch.setattr(of, name, call)
    store = AnnulusVectorStore(WordEmbeddings(), search_mode="hybrid", dimensions=32, **place)
    await store.aadd_texts(["a cat", "a dog"])
    for mode in ("text", "hybrid"):
        assert bodies(await store.asimilarity_search("cat", k=1, search_mode=mode)) == ["a cat"]
        assert bodies(await store.amax_marginal_relevance_search("cat", k=1, search_mode=mode)) == ["a cat"]
        filtered = await store.asimilarity_search("cat", filter={"$or": [{"a": 1}, {"b": 1}]}, search_mode=mode)
        assert filtered == []


def test_a_table_made_without_a_full_text_index_names_the_remedy(session, place):
    plain = AnnulusVectorStore(WordEmbeddings(), **place)
    plain.add_texts(["a cat"], ids=["a"])
    with pytest.raises(ValueError, match="search_mode='text' needs a full-text index, which this store has none of"):
        plain.similarity_search("cat", search_mode="text")
    words = AnnulusVectorStore(WordEmbeddings(), search_mode="text", **place)
    with pytest.raises(ValueError, match="exists without a full-text index") as refused:
        words.similarity_search("cat")
    statement = str(refused.value).split("by the statement ")[1].split("; or")[0]
    session.execute(statement)
    assert ids(words.similarity_search("cat")) == ["a"]
    assert words.similarity_search("cat", filter={"kind": "x"}) == []


def test_an_index_with_another_analyzer_is_refused(store, place):
    other = AnnulusVectorStore(WordEmbeddings(), search_mode="text", analyzer="german", **place)
    with pytest.raises(ValueError, match="has the analyzer english, not german"):
        other.similarity_search("cat")
    taken = AnnulusVectorStore(WordEmbeddings(), search_mode="text", **place)
    assert ids(taken.similarity_search("dogs")) == ["dog"]


def test_documents_that_show_scores_keep_their_metadata(store):
    shown = store.as_scored_retriever(scores_key="why", search_kwargs={"k": 1}).invoke("dog")
    assert [document.metadata.keys() for document in shown] == [{"n", "why"}]
    assert ids(store.as_retriever().invoke("dog")) == ids(shown)
    assert store.get_by_ids(["dog"]) == [Document(TEXTS["dog"], id="dog", metadata={"n": 1})]
    near = store.similarity_search("dog", k=1, search_mode="vector", scores_key="why")[0].metadata["why"]
    assert near["vector_rank"] == 1 and near["text_rank"] is None and near["score"] == near["vector_score"]
    embeddings = WordEmbeddings()
    cosine = float(numpy.array(embeddings.embed_query("dog")) @ embeddings.embed_query(TEXTS["dog"]))
    assert near["vector_score"] == pytest.approx((1 + cosine) / 2, abs=1e-5)
