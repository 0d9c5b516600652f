"""LangChain's vector store and key-value store on Annulus.

Both work on a session of `cassandra-driver` or of `scylla-driver`, which the application opens, or which
they open by a connection string. The vector store searches by vectors, by words, and by both.
"""

from langchain_annulus.byte_store import AnnulusByteStore
from langchain_annulus.retriever import AnnulusRetriever
from langchain_annulus.vector_store import AnnulusVectorStore

__all__ = ["AnnulusByteStore", "AnnulusRetriever", "AnnulusVectorStore"]
