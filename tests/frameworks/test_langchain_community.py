"""langchain-community: its Cassandra vector store, caches, chat history, byte store and loader."""

import pytest
from langchain_community.cache import CassandraCache, CassandraSemanticCache
from langchain_community.chat_message_histories import CassandraChatMessageHistory
from langchain_community.document_loaders import CassandraLoader
from langchain_community.storage import CassandraByteStore
from langchain_community.utilities.cassandra import SetupMode
from langchain_community.vectorstores import Cassandra
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import Generation
from langchain_core.vectorstores import InMemoryVectorStore

ANIMALS = ["ant", "bear", "cat", "dog", "eel", "fox", "goat", "hen"]
PLACES = ["house", "river", "wood", "field", "hill"]
DOCUMENTS = [
    Document(f"a {animal} by the {place}", id=f"{animal}-{place}", metadata={"animal": animal, "place": place, "n": n})
    for n, (animal, place) in enumerate((animal, place) for animal in ANIMALS for place in PLACES)
]
QUERY = "the fox in the wood"


def of_a_table(place):
    return {"session": place["session"], "keyspace": place["keyspace"], "table_name": place["table"]}


def texts(documents):
    return [document.page_content for document in documents]


def nearest(embeddings, k, **metadata):
    """The texts that a search in memory finds."""
    store = InMemoryVectorStore(embeddings)
    store.add_documents([d for d in DOCUMENTS if metadata.items() <= d.metadata.items()])
    return texts(store.similarity_search(QUERY, k=k))


@pytest.fixture
def store(embeddings, place):
    store = Cassandra(embeddings, **of_a_table(place))
    assert store.add_documents(DOCUMENTS) == [document.id for document in DOCUMENTS]
    return store


def test_similar_texts(store, embeddings):
    assert texts(store.similarity_search(QUERY, k=5)) == nearest(embeddings, 5)
    scored = store.similarity_search_with_score(QUERY, k=5)
    assert texts(document for document, _ in scored) == nearest(embeddings, 5)
    scores = [score for _, score in scored]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    above = store.similarity_search_with_relevance_scores(QUERY, k=5, score_threshold=scores[2])
    assert texts(document for document, _ in above) == nearest(embeddings, 3)
    assert texts(store.as_retriever(search_kwargs={"k": 5}).invoke(QUERY)) == nearest(embeddings, 5)


@pytest.mark.parametrize("wanted", [{"place": "hill"}, {"animal": "cat", "place": "wood"}, {"n": 7}, {"animal": "yak"}])
async def test_similar_texts_by_metadata(store, embeddings, wanted):
    expected = nearest(embeddings, 4, **wanted)
    assert texts(store.similarity_search(QUERY, k=4, filter=wanted)) == expected
    assert texts(await store.asimilarity_search(QUERY, k=4, filter=wanted)) == expected
    assert texts(document for document, _ in store.similarity_search_with_score(QUERY, k=4, filter=wanted)) == expected
    retriever = store.as_retriever(search_kwargs={"k": 4, "filter": wanted})
    assert texts(retriever.invoke(QUERY)) == expected


async def test_diverse_texts(store):
    found = store.max_marginal_relevance_search(QUERY, k=4, fetch_k=12, lambda_mult=0.3)
    assert len(set(texts(found))) == 4
    assert texts(await store.amax_marginal_relevance_search(QUERY, k=4, fetch_k=12, lambda_mult=0.3)) == texts(found)
    hills = store.max_marginal_relevance_search(QUERY, k=4, fetch_k=12, filter={"place": "hill"})
    assert [document.metadata["place"] for document in hills] == ["hill"] * 4


async def test_documents_by_id_and_metadata(store):
    found = store.get_by_document_id("cat-wood")
    assert found == Document(
        "a cat by the wood", id="cat-wood", metadata={"animal": "cat", "place": "wood", "n": "12.0"}
    )
    assert store.get_by_document_id("yak-wood") is None
    cats = sorted(f"a cat by the {place}" for place in PLACES)
    assert sorted(texts(store.metadata_search({"animal": "cat"}, n=100))) == cats
    assert sorted(texts(await store.ametadata_search({"animal": "cat"}, n=100))) == cats
    store.replace_metadata({"cat-wood": {"animal": "tomcat"}})
    assert texts(store.metadata_search({"animal": "tomcat"}, n=9)) == ["a cat by the wood"]
    assert len(store.metadata_search({"animal": "cat"}, n=100)) == len(PLACES) - 1
    assert texts(store.similarity_search(QUERY, k=9, filter={"animal": "tomcat"})) == ["a cat by the wood"]


async def test_deletes(store):
    store.delete(["cat-wood", "no such"])
    await store.adelete(["cat-hill"])
    assert store.get_by_document_id("cat-wood") is None
    assert store.delete_by_metadata_filter({"animal": "cat"}) == len(PLACES) - 2
    assert store.similarity_search(QUERY, k=9, filter={"animal": "cat"}) == []
    assert await store.adelete_by_metadata_filter({"place": "hill"}) == len(ANIMALS) - 1
    assert "hill" not in {document.metadata["place"] for document in store.similarity_search(QUERY, k=100)}
    store.clear()
    assert store.similarity_search(QUERY, k=9) == []


async def test_set_up_by_async_calls(embeddings, place):
    store = Cassandra(embeddings, **of_a_table(place), setup_mode=SetupMode.ASYNC)
    await store.aadd_documents(DOCUMENTS[:10])
    assert len(await store.asimilarity_search(QUERY, k=100)) == 10
    again = Cassandra(embeddings, **of_a_table(place), setup_mode=SetupMode.OFF)
    assert len(again.similarity_search(QUERY, k=100)) == 10


def test_texts_that_expire(embeddings, place, server):
    store = Cassandra.from_texts(["a cat", "a dog"], embeddings, ids=["a", "b"], **of_a_table(place), ttl_seconds=600)
    assert store.get_by_document_id("a").page_content == "a cat"
    lives = place["session"].execute(f"SELECT ttl(body_blob) FROM {place['keyspace']}.{place['table']}")
    assert all(500 < life <= 600 for (life,) in lives)


async def test_a_cache(place):
    cache = CassandraCache(**of_a_table(place))
    answer = [Generation(text="because")]
    assert cache.lookup("why?", "a model") is None
    cache.update("why?", "a model", answer)
    assert cache.lookup("why?", "a model") == answer
    assert cache.lookup("why?", "other model") is None
    assert await cache.alookup("why?", "a model") == answer
    cache.delete("why?", "a model")
    assert cache.lookup("why?", "a model") is None
    await cache.aupdate("why?", "a model", answer)
    cache.clear()
    assert cache.lookup("why?", "a model") is None


async def test_a_semantic_cache(embeddings, place):
    cache = CassandraSemanticCache(embedding=embeddings, score_threshold=0.7, **of_a_table(place))
    answer = [Generation(text="because")]
    cache.update("why is the sky blue", "a model", answer)
    cache.update("how deep is the sea", "other model", [Generation(text="deep")])
    assert cache.lookup("why is the blue sky", "a model") == answer
    assert cache.lookup("why is the blue sky", "other model") is None
    assert cache.lookup("who sings", "a model") is None
    row, found = await cache.alookup_with_id("why is the sky so blue", "a model")
    assert found == answer
    cache.delete_by_document_id(row)
    assert cache.lookup("why is the sky blue", "a model") is None
    await cache.aupdate("why is the sky blue", "a model", answer)
    assert await cache.alookup("why is the sky blue", "a model") == answer
    cache.clear()
    assert cache.lookup("why is the sky blue", "a model") is None


async def test_a_history_of_messages(place):
    def history(name):
        return CassandraChatMessageHistory(name, **of_a_table(place))

    history("one").add_messages([HumanMessage("hello"), AIMessage("hi")])
    await history("one").aadd_messages([HumanMessage("bye")])
    history("two").add_user_message("other")
    assert [message.content for message in history("one").messages] == ["hello", "hi", "bye"]
    assert [message.type for message in await history("one").aget_messages()] == ["human", "ai", "human"]
    history("one").clear()
    assert history("one").messages == []
    assert [message.content for message in history("two").messages] == ["other"]


async def test_a_byte_store(place):
    store = CassandraByteStore(**place)
    store.mset([("a1", b"one"), ("a2", b"two"), ("b", b"three")])
    assert store.mget(["a1", "no", "b"]) == [b"one", None, b"three"]
    assert await store.amget(["a2"]) == [b"two"]
    assert sorted(store.yield_keys(prefix="a")) == ["a1", "a2"]
    store.mdelete(["a1", "no"])
    await store.amset([("c", b"four")])
    assert sorted([key async for key in store.ayield_keys()]) == ["a2", "b", "c"]


def test_a_loader(store, place):
    loader = CassandraLoader(**place, page_content_mapper=lambda row: row.body_blob)
    assert sorted(texts(loader.load())) == sorted(texts(DOCUMENTS))
