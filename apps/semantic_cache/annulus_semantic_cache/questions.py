"""Questions: a prompt with all that an answer to it depends on, and the keys made of these.

Two questions may share an answer only if they have the same scope: tenant, model, embedding model,
parameters, earlier turns, and whether they are volatile. Within a scope the same text has the same
`prompt_id`, so that two proxies that store the same answer write the same row.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Fields of a chat request that don't change what the model answers. All others belong to the key,
# also those that are not known yet.
_NOT_IN_KEY = frozenset(
    {"messages", "model", "stream", "stream_options", "user", "metadata", "store", "safety_identifier"}
)
_NAMESPACE = uuid.UUID("5d1f1c0e-7c35-4f0b-9f53-3e6c6f6a2c11")
# Bounds of what is written next to a prompt.
NAME_BYTES_MAX = 1_000
TAGS_MAX = 32
_SYSTEM = ("system", "developer")


class UncachedError(ValueError):
    """A request that the cache leaves alone. `reason` is a word for metrics."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def digest(value: Any) -> str:
    """64 hexadecimal digits of a value of JSON, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Question:
    """A prompt, and what an answer to it depends on."""

    text: str
    tenant: str = "default"
    model: str = ""
    # Who asked. Only an erasure looks at it, and the key where users share nothing.
    user: str = ""
    # A digest of temperature, system prompt, tools and the like.
    parameters: str = ""
    # A digest of the earlier turns, empty for a first one.
    conversation: str = ""
    tags: frozenset[str] = field(default_factory=frozenset)
    # Seconds that the answer lives; None is what the settings say.
    ttl: float | None = None

    @property
    def normal_text(self) -> str:
        """The text in Unicode's composed form, without blanks around it."""
        return unicodedata.normalize("NFC", self.text).strip()

    def check(self, bytes_max: int) -> None:
        """Raises UncachedError for what is no key: an empty text, one that is not Unicode, too long ones."""
        if not self.normal_text:
            raise UncachedError("empty", "an empty prompt is not cached")
        if (size := _bytes_of(self.text)) > bytes_max:
            raise UncachedError("too_long", f"the prompt has {size} bytes, and {bytes_max} are cached at most")
        if len(self.tags) > TAGS_MAX:
            raise UncachedError("too_long", f"{len(self.tags)} tags, and {TAGS_MAX} are allowed")
        for name in (self.tenant, self.model, self.user, *self.tags):
            if _bytes_of(name) > NAME_BYTES_MAX:
                raise UncachedError("too_long", f"tenant, model, user and tags have {NAME_BYTES_MAX} bytes at most")


def _bytes_of(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise UncachedError("not_unicode", "half a surrogate pair is no text") from None


@dataclass(frozen=True)
class Key:
    """The keys of a question."""

    scope: str
    prompt_id: uuid.UUID
    text_digest: str

    @classmethod
    def of(cls, question: Question, *, embedding_model: str, volatile: bool, per_user: bool) -> Key:
        """The keys of `question` for one embedding model."""
        scope = digest(
            [
                question.tenant,
                question.user if per_user else "",
                question.model,
                embedding_model,
                question.parameters,
                question.conversation,
                volatile,
            ]
        )
        text = digest(question.normal_text)
        return cls(scope, uuid.uuid5(_NAMESPACE, f"{scope} {text}"), text)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or parts that are all texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        return "\n".join(part["text"] for part in content)
    raise UncachedError("not_text", "a prompt with images, sounds or files is not cached")


def question_of_chat(
    body: Mapping[str, Any], *, tenant: str, tags: frozenset[str] = frozenset(), ttl: float | None = None
) -> Question:
    """The question of a body of `/v1/chat/completions`.

    Raises UncachedError where the last message is not a user's text, or several answers are asked for."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, Mapping) for one in messages):
        raise UncachedError("no_messages", "the request has no messages")
    last = messages[-1]
    if last.get("role") != "user":
        raise UncachedError("not_user", "the last message is not a user's")
    if body.get("n") not in (None, 1):
        raise UncachedError("several", "several answers at once are not cached")
    if body.get("logprobs") or body.get("audio") or body.get("modalities") not in (None, ["text"]):
        raise UncachedError("not_text", "answers with probabilities or sounds are not cached")
    system = [one for one in messages[:-1] if one.get("role") in _SYSTEM]
    earlier = [one for one in messages[:-1] if one.get("role") not in _SYSTEM]
    parameters = {name: value for name, value in body.items() if name not in _NOT_IN_KEY}
    about_last = {name: value for name, value in last.items() if name not in ("role", "content")}
    return Question(
        text=text_of(last.get("content")),
        tenant=tenant,
        model=str(body.get("model", "")),
        user=str(body.get("user") or body.get("safety_identifier") or ""),
        parameters=digest([parameters, system, about_last]),
        conversation=digest(earlier) if earlier else "",
        tags=tags,
        ttl=ttl,
    )
