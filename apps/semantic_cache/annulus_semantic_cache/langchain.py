"""LangChain's cache of model answers: `set_llm_cache(AnnulusSemanticCache(...))`.

It needs `langchain-core`, which the rest of this package does not.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.load import Serializable, dumps, loads
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk

from annulus_semantic_cache.answers import Answer, Hit
from annulus_semantic_cache.cache import SemanticCache
from annulus_semantic_cache.questions import Question, UncachedError, digest, text_of
from annulus_semantic_cache.settings import Settings

# The reader of stored answers is a beta of LangChain's since 2024.
warnings.filterwarnings("ignore", message="The function `loads` is in beta", module=__name__)

LOG = logging.getLogger("annulus_semantic_cache")

_ALLOWED: list[type[Serializable]] = [
    AIMessage,
    AIMessageChunk,
    ChatGeneration,
    ChatGenerationChunk,
    Generation,
    GenerationChunk,
]
_ROLES = {"HumanMessage": "user", "SystemMessage": "system", "AIMessage": "assistant", "ToolMessage": "tool"}


class AnnulusSemanticCache(BaseCache):
    """Answers of models, found by prompts that mean the same.

    A prompt of messages is compared by its last message, a user's; the messages before it, the model
    and its parameters have to be equal. Prompts with images, and answers with calls of tools, are not
    cached. Nothing here raises for a database that is down.

    Args:
        settings: settings of the cache; by default those of a database on this machine.
        tenant: answers of other tenants are never seen.
        cache: a cache to use in place of a new one.
    """

    def __init__(
        self, settings: Settings | None = None, *, tenant: str = "default", cache: SemanticCache | None = None
    ) -> None:
        self.cache = cache or SemanticCache(settings)
        self._tenant = tenant

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The answers to this prompt or to a similar one."""
        question = self._question(prompt, llm_string)
        if question is None:
            return None
        return _generations(self.cache.run(self.cache.asynchronous.look_up(question)))

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The answers to this prompt or to a similar one."""
        question = self._question(prompt, llm_string)
        if question is None:
            return None
        return _generations(await self.cache.arun(self.cache.asynchronous.look_up(question)))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Stores answers."""
        question, text = self._question(prompt, llm_string), _text(return_val)
        if question is not None and text is not None:
            try:
                self.cache.run(self.cache.asynchronous.store(question, Answer(text)))
            except UncachedError as error:
                LOG.info("an answer is not cached: %s", error.reason)

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Stores answers."""
        question, text = self._question(prompt, llm_string), _text(return_val)
        if question is not None and text is not None:
            try:
                await self.cache.arun(self.cache.asynchronous.store(question, Answer(text)))
            except UncachedError as error:
                LOG.info("an answer is not cached: %s", error.reason)

    def clear(self, **which: Any) -> None:
        """Deletes the tenant's answers, or those of them that `which` names, as `invalidate` does."""
        self.cache.invalidate(tenant=self._tenant, **which)

    async def aclear(self, **which: Any) -> None:
        """Deletes the tenant's answers, or those of them that `which` names, as `invalidate` does."""
        await self.cache.arun(self.cache.asynchronous.invalidate(tenant=self._tenant, **which))

    def _question(self, prompt: str, llm_string: str) -> Question | None:
        """The question of a prompt, None for one that is not cached."""
        try:
            text, earlier = _last_and_earlier(prompt)
        except UncachedError:
            return None
        return Question(
            text=text,
            tenant=self._tenant,
            # Apart from answers of the proxy, which have another form.
            model="langchain",
            parameters=digest([llm_string, [one for one in earlier if one[0] == "system"]]),
            conversation=digest(turns) if (turns := [one for one in earlier if one[0] != "system"]) else "",
        )


def _last_and_earlier(prompt: str) -> tuple[str, list[tuple[str, Any]]]:
    """The text of the last message, and the messages before it; of a plain prompt, itself."""
    try:
        messages = json.loads(prompt)
    except ValueError:
        return prompt, []
    if not isinstance(messages, list) or not messages:
        return prompt, []
    read = [_message(one) for one in messages]
    if any(one is None for one in read):
        return prompt, []
    *earlier, last = [one for one in read if one is not None]
    if last[0] != "user":
        raise UncachedError("not_user", "the last message is not a user's")
    return text_of(last[1].get("content")), earlier


def _message(value: Any) -> tuple[str, dict[str, Any]] | None:
    """The role and the fields of a message in LangChain's form of JSON."""
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("id"), list)
        or not isinstance(value.get("kwargs"), dict)
    ):
        return None
    role = _ROLES.get(str(value["id"][-1]), str(value["id"][-1]))
    # The id of a message differs from call to call.
    return role, {name: field for name, field in value["kwargs"].items() if name != "id"}


def _text(answers: Sequence[Generation]) -> str | None:
    """Answers as text, None for those with calls of tools."""
    for one in answers:
        message = getattr(one, "message", None)
        if message is not None and (
            getattr(message, "tool_calls", None) or getattr(message, "invalid_tool_calls", None)
        ):
            return None
    return dumps(list(answers))


def _generations(found: object) -> list[Generation] | None:
    if not isinstance(found, Hit):
        return None
    try:
        read = loads(found.response, allowed_objects=_ALLOWED)
    except (ValueError, TypeError) as error:
        LOG.warning("a stored answer can't be read: %s", type(error).__name__)
        return None
    return read if isinstance(read, list) and all(isinstance(one, Generation) for one in read) else None
