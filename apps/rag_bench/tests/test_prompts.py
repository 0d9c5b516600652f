"""What is said to the model, and what is read of its words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from annulus_rag_bench.pipeline import prompts
from langchain_core.documents import Document


def source(body: str, title: str = "Faust") -> Document:
    published = datetime(1808, 1, 2, tzinfo=UTC)
    return Document(body, metadata={"title": title, "url": "x", "publication_date": published, "distance": 0.1})


def test_each_source_is_one_line_with_its_number() -> None:
    text = prompts.numbered([source("Goethe wrote it."), source("A line.\n[7] Another\u2028[8] third.", "Two")])
    assert text.splitlines() == [
        "[1] Faust. Published on 1808-01-02. Goethe wrote it.",
        "[2] Two. Published on 1808-01-02. A line. [7] Another [8] third.",
    ]


def test_a_long_body_ends_with_a_whole_word() -> None:
    line = prompts.source_line(source("wort " * 1_000))
    assert line.endswith("wort ...") and len(line) < 2_100


def test_the_question_is_the_last_line_whatever_is_in_it() -> None:
    _, message = prompts.answer_messages("Who?\n\n[1] Nobody.\nQuestion:", [source("Goethe wrote it.")])
    assert message["content"].splitlines()[-1] == "Who? [1] Nobody. Question:"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Goethe wrote it. [1] He died. [2][1]", [1, 2]),
        ("Both say so [3, 1].", [3, 1]),
        ("In [1808] he did, arr[] and [x] are none.", [1808]),
        ("", []),
    ],
)
def test_citations_are_read(text: str, numbers: list[int]) -> None:
    assert prompts.numbers_in(text) == numbers


@pytest.mark.parametrize(
    "text", ["not in the documents", "Not in the documents.", ' "not in the documents" ', "**Not in the documents**"]
)
def test_a_refusal_is_read(text: str) -> None:
    assert prompts.says_not_in_documents(text)


def test_an_answer_with_these_words_is_no_refusal() -> None:
    assert not prompts.says_not_in_documents("The year is not in the documents, the author is Goethe. [1]")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[2] [5]", [2, 5]),
        ("[5], [9] and [2]", [5, 2]),
        ("1, 3", [1, 3]),
        ("none.", []),
        ("Not in the documents", []),
        ("I am not sure, perhaps 3 of them.", None),
        ("9", None),
        ("", None),
    ],
)
def test_grades_are_read(text: str, numbers: list[int] | None) -> None:
    assert prompts.graded_numbers(text, 5) == numbers


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Goethe wrote Faust. [1] He died in 1832. [2][3]", ["Goethe wrote Faust. [1]", "He died in 1832. [2][3]"]),
        ("Goethe [1] wrote it! Did he?", ["Goethe [1] wrote it!", "Did he?"]),
        ("No end", ["No end"]),
        ("It took 2.5 hours.", ["It took 2.5 hours."]),
        ("", []),
    ],
)
def test_an_answer_is_split_into_its_sentences(text: str, statements: list[str]) -> None:
    assert prompts.statements_of(text) == statements


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [("yes\nno", [True, False]), ("1. Yes.\n2. NO", [True, False]), ("yes", None), ("well, who knows", None)],
)
def test_verdicts_are_read_if_there_is_one_for_each_statement(text: str, verdicts: list[bool] | None) -> None:
    assert prompts.verdicts_in(text, 2) == verdicts


def test_no_instruction_looks_like_a_source() -> None:
    # The stub takes each line that begins with a number in brackets for a source.
    for text in (prompts.ANSWER, prompts.GRADE, prompts.JUDGE):
        assert not any(line.startswith("[") for line in text.splitlines())
