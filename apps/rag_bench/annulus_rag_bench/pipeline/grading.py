"""Grades what was found: which articles help to answer a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from langchain_core.documents import Document

from ..config import Settings
from .model import ChatModel
from .prompts import grade_messages, graded_numbers


@dataclass(frozen=True)
class Grade:
    """The articles that help, in their order, and what a reader should know of it."""

    helpful: list[Document]
    note: str | None = None


class Grader(Protocol):
    """What decides."""

    def refusal(self, documents: Sequence[Document]) -> str:
        """Why none of these articles helps, in words."""

    def grade(self, question: str, documents: Sequence[Document]) -> Grade:
        """Grades articles. Raises `ModelError`."""


def grader_of(settings: Settings, model: ChatModel) -> Grader:
    """The grader that the settings name."""
    return ModelGrader(model) if settings.grader == "model" else DistanceGrader(settings.distance_max)


class DistanceGrader:
    """An article helps unless it is too far from the question. It costs nothing."""

    def __init__(self, distance_max: float) -> None:
        self.distance_max = distance_max

    def refusal(self, documents: Sequence[Document]) -> str:
        nearest = min(document.metadata["distance"] for document in documents)
        return f"The nearest article has a distance of {nearest:.3f}, and one helps up to {self.distance_max:g}."

    def grade(self, question: str, documents: Sequence[Document]) -> Grade:
        return Grade([document for document in documents if document.metadata["distance"] <= self.distance_max])


class ModelGrader:
    """The model names the articles that help, all of them in one call."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def refusal(self, documents: Sequence[Document]) -> str:
        return f"{self._model.name} says that none of the {len(documents)} articles found helps."

    def grade(self, question: str, documents: Sequence[Document]) -> Grade:
        if not documents:
            return Grade([])
        numbers = graded_numbers(self._model.complete(grade_messages(question, documents)), len(documents))
        if numbers is None:
            return Grade(
                list(documents), f"{self._model.name} graded no article in a form that can be read: all count."
            )
        return Grade([document for number, document in enumerate(documents, 1) if number in numbers])
