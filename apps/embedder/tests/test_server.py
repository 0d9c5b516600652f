"""The embedding server by OpenAI's own client, and by requests that it would never send."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import openai
import pytest

from annulus_embedder.model import BATCH, NAME, Embedder
from annulus_embedder.openai_form import MAX_BODY_BYTES
from annulus_embedder.server import MAX_TEXT_BYTES, MAX_TEXTS
from annulus_embedder.testing import PACKAGE_ROOT, TestServer
from raw_http import call

LANGUAGES = ["Grüße aus Köln", "日本語の文章", "שלום עולם", "مرحبا بالعالم", "🎬🍿 👩‍👩‍👧", "a\0b", "e\u0301"]


@pytest.mark.smoke
def test_the_official_client_gets_the_models_embeddings(client: openai.OpenAI, embedder: Embedder) -> None:
    wanted = embedder.embed(LANGUAGES)
    for form in ("float", "base64"):
        answer = client.embeddings.create(model=NAME, input=LANGUAGES, encoding_format=form)  # type: ignore[arg-type]
        assert [each.index for each in answer.data] == list(range(len(LANGUAGES)))
        found = [each.embedding for each in answer.data]
        if form == "base64":
            found = [np.frombuffer(base64.b64decode(each), "<f4") for each in found]  # type: ignore[arg-type]
        assert (np.array(found) * wanted).sum(axis=1).min() > 0.9999
        assert answer.model == NAME and answer.usage.prompt_tokens == answer.usage.total_tokens > len(LANGUAGES)
    default = client.embeddings.create(model=NAME, input="one text", dimensions=384)
    assert len(default.data) == 1 and len(default.data[0].embedding) == 384


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [NAME]
    assert client.models.retrieve(NAME).id == NAME
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("another")


def test_100_concurrent_requests_share_batches(server: TestServer) -> None:
    before = server.get("/health")
    documents = [f"document {number} " + "with many words " * 30 for number in range(96)]

    async def all_at_once() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            # These occupy the model until all questions are there.
            bulk = asyncio.create_task(client.embeddings.create(model=NAME, input=documents))
            questions = [client.embeddings.create(model=NAME, input=f"question {number}") for number in range(100)]
            answers = await asyncio.gather(*questions)
            return [*answers, await bulk]

    answers = asyncio.run(all_at_once())
    assert [len(answer.data) for answer in answers] == [1] * 100 + [96]
    after = server.get("/health")
    assert after["computed"] - before["computed"] == 196
    assert after["batches"] - before["batches"] <= 4 * 196 / BATCH
    assert after["waiting"] == 0


def test_a_question_does_not_wait_for_all_documents(server: TestServer, client: openai.OpenAI) -> None:
    documents = [f"paper {number} " + "with many words " * 30 for number in range(96)]
    ended = threading.Event()

    def insert() -> None:
        with openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as inserting:
            inserting.embeddings.create(model=NAME, input=documents)
        ended.set()

    thread = threading.Thread(target=insert)
    thread.start()
    deadline = time.monotonic() + 30
    while server.get("/health")["waiting"] < 64:
        assert time.monotonic() < deadline
    client.embeddings.create(model=NAME, input="a short question")
    assert not ended.is_set()
    thread.join()
    assert ended.is_set()


def test_a_text_is_computed_once(server: TestServer, client: openai.OpenAI) -> None:
    before = server.get("/health")

    async def all_at_once() -> None:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as asynchronous:
            equal = [asynchronous.embeddings.create(model=NAME, input="an equal text") for _ in range(50)]
            await asyncio.gather(*equal)

    asyncio.run(all_at_once())
    again = client.embeddings.create(model=NAME, input=["an equal text", "an equal text"])
    assert again.data[0].embedding == again.data[1].embedding
    after = server.get("/health")
    assert after["computed"] - before["computed"] == 1
    assert after["texts"] - before["texts"] == 52
    assert after["cache_hits"] - before["cache_hits"] >= 2


@pytest.mark.parametrize(
    ("options", "param", "said"),
    [
        ({"input": ""}, "input", "Input 0 is an empty text"),
        ({"input": ["a", " \n"]}, "input", "Input 1 is an empty text"),
        ({"input": []}, "input", "at least one"),
        ({"input": "x" * 100_000}, "input", "100000 bytes; 65536 are taken"),
        ({"input": [[1, 2, 3]]}, "input", "Input 0 is not a text"),
        ({"input": [1, 2, 3]}, "input", "Input 0 is not a text"),
        ({"input": ["a"] * (MAX_TEXTS + 1)}, "input", "2049 texts; 2048 are taken"),
        ({"input": "a", "dimensions": 256}, "dimensions", "has 384 dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "'float' or 'base64'"),
        ({"input": "a", "model": ""}, "model", "needs a text 'model'"),
    ],
)
def test_a_bad_request_is_refused_in_words(
    client: openai.OpenAI, options: dict[str, Any], param: str, said: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=said) as refused:
        client.embeddings.create(**{"model": NAME, **options})
    assert (refused.value.param, refused.value.type) == (param, "invalid_request_error")


def test_another_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=f"only '{NAME}'") as refused:
        client.embeddings.create(model="text-embedding-3-small", input="a")
    assert (refused.value.param, refused.value.code) == ("model", "model_not_found")


def test_texts_up_to_the_bound_are_taken(client: openai.OpenAI) -> None:
    for text in ("x" * MAX_TEXT_BYTES, "é" * (MAX_TEXT_BYTES // 2), "word " * (MAX_TEXT_BYTES // 5)):
        assert len(client.embeddings.create(model=NAME, input=text).data) == 1
    assert len(client.embeddings.create(model=NAME, input=["a"] * MAX_TEXTS).data) == MAX_TEXTS


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "not JSON"),
        (b"[1]", 400, "not a JSON object"),
        (b"{}", 400, "needs a text 'model'"),
        (b'{"model": "%s"}' % NAME.encode(), 400, "'input' is to be"),
        (b'{"model": "%s", "input": "\\ud83d"}' % NAME.encode(), 400, "not text in UTF-8"),
        (b'{"model": "%s", "input": "\xed\xa0\x80"}' % NAME.encode(), 400, "not text in UTF-8"),
        (b"[" * 100_000, 400, "not JSON"),
        (b" " * (MAX_BODY_BYTES + 1), 413, "send fewer texts"),
    ],
    ids=["nothing", "list", "no-model", "no-input", "half-escape", "half-bytes", "deep", "large"],
)
def test_a_body_that_is_no_request_is_refused(server: TestServer, body: bytes, status: int, said: str) -> None:
    found, answer, _ = call(server.base_url + "/embeddings", body)
    assert found == status and said in answer["error"]["message"]
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert server.get("/health")["status"] == "ok"


def test_an_emoji_in_escapes_is_a_text(server: TestServer) -> None:
    body = json.dumps({"model": NAME, "input": "😀"}, ensure_ascii=True).encode()
    assert call(server.base_url + "/embeddings", body)[0] == 200


def test_other_paths_and_methods_have_errors_of_the_same_form(server: TestServer) -> None:
    status, answer, _ = call(server.base_url + "/completions", b"{}")
    assert status == 404 and "no /v1/completions here" in answer["error"]["message"]
    status, answer, headers = call(server.base_url + "/embeddings")
    assert status == 405 and "takes no GET" in answer["error"]["message"] and "POST" in headers["allow"]


def test_pages_of_this_machine_may_use_it_and_others_not(server: TestServer) -> None:
    for origin, allowed in (
        ("http://127.0.0.1:6080", True),
        ("http://localhost:3000", True),
        ("https://example.com", False),
        ("http://localhost.example.com", False),
    ):
        _, _, headers = call(server.url + "/health", headers={"Origin": origin})
        assert headers["access-control-allow-origin"] == (origin if allowed else None)


def test_a_port_that_is_taken_is_named(server: TestServer) -> None:
    command = [sys.executable, "-m", "annulus_embedder", "--port", str(server.port)]
    ended = subprocess.run(command, cwd=PACKAGE_ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert f"Can't listen on 127.0.0.1:{server.port}" in ended.stderr and "--port" in ended.stderr
