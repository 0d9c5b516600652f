"""Bodies of OpenAI's chat API: reads whole and streamed answers, and makes those of a hit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from annulus_semantic_cache.answers import Answer, Hit

# Characters of a piece of a streamed hit.
_PIECE = 200


def answer_of(body: bytes) -> Answer | None:
    """The answer of a whole body, None if it isn't one plain text that came to its end."""
    try:
        parsed = json.loads(body)
        (choice,) = parsed["choices"]
        message = choice["message"]
        text = message["content"]
    except (ValueError, TypeError, KeyError):
        return None
    if choice.get("finish_reason") != "stop" or not isinstance(text, str) or not text or _has_more(message):
        return None
    return _with_usage(text, parsed.get("usage"))


def answer_of_stream(body: bytes) -> Answer | None:
    """The answer of a stream of server-sent events, None if it isn't one plain text that came to its end."""
    text, finish, usage, done = [], None, None, False
    try:
        for event in _events(body):
            if event == "[DONE]":
                done = True
                continue
            parsed = json.loads(event)
            usage = parsed.get("usage") or usage
            for choice in parsed.get("choices", []):
                delta = choice.get("delta") or {}
                if choice.get("index", 0) != 0 or _has_more(delta):
                    return None
                text.append(delta.get("content") or "")
                finish = choice.get("finish_reason") or finish
    except (ValueError, TypeError, AttributeError):
        return None
    if not done or finish != "stop" or not any(text):
        return None
    return _with_usage("".join(text), usage)


def whole(hit: Hit, model: str) -> dict[str, Any]:
    """The body of a hit."""
    return {
        "id": f"chatcmpl-{hit.prompt_id.hex}",
        "object": "chat.completion",
        "created": int(hit.updated_at.timestamp()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": hit.response, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": _usage(hit),
    }


def stream(hit: Hit, model: str, with_usage: bool) -> Iterator[bytes]:
    """The events of a hit."""
    head = {
        "id": f"chatcmpl-{hit.prompt_id.hex}",
        "object": "chat.completion.chunk",
        "created": int(hit.updated_at.timestamp()),
        "model": model,
    }
    # With usage, every chunk but the last has the field as null.
    tail: dict[str, Any] = {"usage": None} if with_usage else {}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "choices": [choice], **tail})

    yield chunk({"role": "assistant", "content": ""})
    for start in range(0, len(hit.response), _PIECE):
        yield chunk({"content": hit.response[start : start + _PIECE]})
    yield chunk({}, "stop")
    if with_usage:
        yield _event({**head, "choices": [], "usage": _usage(hit)})
    yield b"data: [DONE]\n\n"


def error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _event(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _events(body: bytes) -> Iterator[str]:
    """The data of each event, as in the WHATWG's server-sent events."""
    data: list[str] = []
    for line in body.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _has_more(message: Mapping[str, Any]) -> bool:
    """Whether a message has more than text: calls of tools, a refusal, sounds, citations."""
    return any(value for name, value in message.items() if name not in ("role", "content"))


def _with_usage(text: str, usage: Any) -> Answer:
    """An answer with its tokens. Without usage the answer's are estimated as a quarter of its characters."""
    if isinstance(usage, Mapping):
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int) and isinstance(completion, int):
            return Answer(text, prompt, completion)
    return Answer(text, 0, max(1, len(text) // 4))


def _usage(hit: Hit) -> dict[str, int]:
    return {
        "prompt_tokens": hit.prompt_tokens,
        "completion_tokens": hit.completion_tokens,
        "total_tokens": hit.prompt_tokens + hit.completion_tokens,
    }
