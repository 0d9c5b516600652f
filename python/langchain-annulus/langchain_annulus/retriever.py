"""The retriever whose documents show their scores."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever


class AnnulusRetriever(VectorStoreRetriever):
    """A retriever on an `AnnulusVectorStore` whose documents say why they were found.

    `AnnulusVectorStore.as_scored_retriever` makes it. It has the search types of other retrievers:
    `similarity`, `similarity_score_threshold` and `mmr`, and `search_kwargs` such as `k`, `filter` and
    `search_mode`. The metadata of its documents have one entry more, a mapping:

    | entry | |
    | --- | --- |
    | `rank` | the place in the order of the search, from 1; with `mmr` documents come in another order |
    | `score` | what this order is of: the score of the vector, of the words, or of both ranks |
    | `relevance` | the score as one from 0 to 1 |
    | `vector_score`, `vector_rank` | the similarity of the vectors, and the place among those nearest |
    | `text_score`, `text_rank` | the score of the words by BM25, and the place among those that match best |

    None is what the search doesn't know: scores and ranks of what it doesn't look for, the score of words
    and the rank of a document that only the other search of a hybrid one has among its candidates.

    Args:
        vectorstore: the store.
        scores_key: the name of the entry, which replaces one that the document has.
    """

    scores_key: str = "scores"

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return super()._get_relevant_documents(query, run_manager=run_manager, **self._with_key(kwargs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await super()._aget_relevant_documents(query, run_manager=run_manager, **self._with_key(kwargs))

    def _with_key(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"scores_key": self.scores_key} | arguments
