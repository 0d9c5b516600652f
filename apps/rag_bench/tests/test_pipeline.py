"""From a question to its answer, over a store in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from annulus_rag_bench.config import Settings
from annulus_rag_bench.pipeline.answer import Outcome, Question
from annulus_rag_bench.pipeline.model import ModelError
from annulus_rag_bench.pipeline.retriever import ArticleRetriever
from annulus_rag_bench.retrieval import QuestionError
from annulus_rag_bench.stores import StoreError
from memory_store import ARTICLES, MemoryStore, SayingModel, WordEmbeddings, loaded_store, memory_pipeline

ROBOTS = "Which robots fall in love?"


def test_an_answer_is_a_sentence_of_a_source_that_it_cites() -> None:
    answer = memory_pipeline().answer(Question(ROBOTS))
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text == "Two robots fall in love. [1]"
    assert [(source.number, source.cited, source.title) for source in answer.sources[:2]] == [
        (1, True, "Heartbeeps"),
        (2, False, "Robot Jox"),
    ]
    assert answer.notes == [] and answer.error is None
    assert (answer.store, answer.model) == ("Memory", "stub")


def test_each_step_has_its_time_in_order() -> None:
    answer = memory_pipeline().answer(Question(ROBOTS))
    assert list(answer.seconds) == ["embed", "check", "search", "grade", "answer"]
    assert all(0 <= seconds < 30 for seconds in answer.seconds.values())


def test_an_article_that_is_too_far_is_left_out_and_never_read() -> None:
    model = SayingModel("Two robots do. [1]")
    answer = memory_pipeline(model=model).answer(Question(ROBOTS))
    assert [source.title for source in answer.sources if source.number is None] == ["Jaws"]
    assert "shark" not in str(model.chats)


def test_without_a_near_article_no_model_is_asked() -> None:
    model = SayingModel("Anything. [1]")
    answer = memory_pipeline(model=model).answer(Question("quantum chromodynamics"))
    assert (answer.outcome, answer.text) == (Outcome.NOT_IN_DOCUMENTS, "not in the documents")
    assert answer.notes[0].startswith("The nearest article has a distance of 0.9")
    assert model.chats == [] and "answer" not in answer.seconds
    assert [source.number for source in answer.sources] == [None] * 3


def test_without_an_article_of_these_dates_it_is_said() -> None:
    answer = memory_pipeline().answer(Question.between(ROBOTS, 5, date(2001, 1, 1)))
    assert (answer.outcome, answer.notes) == (Outcome.NOT_IN_DOCUMENTS, ["No article has such a date."])


def test_both_days_of_a_range_belong_to_it() -> None:
    answer = memory_pipeline().answer(Question.between("robots", 5, date(1981, 12, 18), date(1990, 11, 21)))
    assert {source.title for source in answer.sources} == {"Heartbeeps", "Robot Jox"}


def test_a_model_may_find_no_answer_in_what_is_near() -> None:
    answer = memory_pipeline(model=SayingModel("Not in the documents.")).answer(Question(ROBOTS))
    assert answer.outcome is Outcome.NOT_IN_DOCUMENTS
    assert answer.notes == ["saying does not find the answer in the sources."]
    assert not any(source.cited for source in answer.sources)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("They do. [1] And more. [9]", ["It cites [9], which is no source."]),
        ("They do.", ["It cites no source: compare it with the articles."]),
        ("They do. [0]", ["It cites [0], which is no source.", "It cites no source: compare it with the articles."]),
    ],
)
def test_citations_that_do_not_hold_are_said(text: str, notes: list[str]) -> None:
    answer = memory_pipeline(model=SayingModel(text)).answer(Question(ROBOTS))
    assert (answer.outcome, answer.notes) == (Outcome.ANSWERED, notes)


def test_a_model_that_is_down_leaves_the_articles() -> None:
    answer = memory_pipeline(model=SayingModel(ModelError("No model answers"))).answer(Question(ROBOTS))
    assert (answer.outcome, answer.text, answer.error) == (Outcome.NO_ANSWER, "", "No model answers")
    assert [source.number for source in answer.sources if source.number] == [1, 2]
    assert "answer" in answer.seconds


def test_a_model_may_grade() -> None:
    model = SayingModel("[2]", "Giant robots fight. [1]")
    answer = memory_pipeline(model=model, grader="model").answer(Question(ROBOTS))
    assert [(source.number, source.cited) for source in answer.sources] == [(None, False), (1, True), (None, False)]
    assert len(model.chats) == 2 and "in love" not in str(model.chats[1][1]).split("Question:")[0]


def test_a_model_that_grades_may_leave_nothing() -> None:
    answer = memory_pipeline(model=SayingModel("none"), grader="model").answer(Question(ROBOTS))
    assert answer.outcome is Outcome.NOT_IN_DOCUMENTS
    assert answer.notes == ["saying says that none of the 3 articles found helps."]


def test_a_grade_that_cannot_be_read_leaves_all() -> None:
    model = SayingModel("Let me think about it.", "They do. [3]")
    answer = memory_pipeline(model=model, grader="model").answer(Question(ROBOTS))
    assert [source.number for source in answer.sources] == [1, 2, 3]
    assert answer.notes == ["saying graded no article in a form that can be read: all count."]


def test_a_model_that_is_down_when_it_grades_leaves_the_articles() -> None:
    pipeline = memory_pipeline(model=SayingModel(ModelError("No model answers")), grader="model")
    answer = pipeline.answer(Question(ROBOTS))
    assert (answer.outcome, answer.error) == (Outcome.NO_ANSWER, "No model answers")
    assert len(answer.sources) == 3 and "grade" in answer.seconds


def test_a_question_of_100_kb_is_read_in_part_and_says_so() -> None:
    store = loaded_store()
    answer = memory_pipeline(store).answer(Question("robots love " * 8_500))
    assert answer.outcome is Outcome.ANSWERED
    assert answer.notes == ["Of the question's 102,000 characters the first 2,000 were read."]
    assert len(store.queries[0].text) <= 2_000


@pytest.mark.parametrize(
    "text",
    ["Welche Roboter lieben?", "ロボットの恋", "روبوتات في الحب", "🤖❤️🤖", "a\0b", "\ud83d", "'; DROP TABLE x", "<b>"],
)
def test_any_language_and_any_sign_is_a_question(text: str) -> None:
    answer = memory_pipeline().answer(Question(text))
    assert answer.outcome in (Outcome.ANSWERED, Outcome.NOT_IN_DOCUMENTS)
    assert answer.model_dump_json().encode()


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (Question(""), "the question is empty"),
        (Question(" \n\0 "), "the question is empty"),
        (Question("x", limit=0), "1 to 20 articles, not 0"),
        (Question("x", limit=21), "1 to 20 articles, not 21"),
        (Question.between("x", 5, date(2000, 1, 1), date(1999, 1, 1)), "no date is both after 2000-01-01"),
        (Question("x", hybrid=True), "Memory does not search by words"),
    ],
)
def test_a_question_without_a_meaning_is_refused(question: Question, says: str) -> None:
    pipeline = memory_pipeline()
    for ask in (pipeline.answer, pipeline.articles):
        with pytest.raises(QuestionError, match=says):
            ask(question)


def test_another_embedding_model_is_refused_at_once() -> None:
    store = loaded_store()
    pipeline = memory_pipeline(store)
    pipeline.answer(Question(ROBOTS))
    store.set_embedding_model("another")
    with pytest.raises(StoreError, match=r"embedded by another, and questions would be by words.*load --store memory"):
        pipeline.answer(Question(ROBOTS))


def test_a_store_that_is_down_is_tried_again_with_the_next_question() -> None:
    tries = []

    def connect(settings: Settings) -> MemoryStore:
        tries.append(settings.store)
        if len(tries) == 1:
            raise StoreError("No Memory answers")
        return loaded_store()

    pipeline = memory_pipeline(connect=connect)
    with pytest.raises(StoreError, match="No Memory answers"):
        pipeline.answer(Question(ROBOTS))
    assert pipeline.answer(Question(ROBOTS)).outcome is Outcome.ANSWERED
    pipeline.answer(Question(ROBOTS))
    assert len(tries) == 2


def test_closing_closes_the_store() -> None:
    store = loaded_store()
    pipeline = memory_pipeline(store)
    pipeline.close()
    assert not store.is_closed
    pipeline.answer(Question(ROBOTS))
    pipeline.close()
    assert store.is_closed


def test_threads_share_a_pipeline() -> None:
    pipeline = memory_pipeline()
    asked = [ROBOTS, "Who hunts swimmers?"] * 20
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: pipeline.answer(Question(text)), asked))
    assert [answer.text for answer in answers[:2]] == ["Two robots fall in love. [1]", "A shark hunts swimmers. [1]"]
    assert [answer.text for answer in answers] == [answer.text for answer in answers[:2]] * 20


def test_the_store_is_a_retriever_of_langchain() -> None:
    retriever = ArticleRetriever(store=loaded_store(), embeddings=WordEmbeddings(), limit=2)
    first, second = retriever.invoke(ROBOTS)
    assert first.page_content == ARTICLES[0].body
    assert first.metadata["url"] == ARTICLES[0].url and first.metadata["title"] == "Heartbeeps"
    assert 0 < first.metadata["distance"] < second.metadata["distance"]
    # As a part of any chain.
    titles = retriever | (lambda documents: [document.metadata["title"] for document in documents])
    assert titles.batch([ROBOTS, "a shark"]) == [["Heartbeeps", "Robot Jox"], ["Jaws", "Robot Jox"]]
