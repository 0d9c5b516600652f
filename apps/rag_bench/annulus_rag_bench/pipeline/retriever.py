"""A store as a retriever of LangChain: any chain or graph may have it."""

from datetime import datetime
from typing import Annotated

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SkipValidation

from ..article import FoundArticle
from ..embeddings import Embeddings
from ..retrieval import ARTICLES_MAX, query_of
from ..stores import Store, check_model
from .stopwatch import Stopwatch


class ArticleRetriever(BaseRetriever):
    """The articles nearest to a question as documents, the best first.

    Raises `StoreError`, `EmbeddingError`, and `QuestionError` for a question without a meaning."""

    store: Annotated[Store, SkipValidation]
    embeddings: Annotated[Embeddings, SkipValidation]
    limit: int = Field(default=5, ge=1, le=ARTICLES_MAX)
    published_from: datetime | None = None
    published_until: datetime | None = None
    hybrid: bool = False
    stopwatch: Annotated[Stopwatch, SkipValidation] = Field(default_factory=Stopwatch)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with self.stopwatch.step("embed"):
            asked = query_of(self.embeddings, query, self.published_from, self.published_until, self.hybrid)
        with self.stopwatch.step("check"):
            # At each question, as the articles may have been loaded again meanwhile.
            check_model(self.store, self.embeddings.name)
        with self.stopwatch.step("search"):
            found = self.store.related_articles(asked, self.limit)
        return [document_of(article) for article in found]


def document_of(article: FoundArticle) -> Document:
    """An article as a document: the body is its content, all else is its metadata."""
    metadata = {
        "url": article.url,
        "title": article.title,
        "publication_date": article.publication_date,
        "distance": article.distance,
    }
    return Document(article.body, metadata=metadata)
