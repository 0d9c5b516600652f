"""The cache and the bound of what waits, without HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from annulus_embedder import batches as module
from annulus_embedder.batches import Batches
from annulus_embedder.model import Embedder, Vectors
from annulus_embedder.openai_form import ApiError


@contextlib.asynccontextmanager
async def computing(embedder: Embedder, capacity: int) -> AsyncIterator[Batches]:
    batches = Batches(embedder, capacity)
    task = asyncio.create_task(batches.run())
    try:
        yield batches
    finally:
        task.cancel()
        batches.close()


class FailsOnce:
    """Passes texts on to the model, but not the first ones."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder, self.failed = embedder, False

    def embed_counted(self, texts: list[str]) -> tuple[Vectors, list[int]]:
        if not self.failed:
            self.failed = True
            raise MemoryError("no room for a batch")
        return self.embedder.embed_counted(texts)


def test_the_oldest_embedding_leaves_a_full_cache(embedder: Embedder) -> None:
    async def steps() -> None:
        async with computing(embedder, 2) as batches:
            for text in ("a", "b", "a", "c", "a"):
                await batches.embed([text])
            assert (batches.computed, batches.cache_hits) == (3, 2)
            await batches.embed(["b"])
            assert batches.computed == 4

    asyncio.run(steps())


def test_a_cache_of_none_computes_each_text(embedder: Embedder) -> None:
    async def steps() -> None:
        async with computing(embedder, 0) as batches:
            first, second = (await batches.embed(["a", "a"]))[0], (await batches.embed(["a"]))[0]
            assert (batches.computed, batches.cache_hits) == (2, 0)
            assert first.vector @ second.vector > 0.9999

    asyncio.run(steps())


def test_too_much_that_waits_is_refused(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_TEXTS", 3)

    async def steps() -> None:
        batches = Batches(embedder, 10)
        waiting = asyncio.create_task(batches.embed(["a", "b"]))
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="2 texts wait already") as refused:
            await batches.embed(["c", "d"])
        assert refused.value.status == 503
        task = asyncio.create_task(batches.run())
        assert len(await waiting) == 2 and len(await batches.embed(["c", "d"])) == 2
        task.cancel()
        batches.close()

    asyncio.run(steps())


def test_a_request_that_is_given_up_harms_no_other(embedder: Embedder) -> None:
    async def steps() -> None:
        batches = Batches(embedder, 10)
        given_up = asyncio.create_task(batches.embed(["a"]))
        other = asyncio.create_task(batches.embed(["a"]))
        await asyncio.sleep(0)
        given_up.cancel()
        task = asyncio.create_task(batches.run())
        assert len(await other) == 1
        task.cancel()
        batches.close()

    asyncio.run(steps())


def test_a_batch_that_fails_is_not_the_last(embedder: Embedder) -> None:
    async def steps() -> None:
        async with computing(FailsOnce(embedder), 10) as batches:  # type: ignore[arg-type]
            with pytest.raises(MemoryError):
                await batches.embed(["a"])
            assert len(await batches.embed(["a"])) == 1

    asyncio.run(steps())
