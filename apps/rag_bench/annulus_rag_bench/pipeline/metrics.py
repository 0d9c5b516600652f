"""Metrics in Prometheus' form."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from ..embeddings import EmbeddingError
from ..retrieval import QuestionError
from ..stores import StoreError
from .answer import Answer, Outcome

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
DISTANCES = tuple(hundredths / 100 for hundredths in range(10, 105, 5))
STEPS = ("embed", "check", "search", "grade", "answer")
# What failed, by its error.
PARTS: dict[type[Exception], str] = {StoreError: "store", EmbeddingError: "embeddings", QuestionError: "question"}


class Metrics:
    """Counts and times of one service."""

    def __init__(self) -> None:
        # The time at which each counter began doubles the text, and says nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self.build = Gauge(
            "rag_build_info", "Which store and models.", ["store", "embeddings", "model"], registry=registry
        )
        self.questions = Counter("rag_questions", "Questions by how they ended.", ["outcome"], registry=registry)
        self.failures = Counter("rag_failures", "Requests that a part failed.", ["part"], registry=registry)
        self.step = Histogram("rag_step_seconds", "Time of each step.", ["step"], registry=registry, buckets=SECONDS)
        self.whole = Histogram("rag_question_seconds", "Time of whole questions.", registry=registry, buckets=SECONDS)
        self.nearest = Histogram(
            "rag_nearest_distance", "Distance of the nearest article.", registry=registry, buckets=DISTANCES
        )
        self.articles = Counter("rag_articles", "Articles that were found, by their use.", ["use"], registry=registry)
        self.uncited = Counter("rag_answers_without_citation", "Answers that cite no source.", registry=registry)
        self.up = Gauge("rag_store_up", "Whether the store answered when it was last needed.", registry=registry)
        self._begin()

    def _begin(self) -> None:
        """Makes all series, so that a rate has a first value."""
        for outcome in Outcome:
            self.questions.labels(outcome.value)
        for part in (*PARTS.values(), "model"):
            self.failures.labels(part)
        for step in STEPS:
            self.step.labels(step)
        for use in ("cited", "read", "left out"):
            self.articles.labels(use)

    def answered(self, answer: Answer, seconds: float) -> None:
        """Counts a question that came through, if only without an answer."""
        self.questions.labels(answer.outcome.value).inc()
        self.whole.observe(seconds)
        self.found(answer.seconds)
        for source in answer.sources:
            use = "cited" if source.cited else "left out" if source.number is None else "read"
            self.articles.labels(use).inc()
        if answer.sources:
            self.nearest.observe(min(source.distance for source in answer.sources))
        if answer.outcome is Outcome.NO_ANSWER:
            self.failures.labels("model").inc()
        if answer.outcome is Outcome.ANSWERED and not any(source.cited for source in answer.sources):
            self.uncited.inc()

    def found(self, seconds: dict[str, float]) -> None:
        """Counts the steps of a question whose articles were found."""
        self.up.set(1)
        for step, taken in seconds.items():
            self.step.labels(step).observe(taken)

    def failed(self, error: Exception) -> None:
        """Counts a request that failed."""
        part = next((part for kind, part in PARTS.items() if isinstance(error, kind)), None)
        if part is not None:
            self.failures.labels(part).inc()
        if part == "store":
            self.up.set(0)

    def text(self) -> bytes:
        """All metrics in Prometheus' text form."""
        return generate_latest(self.registry)
