"""LlamaIndex: its Cassandra vector store."""

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    ExactMatchFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.cassandra import CassandraVectorStore
from made import DIMENSIONS, Made

COUNT = 120
MADE = Made(COUNT)


def node(i):
    """Node `i`, one of four of a document."""
    return TextNode(
        id_=f"node {i}",
        text=f"text {i}",
        metadata=Made.metadata(i),
        embedding=MADE.vectors[i].tolist(),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"document {i // 4}")},
    )


@pytest.fixture
def store(place):
    store = CassandraVectorStore(**place, embedding_dimension=DIMENSIONS)
    assert store.add([node(i) for i in range(COUNT)]) == [f"node {i}" for i in range(COUNT)]
    return store


def found(store, vector, n, mode=VectorStoreQueryMode.DEFAULT, **metadata):
    filters = MetadataFilters(filters=[ExactMatchFilter(key=key, value=value) for key, value in metadata.items()])
    return store.query(
        VectorStoreQuery(
            query_embedding=vector,
            similarity_top_k=n,
            mode=mode,
            filters=filters if metadata else None,
            mmr_threshold=0.5,
        )
    )


def test_nearest_nodes(store):
    vector = MADE.query(0)
    result = found(store, vector, 5)
    expected = MADE.nearest(vector, range(COUNT), 5)
    assert result.ids == [f"node {i}" for i in expected]
    assert [node.text for node in result.nodes] == [f"text {i}" for i in expected]
    assert result.nodes[0].metadata == Made.metadata(expected[0])
    assert result.nodes[0].ref_doc_id == f"document {expected[0] // 4}"
    assert result.similarities == sorted(result.similarities, reverse=True)


@pytest.mark.parametrize("wanted", [{"colour": "red"}, {"colour": "blue", "year": 2003}, {"colour": "no"}])
def test_nearest_nodes_by_metadata(store, wanted):
    vector = MADE.query(1)
    expected = MADE.nearest(vector, MADE.matching(**wanted), 5)
    assert found(store, vector, 5, **wanted).ids == [f"node {i}" for i in expected]


def test_diverse_nodes(store):
    result = found(store, MADE.query(2), 4, VectorStoreQueryMode.MMR, colour="red")
    assert len(set(result.ids)) == 4
    assert {node.metadata["colour"] for node in result.nodes} == {"red"}


def test_a_document_that_is_deleted(store):
    vector = MADE.vectors[9].tolist()
    assert found(store, vector, 1).ids == ["node 9"]
    store.delete("document 2")
    left = [i for i in range(COUNT) if i // 4 != 2]
    assert found(store, vector, 5).ids == [f"node {i}" for i in MADE.nearest(vector, left, 5)]


def test_a_store_opened_again(store, place):
    again = CassandraVectorStore(**place, embedding_dimension=DIMENSIONS)
    again.add([node(3)])
    assert len(found(again, MADE.query(3), COUNT + 10).ids) == COUNT
