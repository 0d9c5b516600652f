"""The vector store beyond LangChain's standard tests: scores, namespaces, metadata, asyncio, misuse."""

import asyncio
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import numpy
import pytest
from cassandra.cluster import ResponseFuture, Session
from cassandra.query import dict_factory, tuple_factory
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from words import WordEmbeddings

from langchain_annulus import AnnulusVectorStore
from langchain_annulus._session import Address, address_of

EMBEDDINGS = WordEmbeddings()
TEXTS = ["a cat in the wood", "a dog in the wood", "a dog on a hill", "a fox on a hill", "an eel in a river"]
QUERY = "the dog in the wood"


def bodies(documents):
    return [document.page_content for document in documents]


@pytest.fixture
def store(place):
    store = AnnulusVectorStore(EMBEDDINGS, metadata_columns={"number": int}, **place)
    store.add_texts(
        TEXTS, [{"number": number, "place": text.split()[-1]} for number, text in enumerate(TEXTS)], ids=list("abcde")
    )
    return store


def similarities():
    vector = numpy.array(EMBEDDINGS.embed_query(QUERY))
    return {text: float(vector @ EMBEDDINGS.embed_query(text)) for text in TEXTS}


@pytest.mark.parametrize(
    ("similarity", "score"),
    [
        ("cosine", lambda cosine: (1 + cosine) / 2),
        ("dot_product", lambda cosine: (1 + cosine) / 2),
        ("euclidean", lambda cosine: 1 / (1 + 2 - 2 * cosine)),
    ],
)
async def test_scores(place, similarity, score):
    store = AnnulusVectorStore(EMBEDDINGS, similarity=similarity, **place)
    store.add_texts(TEXTS)
    expected = sorted(((score(cosine), text) for text, cosine in similarities().items()), reverse=True)
    for found in (
        store.similarity_search_with_score(QUERY, k=5),
        store.similarity_search_with_relevance_scores(QUERY, k=5),
        await store.asimilarity_search_with_score(QUERY, k=5),
        await store.asimilarity_search_with_relevance_scores(QUERY, k=5),
        store.similarity_search_with_score_by_vector(EMBEDDINGS.embed_query(QUERY), k=5),
    ):
        assert bodies(document for document, _ in found) == [text for _, text in expected]
        assert [number for _, number in found] == pytest.approx([number for number, _ in expected], abs=1e-5)
    above = store.similarity_search_with_relevance_scores(QUERY, k=5, score_threshold=expected[1][0] - 1e-4)
    assert bodies(document for document, _ in above) == [text for _, text in expected[:2]]


async def test_ways_to_search(store):
    nearest = bodies(store.similarity_search(QUERY, k=2))
    assert nearest == ["a dog in the wood", "a cat in the wood"]
    vector = EMBEDDINGS.embed_query(QUERY)
    assert bodies(store.similarity_search_by_vector(vector, k=2)) == nearest
    assert bodies(await store.asimilarity_search_by_vector(vector, k=2)) == nearest
    assert bodies(store.as_retriever(search_kwargs={"k": 2}).invoke(QUERY)) == nearest
    hills = store.as_retriever(search_kwargs={"filter": {"place": "hill"}})
    assert bodies(await hills.ainvoke(QUERY)) == ["a dog on a hill", "a fox on a hill"]
    assert store.similarity_search(QUERY, k=0) == []


async def test_marginal_relevance(place):
    store = AnnulusVectorStore(EMBEDDINGS, **place)
    store.add_texts(["dog dog dog cat", "dog dog dog cat cat", "dog eel", "fox"], [{"n": n} for n in (1, 1, 1, 2)])
    near = store.max_marginal_relevance_search("dog cat", k=2, lambda_mult=1)
    assert bodies(near) == ["dog dog dog cat cat", "dog dog dog cat"]
    far = store.max_marginal_relevance_search("dog cat", k=2, lambda_mult=0.2, filter={"n": 1})
    assert bodies(far) == ["dog dog dog cat cat", "dog eel"]
    assert await store.amax_marginal_relevance_search("dog cat", k=2, lambda_mult=0.2, filter={"n": 1}) == far
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 0.2, "filter": {"n": 1}})
    assert retriever.invoke("dog cat") == far
    assert store.max_marginal_relevance_search("dog cat", filter={"n": 3}) == []


async def test_namespaces_are_apart(place):
    one = AnnulusVectorStore(EMBEDDINGS, namespace="one", **place)
    two = one.for_namespace("two")
    one.add_texts(TEXTS[:3], ids=["a", "b", "c"])
    two.add_texts(TEXTS[3:], ids=["a", "b"])
    assert set(bodies(one.similarity_search(QUERY, k=9))) == set(TEXTS[:3])
    assert set(bodies(await two.asimilarity_search(QUERY, k=9))) == set(TEXTS[3:])
    assert bodies(one.get_by_ids(["b", "a", "no"])) == [TEXTS[1], TEXTS[0]]
    assert bodies(await two.aget_by_ids(["c", "b"])) == [TEXTS[4]]
    two.delete(["a"])
    assert bodies(one.get_by_ids(["a"])) == [TEXTS[0]]
    await one.aclear()
    assert one.similarity_search(QUERY) == []
    assert bodies(two.similarity_search(QUERY)) == [TEXTS[4]]


METADATA = {
    "text": "ü\0\u2028",
    "int": 2**70,
    "float": 0.1,
    "whole float": 2.0,
    "infinite": float("inf"),
    "true": True,
    "none": None,
    "list": [1, 1.0, "1", True, None, [2]],
    "map": {"a": {"b": [1]}},
    "empty": {},
    "own": {"langchain_annulus": {"value": 1}},
    "datetime": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    "local": datetime(2026, 1, 2),
    "date": date(2026, 1, 2),
    "decimal": Decimal("1.10"),
    "uuid": UUID(int=7),
    "bytes": b"\0\xff",
}


async def test_metadata_keeps_its_types(place):
    store = AnnulusVectorStore(
        EMBEDDINGS, metadata_columns={"float": float, "datetime": datetime, "list": list[int]}, **place
    )
    metadata = METADATA | {"list": [3, 1, 3]}
    store.add_texts(["a text", "a word"], [metadata, METADATA | {"list": []}], ids=["a", "b"])
    for found in (*store.get_by_ids(["a"]), *await store.aget_by_ids(["a"]), *store.similarity_search("a text", k=1)):
        assert found.metadata == metadata
        assert {name: type(value) for name, value in found.metadata.items()} == {
            name: type(value) for name, value in metadata.items()
        }
    assert [type(one) for one in store.get_by_ids(["b"])[0].metadata["list"]] == []


def test_metadata_without_columns_keeps_its_types(place):
    store = AnnulusVectorStore(EMBEDDINGS, **place)
    store.add_texts(["a text"], [METADATA], ids=["a"])
    (found,) = store.get_by_ids(["a"])
    assert found.metadata == METADATA
    assert [type(one) for one in found.metadata["list"]] == [type(one) for one in METADATA["list"]]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"number": "1"}, "'number' is declared as int, and '1' is of type str"),
        ({"number": True}, "'number' is declared as int, and True is of type bool"),
        ({"other": object}, "metadata can't hold <class 'object'>, a type"),
    ],
)
def test_metadata_that_is_refused(store, metadata, message):
    with pytest.raises(TypeError, match=message):
        store.add_texts(["a text", "another"], [{}, metadata], batch_size=1)
    assert len(store.similarity_search("a text", k=99)) == len(TEXTS)


def test_the_last_document_of_an_id_stands(store):
    assert (
        store.add_texts([f"a text {n}" for n in range(50)], [{"number": n} for n in range(50)], ids=["a"] * 50)
        == ["a"] * 50
    )
    assert store.get_by_ids(["a"]) == [Document("a text 49", id="a", metadata={"number": 49})]
    assert store.similarity_search("a text", k=99, filter={"number": {"$lt": 49}, "place": "wood"}) == [
        Document(TEXTS[1], id="b", metadata={"number": 1, "place": "wood"})
    ]


def test_many_documents(store):
    ids = store.add_texts((f"w{n} w{n % 50}" for n in range(700)), batch_size=300)
    assert len(set(ids)) == 700
    assert len(store.get_by_ids(ids)) == 700
    store.delete(ids[:650])
    assert bodies(store.get_by_ids(ids)) == [f"w{n} w{n % 50}" for n in range(650, 700)]


def test_documents_that_expire(session, place):
    AnnulusVectorStore(EMBEDDINGS, ttl=600, **place).add_texts(["a text"])
    ((left,),) = session.execute(f"SELECT ttl(body) FROM {place['keyspace']}.{place['table']}")
    assert 0 < left <= 600


def test_langchains_indexing(store):
    records = InMemoryRecordManager("records")
    records.create_schema()
    documents = [Document(text, metadata={"source": text[-4:]}) for text in TEXTS]
    store.clear()
    for added, deleted, some in ((5, 0, documents), (0, 0, documents), (0, 3, documents[:2])):
        done = index(some, records, store, cleanup="full", source_id_key="source", key_encoder="sha256")
        assert (done["num_added"], done["num_deleted"]) == (added, deleted)
    assert set(bodies(store.similarity_search(QUERY, k=9))) == set(TEXTS[:2])


async def test_made_of_texts(place):
    store = await AnnulusVectorStore.afrom_texts(TEXTS, EMBEDDINGS, ids=list("abcde"), **place)
    await store.adelete(["a", "b"])
    again = AnnulusVectorStore.from_documents([Document("a cat", id="z")], EMBEDDINGS, **place)
    assert sorted(document.id for document in again.similarity_search(QUERY, k=9)) == ["c", "d", "e", "z"]
    assert again.embeddings is EMBEDDINGS


@pytest.mark.parametrize("row_factory", [dict_factory, tuple_factory])
async def test_sessions_that_make_other_rows(connect, store, place, row_factory):
    other = AnnulusVectorStore(
        EMBEDDINGS, metadata_columns={"number": int}, **place | {"session": connect(row_factory=row_factory)}
    )
    assert other.similarity_search(QUERY, k=2) == store.similarity_search(QUERY, k=2)
    assert await other.asimilarity_search(QUERY, k=2) == store.similarity_search(QUERY, k=2)


async def test_asyncio_is_never_blocked(place, monkeypatch):
    loop = threading.current_thread()

    def only_elsewhere(of, name):
        original = getattr(of, name)

        def call(*arguments, **named):
            assert threading.current_thread() is not loop, f"{name} blocks the event loop"
            return original(*arguments, **named)

        monkeypatch.setattr(of, name, call)

    class Slow(WordEmbeddings):
        async def aembed_documents(self, texts):
            return await asyncio.to_thread(WordEmbeddings.embed_documents, self, texts)

        async def aembed_query(self, text):
            return await asyncio.to_thread(WordEmbeddings.embed_query, self, text)

    for of, name in (
        (Session, "execute"),
        (Session, "prepare"),
        (ResponseFuture, "result"),
        (Slow, "embed_query"),
        (Slow, "embed_documents"),
    ):
        only_elsewhere(of, name)
    store = AnnulusVectorStore(Slow(), **place)
    ids = await store.aadd_texts(TEXTS, [{"n": n} for n in range(5)])
    found = await asyncio.gather(*(store.asimilarity_search(text, k=1) for text in TEXTS))
    assert [bodies(documents) for documents in found] == [[text] for text in TEXTS]
    assert len(await store.aget_by_ids(ids)) == 5
    assert len(await store.amax_marginal_relevance_search(QUERY, k=2)) == 2
    await store.adelete(ids[:1])
    await store.adelete(filter={"n": 1})
    await store.aclear()


async def test_errors_of_the_server_come_through(place):
    store = AnnulusVectorStore(EMBEDDINGS, **place)
    for vector in ([0.0], [1.0] * 5):
        with pytest.raises(Exception, match="dimension|vector"):
            store.similarity_search_by_vector(vector)
        with pytest.raises(Exception, match="dimension|vector"):
            await store.asimilarity_search_by_vector(vector)


def test_another_shape_of_the_table_is_refused(store, place):
    for options, message in (
        ({}, None),
        ({"metadata_columns": {"number": str}}, "needs field_number text, and it is bigint"),
        ({"metadata_columns": {"other": str}}, "needs field_other text, and there is none"),
        ({"dimensions": 7}, "needs embedding vector<float, 7>, and it is vector<float, 32>"),
        ({"namespace": "one"}, "has no namespaces: leave namespace= out"),
    ):
        other = AnnulusVectorStore(EMBEDDINGS, **place, **options)
        if message is None:
            other.similarity_search(QUERY)
            continue
        with pytest.raises(ValueError, match=message):
            other.similarity_search(QUERY)


def test_a_table_with_namespaces_refuses_a_store_without_one(place):
    AnnulusVectorStore(EMBEDDINGS, namespace="one", **place).add_texts(TEXTS)
    with pytest.raises(ValueError, match="has namespaces: give the store one by namespace="):
        AnnulusVectorStore(EMBEDDINGS, **place).similarity_search(QUERY)


async def test_texts_with_vectors_are_added_without_an_embedding(place):
    class NoEmbeddings(WordEmbeddings):
        def embed_documents(self, texts):
            raise AssertionError("the vectors are there")

    pairs = list(zip(TEXTS, EMBEDDINGS.embed_documents(TEXTS), strict=True))
    for options in ({}, {"namespace": "one"}):
        at = place | {"table": f"{place['table']}{len(options)}"}
        store = AnnulusVectorStore(NoEmbeddings(), metadata_columns={"number": int}, **at, **options)
        metadatas = [{"number": number} for number in range(len(TEXTS))]
        assert store.add_embeddings(iter(pairs[:3]), metadatas[:3], ids=list("abc"), batch_size=2) == list("abc")
        assert len(await store.aadd_embeddings(pairs[3:], metadatas[3:])) == 2
        assert bodies(store.similarity_search(QUERY, k=2)) == ["a dog in the wood", "a cat in the wood"]
        assert bodies(store.similarity_search(QUERY, k=9, filter={"number": {"$gte": 4}})) == ["an eel in a river"]
        # Of texts with one id the last counts.
        assert store.add_embeddings([pairs[4], pairs[0]], ids=["a", "a"]) == ["a", "a"]
        assert bodies(store.get_by_ids(["a"])) == TEXTS[:1]


def test_a_connection_string_takes_the_place_of_a_session(server, place):
    AnnulusVectorStore(EMBEDDINGS, **place).add_texts(TEXTS)
    for text in (f"cql://{server.host}:{server.cql_port}", f"{server.host}:{server.cql_port}"):
        store = AnnulusVectorStore(EMBEDDINGS, **place | {"session": text})
        assert bodies(store.similarity_search(QUERY, k=1)) == ["a dog in the wood"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", Address([("localhost", 9042)])),
        ("cql://a:1,b", Address([("a", 1), ("b", 9042)])),
        ("cql://[::1]:9", Address([("::1", 9)])),
        ("cql://ann:p%40s%2Fs@a", Address([("a", 9042)], "ann", "p@s/s")),
        ("cql://ann:@a/?ca=/etc/ca.pem", Address([("a", 9042)], "ann", "", "/etc/ca.pem")),
    ],
)
def test_addresses_of_connection_strings(text, address):
    assert address_of(text) == address


@pytest.mark.parametrize(
    "text", ["", "http://a", "cql://", "cql://ann@a", "cql://a/keyspace", "cql://a?tls=1", "cql://a,"]
)
def test_texts_that_are_no_connection_strings(text):
    with pytest.raises(ValueError, match="a connection string"):
        address_of(text)


def test_names_may_be_long_and_have_capitals(place):
    options = {"metadata_columns": {"F" * 60: str}, "index_options": {"quantization": "i8"}}
    for name in ("T" * 48, "Select"):
        store = AnnulusVectorStore(EMBEDDINGS, **place | {"table": name}, **options)
        store.add_texts(TEXTS, [{"F" * 60: text[-4:]} for text in TEXTS])
        assert bodies(store.similarity_search(QUERY, k=1, filter={"F" * 60: "hill"})) == ["a dog on a hill"]


def test_misuse_is_refused(store, place):
    with pytest.raises(TypeError, match="unexpected arguments: filters"):
        store.similarity_search(QUERY, filters={"place": "hill"})
    with pytest.raises(ValueError, match=r"name ids or a filter to delete by; clear\(\) deletes all"):
        store.delete()
    with pytest.raises(ValueError, match="2 texts have 1 metadatas and 2 ids"):
        store.add_texts(["a", "b"], [{}])
    with pytest.raises(ValueError, match="this store has no namespaces"):
        store.for_namespace("one")
    with pytest.raises(ValueError, match="a table is named by a letter, then"):
        AnnulusVectorStore(EMBEDDINGS, **place | {"table": "a; b"})
    for fields, message in (
        ({"a b": int}, "'a b' can't be declared: names of columns are letters, digits and _"),
        ({"a": dict}, "'a' can't be declared as dict: types are str, int, float, bool, datetime, list"),
    ):
        with pytest.raises(ValueError, match=message):
            AnnulusVectorStore(EMBEDDINGS, metadata_columns=fields, **place)
