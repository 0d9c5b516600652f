"""Measures the pipeline on the store that is loaded: what it finds, what it declines, and whether it is faithful.

Three questions, each with its own measure:

- Does it find the right articles? nDCG@5 of the judged questions.
- Does it know what is not in the documents? The judged questions have an answer there; those of `unanswerable.txt`,
  about taps, taxes and thermodynamics, have none.
- Does an answer say no more than its sources? A model judges each sentence. The stub repeats sentences of the sources,
  so that this would say nothing of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document

from ..evaluate import scores_of
from ..questions import DEPTH, JudgedQuestion, judged_questions
from .answer import Answer, Outcome, Question
from .model import ChatModel, ModelError
from .pipeline import Pipeline
from .prompts import judge_messages, statements_of, verdicts_in

UNANSWERABLE = Path(__file__).with_name("unanswerable.txt")
STUB_IS_FAITHFUL = (
    "Faithfulness is measured with a real model alone. The stub repeats a sentence of an article, so that its answers "
    "are always faithful and say nothing of a model. Name a model by RAG_MODEL_URL and RAG_MODEL."
)

# Of what points the other way.
FARTHEST = 2.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """What a judged question came to."""

    question: str
    has_dates: bool
    by_vectors: float
    # None: the store does not search by words.
    by_both: float | None
    # The distance of the nearest article.
    nearest: float


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was found for the judged questions, and how near the articles are to questions without an answer."""

    scores: list[QuestionScore]
    unanswerable: list[tuple[str, float]]

    def mean(self, by_both: bool, has_dates: bool | None = None) -> float | None:
        """The mean nDCG@5 of the questions with dates, without them, or of all."""
        chosen = [score for score in self.scores if has_dates in (None, score.has_dates)]
        values = [score.by_both if by_both else score.by_vectors for score in chosen]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    def passed(self, distance_max: float) -> float:
        """The share of judged questions that have an article within a distance."""
        return share([score.nearest <= distance_max for score in self.scores])

    def declined(self, distance_max: float) -> float:
        """The share of questions without an answer that have no article within a distance."""
        return share([nearest > distance_max for _, nearest in self.unanswerable])


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer whose statements a model judged by its sources."""

    question: str
    text: str
    statements: list[str]
    # None: the judge's words could not be read.
    supported: list[bool] | None


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The answers to judged questions."""

    answers: list[JudgedAnswer]
    declined: int
    uncited: int

    @property
    def supported(self) -> float | None:
        """The share of statements that their sources have."""
        verdicts = [verdict for answer in self.answers for verdict in answer.supported or []]
        return share(verdicts) if verdicts else None


def unanswerable_questions(path: Path = UNANSWERABLE) -> list[str]:
    """Questions whose answers no article has."""
    return path.read_text().splitlines()


def measure_retrieval(pipeline: Pipeline, questions: Sequence[JudgedQuestion] | None = None) -> Retrieval:
    """What the store finds. Raises `StoreError`, `EmbeddingError`."""
    judged = judged_questions() if questions is None else questions
    store, embeddings = pipeline.check(), pipeline.embeddings
    by_vectors = scores_of(store, embeddings, judged, hybrid=False)
    by_both: Sequence[float | None] = [None] * len(judged)
    if store.has_hybrid:
        by_both = scores_of(store, embeddings, judged, hybrid=True)
    scores = [
        QuestionScore(question.question, question.has_dates, vectors, both, nearest_to(pipeline, question_of(question)))
        for question, vectors, both in zip(judged, by_vectors, by_both, strict=True)
    ]
    return Retrieval(scores, [(text, nearest_to(pipeline, Question(text))) for text in unanswerable_questions()])


def nearest_to(pipeline: Pipeline, question: Question) -> float:
    """The distance of the nearest article."""
    return min((article.distance for article in pipeline.articles(question)), default=FARTHEST)


def question_of(judged: JudgedQuestion) -> Question:
    return Question(judged.question, DEPTH, judged.published_from, judged.published_until)


def measure_faithfulness(
    pipeline: Pipeline,
    questions: Sequence[JudgedQuestion] | None = None,
    progress: Progress = lambda done, all: None,
) -> Faithfulness:
    """Answers the judged questions and has the same model judge each. Raises `ModelError`, also for the stub."""
    if pipeline.model.is_stub():
        raise ModelError(STUB_IS_FAITHFUL)
    judged = judged_questions() if questions is None else questions
    answers, declined, uncited = [], 0, 0
    for done, question in enumerate(judged, 1):
        answer = pipeline.answer(question_of(question))
        if answer.outcome is Outcome.NO_ANSWER:
            raise ModelError(f"{answer.error}")
        if answer.outcome is Outcome.ANSWERED:
            answers.append(judged_answer(pipeline.model, answer))
            uncited += not any(source.cited for source in answer.sources)
        declined += answer.outcome is Outcome.NOT_IN_DOCUMENTS
        progress(done, len(judged))
    return Faithfulness(answers, declined, uncited)


def judged_answer(model: ChatModel, answer: Answer) -> JudgedAnswer:
    statements = statements_of(answer.text)
    said = model.complete(judge_messages(statements, read_by_model(answer)))
    return JudgedAnswer(answer.question, answer.text, statements, verdicts_in(said, len(statements)))


def read_by_model(answer: Answer) -> list[Document]:
    """The sources of an answer, in the order of their numbers."""
    return [
        Document(source.body, metadata=source.model_dump(include={"url", "title", "publication_date"}))
        for source in answer.sources
        if source.number is not None
    ]


def share(verdicts: Sequence[bool]) -> float:
    return sum(verdicts) / len(verdicts) if verdicts else 0.0
