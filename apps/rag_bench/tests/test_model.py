"""The model that writes answers: the stub, a server, one that is down or answers wrongly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from annulus_embedder.testing import ScriptedServer, running_scripted_server, running_stub_model
from annulus_rag_bench.config import Settings
from annulus_rag_bench.pipeline.model import Message, ModelError, RemoteModel, StubModel, model_of

CHAT: list[Message] = [{"role": "user", "content": "[1] Goethe wrote Faust.\n\nWho wrote Faust?"}]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with running_scripted_server() as server:
        yield server


def remote(url: str) -> RemoteModel:
    return RemoteModel(Settings(model_url=url, model="a-model", model_key="secret"))


def test_without_a_setting_the_stub_answers_in_this_process() -> None:
    model = model_of(Settings(model_url=None))
    assert isinstance(model, StubModel) and model.is_stub()
    assert model.complete(CHAT) == "Goethe wrote Faust. [1]"


def test_a_server_gets_the_model_the_chat_and_the_key(server: ScriptedServer) -> None:
    server.say(" Goethe. [1]\n")
    assert remote(server.base_url + "/").complete(CHAT) == "Goethe. [1]"
    assert (server.path, server.authorization) == ("/v1/chat/completions", "Bearer secret")
    assert server.body == {"model": "a-model", "messages": CHAT}


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (401, b'{"error": {"message": "no such key"}}', "answers 401: .*no such key"),
        (500, b"\xff" * 5_000, "answers 500: "),
        (302, b"", "answers 302"),
        (200, b"<html>", "does not answer in OpenAI's form"),
        (200, b"[]", "does not answer in OpenAI's form"),
        (200, b'{"choices": []}', "does not answer in OpenAI's form"),
        (200, b'{"choices": [{"message": {"content": null}}]}', "gives an empty answer"),
        (200, b'{"choices": [{"message": {"content": " "}}]}', "gives an empty answer"),
    ],
)
def test_a_server_that_answers_wrongly_is_an_error_in_words(
    server: ScriptedServer, status: int, answer: bytes, says: str
) -> None:
    server.status, server.answer = status, answer
    with pytest.raises(ModelError, match=says) as error:
        remote(server.base_url).complete(CHAT)
    assert "secret" not in str(error.value) and len(str(error.value)) < 500


@pytest.mark.parametrize("url", ["nonsense", "http://[", "http://127.0.0.1:1/v1"])
def test_an_address_without_a_model_is_an_error_in_words(url: str) -> None:
    with pytest.raises(ModelError, match=r"No model answers at .* Unset RAG_MODEL_URL for the stub"):
        remote(url).complete(CHAT)


def test_the_stub_is_known_as_a_server_too_and_is_found_again_when_it_was_down() -> None:
    with running_stub_model() as stub:
        model = remote(stub.base_url)
        assert model.is_stub()
        assert model.complete(CHAT) == "Goethe wrote Faust. [1]"
        stub.stop()
        for ask in (model.is_stub, lambda: model.complete(CHAT)):
            with pytest.raises(ModelError, match="No model answers"):
                ask()
        stub.start()
        assert model.complete(CHAT) == "Goethe wrote Faust. [1]"


@pytest.mark.parametrize("answer", [b'{"data": [{"id": "a-model", "owned_by": "a-company"}]}', b"[]", b'{"data": []}'])
def test_another_server_is_no_stub(server: ScriptedServer, answer: bytes) -> None:
    server.answer = answer
    assert not remote(server.base_url).is_stub()
