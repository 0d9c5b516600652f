"""The stub model by OpenAI's own client."""

from __future__ import annotations

import json
import time
from typing import Any

import openai
import pytest

from annulus_embedder.testing import StubModelServer, running_stub_model
from raw_http import call

SOURCES = """Answer from these sources:
[1] Goethe wrote Faust. He was born in Frankfurt.
[2] Schiller wrote the Robbers."""


def question(text: str, **options: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **options}


@pytest.mark.smoke
def test_a_stream_has_the_words_of_the_whole_answer(chat: openai.OpenAI) -> None:
    whole = chat.chat.completions.create(**question("Who wrote Faust? 🎭"))
    content = whole.choices[0].message.content
    assert content is not None and content.endswith("to: Who wrote Faust? 🎭")
    assert whole.choices[0].finish_reason == "stop"
    with chat.chat.completions.create(
        **question("Who wrote Faust? 🎭", stream=True, stream_options={"include_usage": True})
    ) as stream:
        *chunks, last = list(stream)
    pieces = [chunk.choices[0].delta.content for chunk in chunks]
    assert "".join(piece for piece in pieces if piece) == content and len(pieces) > 5
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.choices == [] and last.usage is not None and whole.usage is not None
    assert last.usage.total_tokens == whole.usage.total_tokens == len(str(content).split()) + 4


def test_usage_comes_in_a_stream_only_by_request(chat: openai.OpenAI) -> None:
    with chat.chat.completions.create(**question("Hello", stream=True)) as stream:
        assert all(chunk.usage is None and chunk.choices for chunk in stream)


def test_equal_requests_have_equal_answers_and_other_parameters_another(chat: openai.OpenAI) -> None:
    def answer(**options: Any) -> Any:
        return chat.chat.completions.create(**question("Hello", **options)).choices[0].message.content

    system = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert answer() == answer() == answer(user="someone")
    others = [answer(), answer(temperature=0.5), answer(model="n"), answer(messages=system)]
    assert len(set(others)) == len(others)


def test_a_limit_of_tokens_cuts_the_answer(chat: openai.OpenAI) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        choice = chat.chat.completions.create(**question("Hello", **{name: 2})).choices[0]
        assert choice.message.content == "Stub answer" and choice.finish_reason == "length"


def test_an_answer_quotes_the_source_that_fits(chat: openai.OpenAI) -> None:
    def answer(last_line: str) -> Any:
        messages = [{"role": "system", "content": SOURCES}, {"role": "user", "content": f"Question:\n{last_line}"}]
        return chat.chat.completions.create(model="m", messages=messages).choices[0].message.content  # type: ignore[arg-type]

    assert answer("Who wrote Faust?") == "Goethe wrote Faust. [1]"
    assert answer("Where was he born?") == "He was born in Frankfurt. [1]"
    assert answer("Who wrote the Robbers?") == "Schiller wrote the Robbers. [2]"
    assert answer("What is the price of tea?") == "not in the documents"


def test_parts_of_a_message_are_one_text(chat: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    answer = chat.chat.completions.create(model="m", messages=[{"role": "user", "content": parts}])  # type: ignore[list-item,misc]
    assert str(answer.choices[0].message.content).endswith("one\ntwo")


def test_a_long_prompt_and_an_empty_one_have_answers(chat: openai.OpenAI) -> None:
    for text in ("", " \n ", "long " * 20_000):
        answer = chat.chat.completions.create(**question(text)).choices[0].message.content
        assert answer is not None and answer.startswith("Stub answer") and len(answer) < 300


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_a_model_fails_by_its_name(chat: openai.OpenAI, status: int) -> None:
    for stream in (False, True):
        with pytest.raises(openai.APIStatusError) as failed:
            chat.chat.completions.create(**question("Hello", model=f"fail-{status}", stream=stream))
        assert failed.value.status_code == status


def test_a_stream_may_break_off(chat: openai.OpenAI) -> None:
    pieces: list[str | None] = []
    with pytest.raises((openai.APIError, OSError)):
        with chat.chat.completions.create(**question("Hello", model="fail-midstream", stream=True)) as stream:
            pieces.extend(chunk.choices[0].delta.content for chunk in stream)
    assert pieces == ["", "Stub", " answer"]
    with pytest.raises(openai.InternalServerError):
        chat.chat.completions.create(**question("Hello", model="fail-midstream"))


def test_calls_are_counted_with_the_newest(chat: openai.OpenAI, stub: StubModelServer) -> None:
    assert call(stub.url + "/calls", method="DELETE")[1] == {"calls": 0, "last": None}
    chat.chat.completions.create(**question("one"))
    chat.chat.completions.create(**question("two", temperature=0))
    assert stub.calls == 2
    assert stub.last == {"authorization": "Bearer secret", "body": question("two", temperature=0)}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"messages": [{"role": "user", "content": "a"}]}, "'model'"),
        ({"model": "m"}, "'messages'"),
        ({"model": "m", "messages": []}, "'messages'"),
        ({"model": "m", "messages": ["a"]}, "Message 0 has no 'role'"),
        ({"model": "m", "messages": [{"role": "user", "content": 7}]}, "'content' of message 0"),
        (question("a", n=2), "leave 'n' out"),
        (question("a", max_tokens=0), "at least 1"),
    ],
)
def test_a_bad_request_is_refused_in_words(stub: StubModelServer, body: dict[str, Any], said: str) -> None:
    status, answer, _ = call(stub.base_url + "/chat/completions", json.dumps(body).encode())
    assert status == 400 and said in answer["error"]["message"]


def test_an_answer_takes_its_delay_and_a_model_comes_back() -> None:
    with running_stub_model(delay=0.4) as stub:
        client = openai.OpenAI(base_url=stub.base_url, api_key="none", max_retries=0)
        for stream in (False, True):
            began = time.monotonic()
            answer = client.chat.completions.create(**question("Hello there", stream=stream))
            if stream:
                assert len(list(answer)) > 3
            assert 0.4 <= time.monotonic() - began
        port = stub.port
        stub.stop()
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(**question("Hello"))
        stub.start()
        assert stub.port == port
        assert client.chat.completions.create(**question("Hello")).choices
        client.close()
