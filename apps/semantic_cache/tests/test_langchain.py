"""LangChain's BaseCache, with a chat model and with a plain one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.llms import LLM
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from annulus_semantic_cache import SemanticCache
from annulus_semantic_cache.langchain import AnnulusSemanticCache

EGG, EGG_TOO = "How do I boil an egg?", "How can I boil an egg?"


class CountingChat(BaseChatModel):
    """Says how often it was asked."""

    temperature: float = 0.0
    calls: int = 0
    with_tools: bool = False

    @property
    def _llm_type(self) -> str:
        return "counting"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.calls += 1
        tools = [{"name": "clock", "args": {}, "id": "1", "type": "tool_call"}] if self.with_tools else []
        message = AIMessage(f"answer {self.calls}", tool_calls=tools, usage_metadata=None)
        return ChatResult(generations=[ChatGeneration(message=message)])


class CountingText(LLM):
    """The same for models of plain texts."""

    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "counting-text"

    def _call(self, prompt: str, *_: Any, **__: Any) -> str:
        self.calls += 1
        return f"answer {self.calls}"


@pytest.fixture
def langchain(cache: SemanticCache) -> Iterator[AnnulusSemanticCache]:
    yield AnnulusSemanticCache(cache=cache)


def test_a_chat_model_is_asked_once_for_prompts_that_mean_the_same(langchain: AnnulusSemanticCache) -> None:
    model = CountingChat(cache=langchain)
    answers = [model.invoke(text).content for text in (EGG, EGG, EGG_TOO, "Why do dogs bark?")]
    assert answers == ["answer 1", "answer 1", "answer 1", "answer 2"]


def test_parameters_system_prompt_and_earlier_turns_belong_to_the_key(langchain: AnnulusSemanticCache) -> None:
    model = CountingChat(cache=langchain)
    turns: list[BaseMessage] = [
        SystemMessage("Be brief."),
        HumanMessage("I have an egg."),
        AIMessage("Good."),
        HumanMessage(EGG),
    ]
    assert model.invoke(turns).content == "answer 1"
    assert model.invoke([*turns[:3], HumanMessage(EGG_TOO)]).content == "answer 1"
    assert model.invoke([SystemMessage("Be long."), *turns[1:]]).content == "answer 2"
    assert model.invoke([turns[0], HumanMessage("I have a pan."), *turns[2:]]).content == "answer 3"
    assert CountingChat(cache=langchain, temperature=1.0).invoke(turns).content == "answer 1"


def test_a_model_of_plain_texts_has_hits(langchain: AnnulusSemanticCache) -> None:
    model = CountingText(cache=langchain)
    assert [model.invoke(text) for text in (EGG, EGG_TOO, "[1, 2]", "[1, 2]")] == [
        "answer 1",
        "answer 1",
        "answer 2",
        "answer 2",
    ]


async def test_it_works_in_an_event_loop(langchain: AnnulusSemanticCache) -> None:
    model = CountingChat(cache=langchain)
    await model.ainvoke(EGG)
    answers = await asyncio.gather(*(model.ainvoke(text) for text in (EGG, EGG_TOO)))
    assert [answer.content for answer in answers] == ["answer 1", "answer 1"]
    await langchain.aclear()
    assert (await model.ainvoke(EGG)).content == "answer 2"


def test_calls_of_tools_are_not_cached(langchain: AnnulusSemanticCache) -> None:
    model = CountingChat(cache=langchain, with_tools=True)
    assert [model.invoke(EGG).content for _ in range(2)] == ["answer 1", "answer 2"]


def test_tenants_are_apart_and_cleared_apart(cache: SemanticCache) -> None:
    ours, theirs = AnnulusSemanticCache(cache=cache, tenant="a"), AnnulusSemanticCache(cache=cache, tenant="b")
    model, other = CountingChat(cache=ours), CountingChat(cache=theirs)
    model.invoke(EGG)
    other.invoke(EGG)
    assert other.calls == 1
    ours.clear()
    model.invoke(EGG)
    other.invoke(EGG)
    assert (model.calls, other.calls) == (2, 1)


def test_prompts_that_are_no_key_reach_the_model(langchain: AnnulusSemanticCache) -> None:
    model = CountingText(cache=langchain)
    assert [model.invoke("") for _ in range(2)] == ["answer 1", "answer 2"]
