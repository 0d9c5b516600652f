"""What all stores are measured with: articles, vectors and questions, the same for each."""

import re
from collections.abc import Callable, Sequence

from .article import Article
from .corpus import load_articles
from .embeddings import Embeddings, embed_cached
from .load import embed_articles
from .measure import Task
from .questions import JudgedQuestion, judged_questions
from .stores import Query

# Questions of the latencies: those that were judged, and first sentences of articles up to this number.
QUERIES = 300
# Below so many articles it is a quick look.
WHOLE_CORPUS = 10_000
ROUNDS, QUICK_ROUNDS = 4, 1
FIRST_SENTENCE = re.compile(r"^.{40,200}?[.!?](?=\s)", re.DOTALL)

Progress = Callable[[str, int, int], None]


def benchmark_task(count: int | None, embeddings: Embeddings, progress: Progress) -> Task:
    """The task with so many articles, or with all of them."""
    judged = judged_questions()
    everything = load_articles()
    articles = [everything[at] for at in chosen_places(everything, judged, count or len(everything))]
    article_vectors = embed_articles(articles, embeddings, progress)
    sentences = first_sentences(articles, QUERIES - len(judged))
    texts = [question.question for question in judged] + sentences
    vectors = embed_cached(embeddings, texts)
    queries = [Query(text, vector) for text, vector in zip(texts, vectors, strict=True)]
    with_dates = [
        (question, Query(query.text, query.vector, question.published_from, question.published_until))
        for question, query in zip(judged, queries, strict=False)
    ]
    rounds = ROUNDS if len(articles) >= WHOLE_CORPUS else QUICK_ROUNDS
    return Task(articles, article_vectors, queries, with_dates, rounds)


def chosen_places(articles: Sequence[Article], judged: Sequence[JudgedQuestion], count: int) -> list[int]:
    """The places of so many articles, spread over all of them; those that are right answers are among them."""
    right = {url for question in judged for url, grade in question.relevant.items() if grade}
    places = [at for at, article in enumerate(articles) if article.url in right][:count]
    known = set(places)
    others = [at for at in range(len(articles)) if at not in known]
    wanted = min(count, len(articles)) - len(places)
    places += [others[at * len(others) // wanted] for at in range(wanted)]
    return sorted(places)


def first_sentences(articles: Sequence[Article], count: int) -> list[str]:
    """The first sentences of articles, spread over all of them."""
    found = [match[0] for article in articles if (match := FIRST_SENTENCE.match(article.body))]
    count = min(count, len(found))
    return [found[at * len(found) // count] for at in range(count)]
