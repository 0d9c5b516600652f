"""The graph (LangGraph): retrieve, grade, then answer with citations, or say that it is not in the documents.

retrieve -> grade -+-> answer
                   +-> decline
"""

import operator
from collections.abc import Callable
from typing import Annotated, TypedDict

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from ..embeddings import Embeddings
from ..stores import Store
from .answer import Outcome, Question
from .grading import Grader
from .model import ChatModel, ModelError
from .prompts import NOT_IN_DOCUMENTS, answer_messages, numbers_in, says_not_in_documents
from .retriever import ArticleRetriever
from .stopwatch import Stopwatch


class State(TypedDict, total=False):
    """What the steps of a question know of it."""

    question: Question
    # What was found, and what of it helps: the model's sources, numbered from 1.
    documents: list[Document]
    helpful: list[Document]
    outcome: Outcome
    text: str
    # The numbers of sources that the text cites.
    cited: list[int]
    error: str
    notes: Annotated[list[str], operator.add]
    seconds: Annotated[dict[str, float], operator.or_]


Graph = CompiledStateGraph[State, None, State, State]


class Steps:
    """The steps. Each takes the state and returns what it adds to it."""

    def __init__(self, store: Callable[[], Store], embeddings: Embeddings, grader: Grader, model: ChatModel) -> None:
        self._store, self._embeddings, self._grader, self._model = store, embeddings, grader, model

    def retrieve(self, state: State) -> State:
        question, stopwatch = state["question"], Stopwatch()
        retriever = ArticleRetriever(
            store=self._store(),
            embeddings=self._embeddings,
            limit=question.limit,
            published_from=question.published_from,
            published_until=question.published_until,
            hybrid=question.hybrid,
            stopwatch=stopwatch,
        )
        return {"documents": retriever.invoke(question.text), "seconds": stopwatch.seconds}

    def grade(self, state: State) -> State:
        stopwatch = Stopwatch()
        try:
            with stopwatch.step("grade"):
                grade = self._grader.grade(state["question"].text, state["documents"])
        except ModelError as error:
            return failed(error, stopwatch)
        notes = [] if grade.note is None else [grade.note]
        return {"helpful": grade.helpful, "notes": notes, "seconds": stopwatch.seconds}

    def answer(self, state: State) -> State:
        stopwatch = Stopwatch()
        try:
            with stopwatch.step("answer"):
                text = self._model.complete(answer_messages(state["question"].text, state["helpful"]))
        except ModelError as error:
            return failed(error, stopwatch)
        if says_not_in_documents(text):
            note = f"{self._model.name} does not find the answer in the sources."
            return {**declined(note), "seconds": stopwatch.seconds}
        numbers = numbers_in(text)
        cited = [number for number in numbers if 1 <= number <= len(state["helpful"])]
        return {
            "outcome": Outcome.ANSWERED,
            "text": text,
            "cited": cited,
            "notes": notes_about(cited, [number for number in numbers if number not in cited]),
            "seconds": stopwatch.seconds,
        }

    def decline(self, state: State) -> State:
        documents = state["documents"]
        return declined(self._grader.refusal(documents) if documents else "No article has such a date.")


def declined(note: str) -> State:
    return {"outcome": Outcome.NOT_IN_DOCUMENTS, "text": NOT_IN_DOCUMENTS, "notes": [note]}


def failed(error: ModelError, stopwatch: Stopwatch) -> State:
    return {"outcome": Outcome.NO_ANSWER, "text": "", "error": str(error), "seconds": stopwatch.seconds}


def notes_about(cited: list[int], invented: list[int]) -> list[str]:
    """What a reader should know of an answer with these citations."""
    notes = [f"It cites [{number}], which is no source." for number in invented]
    if not cited:
        notes.append("It cites no source: compare it with the articles.")
    return notes


def after_grade(state: State) -> str:
    """The step after the grades."""
    if "error" in state:
        return END
    return "answer" if state["helpful"] else "decline"


def graph_of(steps: Steps) -> Graph:
    """The steps as a graph."""
    graph: StateGraph[State, None, State, State] = StateGraph(State)
    graph.add_node("retrieve", steps.retrieve)
    graph.add_node("grade", steps.grade)
    graph.add_node("answer", steps.answer)
    graph.add_node("decline", steps.decline)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", after_grade, ["answer", "decline", END])
    graph.add_edge("answer", END)
    graph.add_edge("decline", END)
    return graph.compile()
