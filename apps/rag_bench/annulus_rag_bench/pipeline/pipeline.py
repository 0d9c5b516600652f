"""The whole pipeline: a question to its answer, with a store, an embedding model and a language model."""

import time
from typing import Self, cast

from langchain_core.documents import Document

from ..article import FoundArticle
from ..config import Settings
from ..embeddings import BundledModel, EmbeddingError, Embeddings, embeddings_of
from ..retrieval import QUESTION_CHARACTERS, QuestionError, check_dates, question_text
from ..stores import Store, StoreError, check_model
from .answer import Answer, Question, Source
from .connection import StoreConnection
from .graph import State, Steps, graph_of
from .grading import Grader, grader_of
from .metrics import Metrics
from .model import ChatModel, model_of

# The model reads all articles of a question.
SOURCES_MAX = 20
FAILURES = (StoreError, EmbeddingError, QuestionError)


class Pipeline:
    """Answers questions. Threads share it."""

    def __init__(self, connection: StoreConnection, embeddings: Embeddings, model: ChatModel, grader: Grader) -> None:
        self.connection, self.embeddings, self.model, self.grader = connection, embeddings, model, grader
        self.metrics = Metrics()
        self._graph = graph_of(Steps(connection, embeddings, grader, model))

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The pipeline that the settings name. The store is connected with the first question."""
        model = model_of(settings)
        pipeline = cls(StoreConnection(settings), embeddings_of(settings), model, grader_of(settings, model))
        pipeline.metrics.build.labels(settings.store, pipeline.embeddings.name, model.name).set(1)
        return pipeline

    def warm(self) -> None:
        """Loads the embedding model where it is in this process, so that no question waits for it."""
        if isinstance(self.embeddings, BundledModel):
            self.embeddings.embed(["a question"])

    def close(self) -> None:
        self.connection.close()
        self.model.close()

    def answer(self, question: Question) -> Answer:
        """The answer to a question. Raises `StoreError`, `EmbeddingError`, `QuestionError`; a model that fails is in
        the answer, as the articles are."""
        started = time.perf_counter()
        try:
            store = self.store_for(question)
            state: State = {"question": question}
            found = cast(State, self._graph.invoke(state))
        except FAILURES as error:
            self.metrics.failed(error)
            raise
        answer = answer_in(found, store.title, self.model.name)
        self.metrics.answered(answer, time.perf_counter() - started)
        return answer

    def articles(self, question: Question) -> list[FoundArticle]:
        """The articles nearest to a question, without an answer. Raises what `answer` raises."""
        try:
            self.store_for(question)
            found = Steps(self.connection, self.embeddings, self.grader, self.model).retrieve({"question": question})
        except FAILURES as error:
            self.metrics.failed(error)
            raise
        self.metrics.found(found["seconds"])
        return [article_of(document) for document in found["documents"]]

    def check(self) -> Store:
        """The store, if it can answer. Raises `StoreError`."""
        try:
            store = self.connection()
            check_model(store, self.embeddings.name)
        except StoreError as error:
            self.metrics.failed(error)
            raise
        self.metrics.up.set(1)
        return store

    def store_for(self, question: Question) -> Store:
        """The store, if the question has a meaning to it. Raises `QuestionError`, before anything is embedded."""
        question_text(question.text)
        check_dates(question.published_from, question.published_until)
        if not 1 <= question.limit <= SOURCES_MAX:
            raise QuestionError(f"the limit must be 1 to {SOURCES_MAX} articles, not {question.limit}")
        store = self.connection()
        if question.hybrid and not store.has_hybrid:
            raise QuestionError(f"{store.title} does not search by words as well: leave hybrid out")
        return store


def answer_in(state: State, store: str, model: str) -> Answer:
    """The answer that a finished graph has."""
    helpful, cited = state.get("helpful", []), state.get("cited", [])
    numbers = {document.metadata["url"]: number for number, document in enumerate(helpful, 1)}
    sources = [source_of(document, numbers, cited) for document in state["documents"]]
    asked = state["question"].text
    notes = list(state.get("notes", []))
    if len(asked) > QUESTION_CHARACTERS:
        notes.append(f"Of the question's {len(asked):,} characters the first {QUESTION_CHARACTERS:,} were read.")
    return Answer(
        question=question_text(asked),
        outcome=state["outcome"],
        text=state["text"],
        sources=sources,
        seconds=state["seconds"],
        notes=notes,
        error=state.get("error"),
        store=store,
        model=model,
    )


def source_of(document: Document, numbers: dict[str, int], cited: list[int]) -> Source:
    number = numbers.get(document.metadata["url"])
    return Source(number=number, cited=number in cited, body=document.page_content, **document.metadata)


def article_of(document: Document) -> FoundArticle:
    return FoundArticle(body=document.page_content, **document.metadata)
