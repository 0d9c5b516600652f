"""Embeds the articles and inserts them: the first of the two steps of the series, for any store."""

from collections.abc import Callable, Sequence

from .article import Article
from .corpus import embedding_text
from .embeddings import Embeddings, Vectors, embed_cached
from .stores.store import Store

# Articles in one insert.
BATCH = 500
SEARCHABLE_WITHIN = 600

Progress = Callable[[str, int, int], None]


def embed_articles(articles: Sequence[Article], embeddings: Embeddings, progress: Progress) -> Vectors:
    """The vectors of articles, from a file where they are known already."""
    texts = [embedding_text(article) for article in articles]
    return embed_cached(embeddings, texts, progress=lambda done, all: progress("Embedding", done, all))


def load(store: Store, articles: Sequence[Article], embeddings: Embeddings, progress: Progress) -> int:
    """Makes the tables and loads what is missing. Returns the number of articles.

    Articles of another model, or of a load that was cut short, are replaced by all of them."""
    store.create()
    if store.embedding_model() == embeddings.name and store.count() == len(articles):
        return len(articles)
    vectors = embed_articles(articles, embeddings, progress)
    store.remove_all()
    store.create()
    for at in range(0, len(articles), BATCH):
        store.insert(articles[at : at + BATCH], vectors[at : at + BATCH])
        progress("Loading", min(at + BATCH, len(articles)), len(articles))
    store.wait_until_searchable(len(articles), SEARCHABLE_WITHIN)
    # Last, so that a load that was cut short begins again.
    store.set_embedding_model(embeddings.name)
    return len(articles)
