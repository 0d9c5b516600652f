"""The service over HTTP, in this process, over a store in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from annulus_rag_bench.config import Settings
from annulus_rag_bench.pipeline.model import ModelError
from annulus_rag_bench.pipeline.service import service_of
from memory_store import MemoryStore, SayingModel, loaded_store, memory_pipeline
from starlette.testclient import TestClient

ROBOTS = "Which robots fall in love?"


@pytest.fixture
def store() -> MemoryStore:
    return loaded_store()


@pytest.fixture
def client(store: MemoryStore) -> Iterator[TestClient]:
    with TestClient(service_of(Settings(), memory_pipeline(store))) as client:
        yield client


def test_the_store_is_closed_when_the_service_ends(store: MemoryStore) -> None:
    with TestClient(service_of(Settings(), memory_pipeline(store))) as client:
        assert client.get("/health").status_code == 200
        assert not store.is_closed
    assert store.is_closed


def test_a_question_is_answered(client: TestClient) -> None:
    response = client.post("/ask", json={"question": ROBOTS, "limit": 2})
    assert response.status_code == 200
    answer = response.json()
    assert (answer["outcome"], answer["text"]) == ("answered", "Two robots fall in love. [1]")
    first, second = answer["sources"]
    assert (first["number"], first["cited"], second["cited"]) == (1, True, False)
    assert first["publication_date"] == "1981-12-18T00:00:00Z"
    assert set(answer["seconds"]) == {"embed", "check", "search", "grade", "answer"}


def test_dates_narrow_the_articles(client: TestClient) -> None:
    asked = {"question": "robots", "from": "1990-01-01", "until": "1990-11-21"}
    titles = [source["title"] for source in client.post("/ask", json=asked).json()["sources"]]
    assert titles == ["Robot Jox"]
    found = client.get("/articles", params={"q": "robots", "from": "1990-01-01", "until": "1990-11-21"}).json()
    assert [article["title"] for article in found] == ["Robot Jox"]


def test_articles_are_found_without_an_answer(client: TestClient) -> None:
    response = client.get("/articles", params={"q": ROBOTS, "limit": 1})
    assert response.status_code == 200
    (article,) = response.json()
    distance = article.pop("distance")
    assert 0 < distance < 1
    assert article == {
        "url": "https://en.wikipedia.org/wiki/Heartbeeps",
        "title": "Heartbeeps",
        "body": "Two robots fall in love. They leave the factory.",
        "publication_date": "1981-12-18T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"question": ""}, "the question is empty"),
        ({"question": " \n"}, "the question is empty"),
        ({}, "question: Field required"),
        ({"question": 5}, "question: Input should be a valid string"),
        ({"question": "x", "limit": 0}, "limit: Input should be greater than or equal to 1"),
        ({"question": "x", "limit": 21}, "limit: Input should be less than or equal to 20"),
        ({"question": "x", "from": "1999-13-01"}, "from: Input should be a valid date"),
        ({"question": "x", "from": "2000-01-01", "until": "1999-01-01"}, "no date is both after 2000-01-01"),
        ({"question": "x", "hybrid": True}, "Memory does not search by words as well"),
        ({"question": "x", "colour": "red"}, "colour: Extra inputs are not permitted"),
        ([], "body: Input should be a valid dictionary"),
    ],
)
def test_a_bad_question_is_refused_in_words(client: TestClient, asked: object, says: str) -> None:
    response = client.post("/ask", json=asked)
    assert response.status_code == 400
    assert response.json()["error"].startswith(says), response.text


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"question": "\xe9"}'])
def test_a_body_that_is_no_json_is_refused_in_words(client: TestClient, body: bytes) -> None:
    response = client.post("/ask", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert list(response.json()) == ["error"]


def test_a_question_of_100_kb_is_answered_and_one_of_2_mb_is_not(client: TestClient) -> None:
    answer = client.post("/ask", json={"question": "robots love " * 8_500}).json()
    assert answer["outcome"] == "answered"
    assert answer["notes"] == ["Of the question's 102,000 characters the first 2,000 were read."]
    assert len(answer["question"]) < 2_001
    response = client.post("/ask", json={"question": "x" * 2_000_000})
    assert (response.status_code, response.json()) == (413, {"error": "The body has more than 1,048,576 bytes."})


@pytest.mark.parametrize("text", ["Welche Roboter lieben?", "ロボットの恋", "روبوتات في الحب", "🤖❤️🤖", "a\0b"])
def test_any_language_and_any_sign_is_a_question(client: TestClient, text: str) -> None:
    response = client.post("/ask", json={"question": text})
    assert response.status_code == 200
    assert response.json()["question"] == text.replace("\0", " ")
    assert client.get("/articles", params={"q": text}).status_code == 200


def test_half_a_character_is_a_question(client: TestClient) -> None:
    response = client.post(
        "/ask", content=b'{"question": "robots \\ud83d"}', headers={"Content-Type": "application/json"}
    )
    assert (response.status_code, response.json()["question"]) == (200, "robots ?")
    # In a place that is named by the error.
    response = client.post("/ask", content=b'{"\\ud83d": 1}', headers={"Content-Type": "application/json"})
    assert response.status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/articles", 400, "q: Field required"),
        ("/articles?q=", 400, "the question is empty"),
        ("/articles?q=x&limit=many", 400, "limit: Input should be a valid integer"),
        ("/articles?q=x&hybrid=true", 400, "Memory does not search by words"),
        ("/ask", 405, "There is no GET /ask here: POST /ask, GET /articles"),
        ("/docs", 404, "There is no GET /docs here"),
    ],
)
def test_a_bad_address_is_refused_in_words(client: TestClient, path: str, status: int, says: str) -> None:
    response = client.get(path)
    assert response.status_code == status
    assert response.json()["error"].startswith(says)


def test_health_says_which_parts_there_are(client: TestClient) -> None:
    health = {"status": "ok", "store": "memory", "embeddings": "words", "model": "stub"}
    assert client.get("/health").json() == health


def test_a_store_that_is_down_is_said_and_found_again(client: TestClient, store: MemoryStore) -> None:
    store.is_down = True
    answers = [client.post("/ask", json={"question": ROBOTS}), client.get("/articles?q=x"), client.get("/health")]
    assert [(one.status_code, one.json()) for one in answers] == [(503, {"error": "No Memory answers"})] * 3
    assert "rag_store_up 0.0" in client.get("/metrics").text
    store.is_down = False
    assert client.get("/health").status_code == 200
    assert "rag_store_up 1.0" in client.get("/metrics").text


def test_another_embedding_model_is_said(client: TestClient, store: MemoryStore) -> None:
    store.set_embedding_model("another")
    for response in (client.post("/ask", json={"question": ROBOTS}), client.get("/health")):
        assert response.status_code == 503
        assert "embedded by another" in response.json()["error"]


def test_a_model_that_is_down_is_said_with_the_articles() -> None:
    pipeline = memory_pipeline(model=SayingModel(ModelError("No model answers")))
    with TestClient(service_of(Settings(), pipeline)) as client:
        response = client.post("/ask", json={"question": ROBOTS})
        assert (response.status_code, response.json()["error"]) == (503, "No model answers")
        assert [source["title"] for source in response.json()["sources"]][0] == "Heartbeeps"
        # They need no model.
        assert client.get("/articles", params={"q": ROBOTS}).status_code == 200


def test_a_fault_of_the_program_is_said_without_its_details() -> None:
    class Faulty(MemoryStore):
        def embedding_model(self) -> str | None:
            raise RuntimeError("a secret")

    with TestClient(service_of(Settings(), memory_pipeline(Faulty())), raise_server_exceptions=False) as client:
        response = client.post("/ask", json={"question": ROBOTS})
    said = {"error": "The service failed: RuntimeError. Its log says more."}
    assert (response.status_code, response.json()) == (500, said)


def value_of(text: str, series: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(series + " ")]
    return float(line.removeprefix(series))


def test_metrics_count_what_was_asked(client: TestClient) -> None:
    for question in (ROBOTS, ROBOTS, "quantum chromodynamics"):
        client.post("/ask", json={"question": question})
    client.post("/ask", json={"question": ""})
    client.get("/articles", params={"q": ROBOTS})
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    for series, value in {
        'rag_questions_total{outcome="answered"}': 2,
        'rag_questions_total{outcome="not in the documents"}': 1,
        'rag_questions_total{outcome="no answer"}': 0,
        'rag_failures_total{part="question"}': 1,
        'rag_failures_total{part="store"}': 0,
        'rag_step_seconds_count{step="search"}': 4,
        'rag_step_seconds_count{step="answer"}': 2,
        "rag_question_seconds_count": 3,
        "rag_nearest_distance_count": 3,
        'rag_articles_total{use="cited"}': 2,
        'rag_articles_total{use="read"}': 2,
        'rag_articles_total{use="left out"}': 5,
        "rag_answers_without_citation_total": 0,
        "rag_store_up": 1,
    }.items():
        assert value_of(response.text, series) == value, series
