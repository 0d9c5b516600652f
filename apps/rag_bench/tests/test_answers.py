"""Answers from a real server: the command, the service, a database that goes away and comes back, another model."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from annulus_rag_bench.config import Settings
from annulus_rag_bench.embeddings import BundledModel
from annulus_rag_bench.pipeline.answer import Outcome, Question
from annulus_rag_bench.pipeline.connection import StoreConnection
from annulus_rag_bench.pipeline.grading import DistanceGrader
from annulus_rag_bench.pipeline.model import StubModel
from annulus_rag_bench.pipeline.pipeline import Pipeline
from annulus_rag_bench.stores import STORES, Store, store_class
from conftest import Library, own_settings, skip_without
from pages import asked, ran, running_service
from server import Server, eventually
from serving import free_port

ROBOTS = "Which film has two robots that fall in love?"
FOUND = (
    "Heartbeeps is a 1981 American romantic science fiction comedy film about two robots who fall in love and decide "
    "to strike out on their own. [1]"
)
ROSES = "How do I prune roses in spring?"


def pipeline_over(store: Store, embeddings: BundledModel) -> Pipeline:
    connection = StoreConnection(Settings(), lambda _: store)
    return Pipeline(connection, embeddings, StubModel(), DistanceGrader(Settings().distance_max))


@pytest.fixture(scope="module", params=list(STORES))
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, library: Library
) -> Iterator[Store]:
    """Each store in turn, with the library."""
    skip_without(request.param)
    store = store_class(request.param).start(tmp_path_factory.mktemp(request.param) / "store", own_settings())
    try:
        library.load(store)
        yield store
    finally:
        store.close()


def test_each_store_answers_many_at_once(store: Store, embeddings: BundledModel) -> None:
    pipeline = pipeline_over(store, embeddings)
    questions = [Question(ROBOTS, 3), Question(ROSES, 3), Question("astronauts travel to Mars", 1)] * 8

    def facts(question: Question) -> tuple[Outcome, str, list[str]]:
        answer = pipeline.answer(question)
        return answer.outcome, answer.text, [source.title for source in answer.sources]

    robots, roses, mars = alone = [facts(question) for question in questions[:3]]
    assert robots[:2] == (Outcome.ANSWERED, FOUND) and robots[2][0] == "Heartbeeps"
    assert roses[:2] == (Outcome.NOT_IN_DOCUMENTS, "not in the documents")
    assert mars[0] is Outcome.ANSWERED and mars[2] == ["Mission to Mars"]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(facts, questions)) == alone * 8


@pytest.mark.smoke
def test_a_question_is_answered_with_a_citation(server: Server) -> None:
    done = ran(server.cql_port, "ask", "--hybrid", ROBOTS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Heartbeeps is a 1981 American romantic science fiction comedy film")
    assert "out on their own. [1]\n" in done.stdout
    assert "[1] Heartbeeps · 1981-12-18 · distance 0.3" in done.stdout
    assert "https://en.wikipedia.org/wiki/Heartbeeps" in done.stdout
    assert "Annulus, stub: embed " in done.stdout


def test_a_question_that_no_article_answers_is_declined(server: Server) -> None:
    done = ran(server.cql_port, "ask", ROSES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("not in the documents\nThe nearest article has a distance of 0.")
    assert "left out: it does not help" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        ([""], {}, "the question is empty"),
        (["x", "--limit", "0"], {}, "1 to 20 articles, not 0"),
        (["x", "--from", "1999-13-01"], {}, "is no day: write it as 1999-12-31"),
        (["x", "--from", "2000-01-01", "--until", "1999-01-01"], {}, "no date is both after"),
        (["x"], {"RAG_STORE": "oracle"}, "There is no store 'oracle': choose one of annulus"),
        (
            ["x"],
            {"RAG_EMBEDDINGS_URL": "http://127.0.0.1:1/v1", "RAG_EMBEDDINGS_MODEL": "all-MiniLM-L6-v2"},
            "No embedding server at http://127.0.0.1:1/v1",
        ),
        (["x"], {"RAG_EMBEDDINGS_URL": "http://127.0.0.1:1/v1"}, "would be by text-embedding-3-small"),
        (["robots in love"], {"RAG_MODEL_URL": "http://127.0.0.1:1/v1"}, "No model answers at http://127.0.0.1:1/v1"),
        (["x"], {"RAG_DISTANCE_MAX": "far"}, "valid number"),
    ],
)
def test_a_mistake_is_one_line(server: Server, arguments: list[str], variables: dict[str, str], says: str) -> None:
    done = ran(server.cql_port, "ask", *arguments, **variables)
    assert done.returncode in (1, 2)
    assert says in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_without_a_server_the_remedy_is_printed() -> None:
    done = ran(free_port(), "ask", "x")
    assert done.returncode == 1
    assert "Start one with: make run" in done.stderr and "Traceback" not in done.stderr


def test_a_question_of_100_kb_is_one_for_the_service(server: Server, tmp_path: pathlib.Path) -> None:
    with running_service(server.cql_port, tmp_path / "log") as url:
        status, answer = asked(url, "ask", {"question": ROBOTS * 2_500})
        assert (status, answer["outcome"]) == (200, "answered")
        assert "the first 2,000 were read" in answer["notes"][-1]
        for text in ("Ein Film über Roboter", "ロボットの恋", "🤖❤️🤖"):
            for hybrid in (False, True):
                status, answer = asked(url, "ask", {"question": text, "hybrid": hybrid})
                assert (status, answer["question"]) == (200, text)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_service_starts_before_its_database_and_finds_it_again(library: Library, tmp_path: pathlib.Path) -> None:
    port = free_port()
    database = Server(tmp_path / "data", cql_port=port)
    with running_service(port, tmp_path / "log") as url:

        def answer() -> tuple[int, str]:
            status, said = asked(url, "ask", {"question": ROBOTS})
            return status, said.get("error") or said["text"]

        def refused(words: str) -> bool:
            status, said = answer()
            return status == 503 and words in said

        assert refused(f"No Annulus answers at 127.0.0.1:{port}. Start one with: make run")
        with database:
            assert eventually(lambda: refused("annulus_rag_bench load --store annulus"), seconds=60, every=0.2)
            library.load_server("127.0.0.1", port)
            assert answer() == (200, FOUND)
            assert asked(url, "health")[1]["store"] == "annulus"
            database.stop()
            assert refused("No Annulus answers")
            assert asked(url, "health")[0] == 503
            database.start()
            assert eventually(lambda: answer() == (200, FOUND), seconds=60, every=0.2)


def test_two_services_at_once_answer_alike(server: Server, tmp_path: pathlib.Path) -> None:
    with (
        running_service(server.cql_port, tmp_path / "one.log") as one,
        running_service(server.cql_port, tmp_path / "two.log") as two,
        ThreadPoolExecutor(6) as threads,
    ):

        def facts(request: tuple[str, str]) -> tuple[int, str, str]:
            url, question = request
            status, said = asked(url, "ask", {"question": question})
            return status, said["outcome"], said["text"]

        questions = [ROBOTS, ROSES, "astronauts travel to Mars"] * 4
        answers = list(threads.map(facts, [(url, question) for question in questions for url in (one, two)]))
        assert answers[::2] == answers[1::2]
        assert answers[0] == (200, "answered", FOUND)


def test_articles_of_another_embedding_model_are_refused_until_they_are_loaded_again(
    library: Library, tmp_path: pathlib.Path
) -> None:
    with Server(tmp_path / "data") as database:
        library.load_server(database.host, database.cql_port)
        with running_service(database.cql_port, tmp_path / "log") as url:
            assert asked(url, "ask", {"question": ROBOTS})[0] == 200
            set_model(database, "another")
            status, said = asked(url, "ask", {"question": ROBOTS})
            assert status == 503
            assert "embedded by another, and questions would be by all-MiniLM-L6-v2" in said["error"]
            set_model(database, BundledModel.name)
            assert asked(url, "ask", {"question": ROBOTS})[0] == 200


def set_model(database: Server, model: str) -> None:
    """Has the articles of a server look as if another model had embedded them."""
    store = store_class("annulus").start(pathlib.Path(), Settings(host=database.host, port=database.cql_port))
    store.set_embedding_model(model)
    store.close()
