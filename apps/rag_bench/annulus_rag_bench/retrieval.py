"""The function of the series: a question to the articles that are related to it."""

from datetime import datetime

from .article import FoundArticle
from .embeddings import Embeddings
from .stores.store import Query, Store, StoreError

# More than the model reads (256 tokens), and less than anything that a person types.
QUESTION_CHARACTERS = 2_000
ARTICLES_MAX = 100


class QuestionError(ValueError):
    """The question has no answer, whatever the articles. The text says what is wrong with it."""


def related_articles(
    store: Store,
    embeddings: Embeddings,
    text: str,
    limit: int = 5,
    *,
    published_from: datetime | None = None,
    published_until: datetime | None = None,
    hybrid: bool = False,
) -> list[FoundArticle]:
    """The articles nearest to a question, which its first 2,000 characters are. Raises `QuestionError`."""
    query = query_of(embeddings, text, published_from, published_until, hybrid)
    if not 1 <= limit <= ARTICLES_MAX:
        raise QuestionError(f"the limit must be 1 to {ARTICLES_MAX}, not {limit}")
    if hybrid and not store.has_hybrid:
        raise StoreError(f"{store.title} does not search by words as well: leave hybrid out")
    return store.related_articles(query, limit)


def query_of(
    embeddings: Embeddings,
    text: str,
    published_from: datetime | None = None,
    published_until: datetime | None = None,
    hybrid: bool = False,
) -> Query:
    """The query of a question. Raises `QuestionError`."""
    question = question_text(text)
    check_dates(published_from, published_until)
    return Query(question, embeddings.embed([question])[0], published_from, published_until, hybrid)


def question_text(text: str) -> str:
    """What is read of a question. Raises `QuestionError` where that is nothing."""
    # Half a character, which JSON can carry, is no text in UTF-8; and PostgreSQL takes no zero character.
    question = text[:QUESTION_CHARACTERS].encode(errors="replace").decode().replace("\0", " ").strip()
    if not question:
        raise QuestionError("the question is empty: say what the articles should be about")
    return question


def check_dates(published_from: datetime | None, published_until: datetime | None) -> None:
    """Raises `QuestionError` where no date is in a range."""
    if published_from is not None and published_until is not None and published_from > published_until:
        raise QuestionError(f"no date is both after {published_from:%Y-%m-%d} and before {published_until:%Y-%m-%d}")
