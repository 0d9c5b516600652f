"""A stand-in for a language model, for demonstrations and tests: it writes nothing of its own.

`POST /v1/chat/completions` in OpenAI's form, streamed or whole, after a delay as a model has it. Equal
requests have equal answers; another parameter gives another answer. Where the messages number
sources (`[1] ...`), the answer is the sentence of a source that shares most words with the question.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from .openai_form import ApiError, application, read_body, serve, text_of

MODEL = {"id": "stub", "object": "model", "created": 0, "owned_by": "annulus"}
NOT_IN_DOCUMENTS = "not in the documents"
SHOWN_CHARACTERS = 200
# They say how an answer comes, not what is in it.
NOT_OF_THE_ANSWER = ("stream", "stream_options", "user", "metadata", "store")
STOP_WORDS = frozenset(
    "a an and are as at be by can did do does for from had has have how i in is it its of on or that the their "
    "there they this to was were what when where which who why will with you".split()
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the stub says to a request, in pieces of a word each."""

    model: str
    digest: str
    pieces: list[str]
    finish_reason: str
    prompt_tokens: int

    @property
    def usage(self) -> dict[str, int]:
        tokens = len(self.pieces)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
        }

    def head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.digest}", "object": kind, "created": 0, "model": self.model}

    def whole(self) -> dict[str, Any]:
        """The body of an answer that isn't streamed."""
        message = {"role": "assistant", "content": "".join(self.pieces), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        return {**self.head("chat.completion"), "choices": [choice], "usage": self.usage}

    def chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
        """An event of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self.head("chat.completion.chunk"), "choices": [choice]}


def answer_to(body: Mapping[str, Any]) -> Answer:
    """The answer to the body of a request. Raises ApiError."""
    model, texts = text_of(body, "model"), _texts_of_messages(body)
    if body.get("n") not in (None, 1):
        raise ApiError(400, "The stub gives one answer: leave 'n' out.", "n")
    said = json.dumps({name: body[name] for name in sorted(body) if name not in NOT_OF_THE_ANSWER}, sort_keys=True)
    digest = hashlib.sha256(said.encode()).hexdigest()[:8]
    question = next((text for role, text in reversed(texts) if role == "user"), texts[-1][1])
    prompt = "\n".join(text for _, text in texts)
    answer = _answer_from_sources(prompt, question) or f"Stub answer {digest} to: {question[:SHOWN_CHARACTERS]}"
    pieces, finish_reason = re.findall(r"\s*\S+", answer), "stop"
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None:
        if not isinstance(limit, int) or limit < 1:
            raise ApiError(400, "The number of tokens is to be at least 1.", "max_tokens")
        if len(pieces) > limit:
            pieces, finish_reason = pieces[:limit], "length"
    return Answer(model, digest, pieces, finish_reason, len(prompt.split()))


def _texts_of_messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The role and the text of each message."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "The body needs 'messages', a list that has at least one.", "messages")
    texts = []
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ApiError(400, f"Message {index} has no 'role'.", "messages")
        content = message.get("content")
        if isinstance(content, list):
            parts = [part.get("text") for part in content if isinstance(part, dict)]
            content = "\n".join(part for part in parts if isinstance(part, str))
        if content is not None and not isinstance(content, str):
            raise ApiError(400, f"The 'content' of message {index} is neither a text nor a list of parts.", "messages")
        texts.append((message["role"], content or ""))
    return texts


def _answer_from_sources(prompt: str, question: str) -> str | None:
    """The sentence of a numbered source that shares most words with the last line of the question."""
    sources = re.findall(r"^\[(\d+)\][ \t]*(\S.*)$", prompt, re.MULTILINE)
    if not sources:
        return None
    lines = question.strip().splitlines()
    wanted = _content_words(lines[-1] if lines else "")
    best, most = NOT_IN_DOCUMENTS, 0
    for number, text in sources:
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            shared = len(wanted & _content_words(sentence))
            if shared > most:
                best, most = f"{sentence.strip()} [{number}]", shared
    return best


def _content_words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - STOP_WORDS


def stub_model_server(delay: float) -> Starlette:
    """The application, whose answers take `delay` seconds."""
    calls: dict[str, Any] = {"calls": 0, "last": None}

    async def completions(request: Request) -> Response:
        body = await read_body(request)
        calls["calls"] += 1
        calls["last"] = {"authorization": request.headers.get("authorization"), "body": body}
        answer = answer_to(body)
        if failure := re.fullmatch(r"fail-([45]\d\d)", answer.model):
            raise ApiError(int(failure[1]), f"The model {answer.model!r} always fails.", None, "stub_failure")
        breaks = answer.model == "fail-midstream"
        if body.get("stream"):
            options = body.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            kind = _BrokenResponse if breaks else StreamingResponse
            return kind(_events(answer, delay, usage), media_type="text/event-stream")
        await asyncio.sleep(delay)
        if breaks:
            raise ApiError(500, "The model 'fail-midstream' never ends its answer.", None, "stub_failure")
        return JSONResponse(answer.whole())

    async def counts(request: Request) -> Response:
        if request.method == "DELETE":
            calls.update(calls=0, last=None)
        return JSONResponse(calls)

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [MODEL]})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [
        Route("/v1/chat/completions", completions, methods=["POST"]),
        Route("/v1/models", models),
        Route("/calls", counts, methods=["GET", "DELETE"]),
        Route("/health", health),
    ]
    return application(list(routes))


async def _events(answer: Answer, delay: float, usage: bool) -> AsyncIterator[str]:
    """The answer as server-sent events, evenly over the delay."""

    def event(value: dict[str, Any]) -> str:
        return f"data: {json.dumps(value)}\n\n"

    yield event(answer.chunk({"role": "assistant", "content": ""}))
    for piece in answer.pieces:
        await asyncio.sleep(delay / len(answer.pieces))
        yield event(answer.chunk({"content": piece}))
    yield event(answer.chunk({}, answer.finish_reason))
    if usage:
        yield event({**answer.head("chat.completion.chunk"), "choices": [], "usage": answer.usage})
    yield "data: [DONE]\n\n"


class _BrokenResponse(StreamingResponse):
    """Ends after three events without the end of a stream, as the connection to a model that dies."""

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        events = aiter(self.body_iterator)
        for _ in range(3):
            event = await anext(events)
            body = event.encode() if isinstance(event, str) else event
            await send({"type": "http.response.body", "body": body, "more_body": True})


def main() -> None:
    arguments = argparse.ArgumentParser("annulus_embedder.stub_model", description=__doc__.partition("\n")[0])
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=8081, help="0 for a free one")
    arguments.add_argument("--delay", type=float, default=0.8, help="seconds that an answer takes")
    options = arguments.parse_args()
    serve(stub_model_server(options.delay), options.host, options.port)


if __name__ == "__main__":
    main()
