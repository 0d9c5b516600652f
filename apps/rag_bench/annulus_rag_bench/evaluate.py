"""nDCG@5 of the judged questions on a store that is loaded, by vectors and by words as well."""

from collections.abc import Sequence

from .embeddings import Embeddings
from .measure import mean
from .questions import DEPTH, JudgedQuestion, judged_questions, ndcg
from .retrieval import related_articles
from .stores import Store, check_model


def scores_of(store: Store, embeddings: Embeddings, questions: Sequence[JudgedQuestion], hybrid: bool) -> list[float]:
    """The score of each question, in their order."""
    found = (
        related_articles(
            store,
            embeddings,
            question.question,
            DEPTH,
            published_from=question.published_from,
            published_until=question.published_until,
            hybrid=hybrid,
        )
        for question in questions
    )
    return [
        ndcg([article.url for article in articles], question.relevant)
        for question, articles in zip(questions, found, strict=True)
    ]


def evaluation(store: Store, embeddings: Embeddings) -> str:
    """The scores of a store as a table. Raises `StoreError` where another model made its vectors."""
    check_model(store, embeddings.name)
    questions = judged_questions()
    orders = [("vectors", False)] + ([("hybrid", True)] if store.has_hybrid else [])
    scores = [scores_of(store, embeddings, questions, hybrid) for _, hybrid in orders]
    dated = [question.has_dates for question in questions]
    lines = [f"nDCG@{DEPTH} of {len(questions)} questions on {store.title}"]
    lines.append(f"{'':22}" + "".join(f"{order:>9}" for order, _ in orders))
    for name, wanted in (("all", None), ("with dates", True), ("without dates", False)):
        chosen = [at for at, has_dates in enumerate(dated) if wanted is None or has_dates is wanted]
        cells = "".join(f"{mean([values[at] for at in chosen]):9.3f}" for values in scores)
        lines.append(f"{f'{name} ({len(chosen)})':22}{cells}")
    return "\n".join(lines)
