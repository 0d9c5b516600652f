"""What the evaluation measures, over a store in memory with a model that says what a test tells it to."""

from __future__ import annotations

import math

import pytest
from annulus_embedder.testing import running_stub_model
from annulus_rag_bench.config import Settings
from annulus_rag_bench.pipeline.evaluation import (
    Faithfulness,
    JudgedAnswer,
    QuestionScore,
    Retrieval,
    measure_faithfulness,
    measure_retrieval,
    unanswerable_questions,
)
from annulus_rag_bench.pipeline.model import ModelError, RemoteModel
from annulus_rag_bench.questions import JudgedQuestion
from memory_store import ARTICLES, MemoryStore, SayingModel, loaded_store, memory_pipeline

HEARTBEEPS, ROBOT_JOX, JAWS = (article.url for article in ARTICLES)
QUESTIONS = [
    JudgedQuestion(question="Which robots fall in love?", relevant={HEARTBEEPS: 3}),
    JudgedQuestion(question="Which robots fight?", relevant={HEARTBEEPS: 3}, first="1980-01-01", last="1999-12-31"),
]


class HybridStore(MemoryStore):
    """By words as well, it finds everything the other way round."""

    has_hybrid = True

    def related_articles(self, query, limit=5):  # type: ignore[no-untyped-def]
        found = super().related_articles(query, limit)
        return found[::-1] if query.hybrid else found


def test_retrieval_has_the_scores_of_judged_questions_and_the_nearest_distances() -> None:
    measured = measure_retrieval(memory_pipeline(), QUESTIONS)
    first, second = measured.scores
    assert (first.by_vectors, first.by_both, first.has_dates) == (1.0, None, False)
    # In the second place.
    assert second.by_vectors == pytest.approx(1 / math.log2(3)) and second.has_dates
    assert 0 < first.nearest < 0.6
    assert measured.mean(by_both=False) == pytest.approx((1 + second.by_vectors) / 2)
    assert measured.mean(by_both=False, has_dates=True) == second.by_vectors
    assert measured.mean(by_both=True) is None
    assert [text for text, _ in measured.unanswerable] == unanswerable_questions()


def test_a_store_that_searches_by_words_has_both_scores() -> None:
    store = HybridStore()
    plain = loaded_store()
    store.insert(plain.articles, plain.vectors)
    store.set_embedding_model("words")
    first, _ = measure_retrieval(memory_pipeline(store), QUESTIONS).scores
    assert (first.by_vectors, first.by_both) == (1.0, 0.5)


def test_shares_count_what_is_within_a_distance() -> None:
    scores = [QuestionScore("x", False, 1.0, None, nearest) for nearest in (0.2, 0.5, 0.6, 0.9)]
    measured = Retrieval(scores, [("y", 0.6), ("z", 0.7)])
    assert (measured.passed(0.6), measured.declined(0.6)) == (0.75, 0.5)
    assert (measured.passed(0.1), measured.declined(0.1)) == (0.0, 1.0)


def test_unanswerable_questions_are_many_and_different() -> None:
    questions = unanswerable_questions()
    assert len(questions) == len(set(questions)) >= 40
    assert all(question.endswith("?") for question in questions)


def test_faithfulness_is_the_share_of_statements_that_the_sources_have() -> None:
    model = SayingModel("Two robots do. [1] They marry. [1]", "yes\nno", "Giant ones.", "Yes.")
    progress: list[tuple[int, int]] = []
    measured = measure_faithfulness(
        memory_pipeline(model=model), QUESTIONS, lambda done, all: progress.append((done, all))
    )
    assert measured.supported == pytest.approx(2 / 3)
    assert (measured.declined, measured.uncited) == (0, 1)
    assert measured.answers[0].statements == ["Two robots do. [1]", "They marry. [1]"]
    assert measured.answers[0].supported == [True, False]
    assert progress == [(1, 2), (2, 2)]
    # The judge has the sources and the statements, without their citations.
    judged = model.chats[1][1]["content"]  # type: ignore[index]
    assert judged.startswith("[1] Heartbeeps. Published on 1981-12-18. Two robots fall in love.")
    assert judged.endswith("\n\nStatement: Two robots do.\nStatement: They marry.")


def test_a_refusal_is_counted_and_not_judged() -> None:
    measured = measure_faithfulness(memory_pipeline(model=SayingModel("not in the documents")), QUESTIONS)
    assert (measured.answers, measured.declined, measured.supported) == ([], 2, None)


def test_a_judgement_that_cannot_be_read_counts_for_nothing() -> None:
    model = SayingModel("Two robots do. [1]", "I could not say.", "Giant ones. [1]", "no")
    measured = measure_faithfulness(memory_pipeline(model=model), QUESTIONS)
    assert [answer.supported for answer in measured.answers] == [None, [False]]
    assert measured.supported == 0.0


def test_a_model_that_is_down_ends_the_measurement() -> None:
    model = SayingModel("Two robots do. [1]", "yes", ModelError("No model answers"))
    with pytest.raises(ModelError, match="No model answers"):
        measure_faithfulness(memory_pipeline(model=model), QUESTIONS)


def test_the_stub_is_not_judged_in_this_process_nor_as_a_server() -> None:
    with running_stub_model() as stub:
        remote = RemoteModel(Settings(model_url=stub.base_url))
        for pipeline in (memory_pipeline(), memory_pipeline(model=remote)):
            with pytest.raises(ModelError, match="measured with a real model alone"):
                measure_faithfulness(pipeline, QUESTIONS)
        assert stub.calls == 0


def test_without_a_verdict_there_is_no_share() -> None:
    assert Faithfulness([JudgedAnswer("x", "y.", ["y."], None)], 0, 0).supported is None
