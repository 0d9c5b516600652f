"""Computes the embeddings of concurrent requests in batches, and remembers the newest ones.

While one batch is computed, the texts of other requests gather; the next batch takes one text of
each request in turn, so that a single question doesn't wait until thousands of documents are through.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import hashlib
from collections.abc import Sequence

from .model import BATCH, Embedder, Vectors
from .openai_form import ApiError

MAX_WAITING_TEXTS = 20_000


@dataclasses.dataclass(frozen=True)
class Embedding:
    """The vector of a text, and of how many tokens it was made."""

    vector: Vectors
    tokens: int


class Batches:
    """Embeds texts for many requests at once."""

    def __init__(self, embedder: Embedder, capacity: int) -> None:
        """`capacity`: embeddings that are remembered, about 2 kB each."""
        self._embedder, self._capacity = embedder, capacity
        # By digests, so that the cache has no text of a user.
        self._cache: collections.OrderedDict[bytes, Embedding] = collections.OrderedDict()
        self._underway: dict[bytes, asyncio.Future[Embedding]] = {}
        self._requests: collections.deque[collections.deque[tuple[bytes, str]]] = collections.deque()
        self._arrived = asyncio.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "embedder")
        self.waiting = self.texts = self.cache_hits = self.computed = self.batches = 0

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """The embeddings of `texts`, in their order. Equal texts are computed once. Raises ApiError."""
        keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
        ready: dict[bytes, Embedding] = {}
        pending: dict[bytes, asyncio.Future[Embedding]] = {}
        new: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            if key in self._cache:
                self._cache.move_to_end(key)
                ready[key] = self._cache[key]
            elif key in self._underway:
                pending[key] = self._underway[key]
            else:
                new[key] = text
        if self.waiting + len(new) > MAX_WAITING_TEXTS:
            raise ApiError(503, f"{self.waiting} texts wait already: try again later, or send fewer at once.")
        self.texts += len(texts)
        self.cache_hits += sum(key in ready for key in keys)
        for key in new:
            pending[key] = self._underway[key] = asyncio.get_running_loop().create_future()
        if new:
            self.waiting += len(new)
            self._requests.append(collections.deque(new.items()))
            self._arrived.set()
        for key, future in pending.items():
            # A request that is given up doesn't end what others wait for.
            ready[key] = await asyncio.shield(future)
        return [ready[key] for key in keys]

    async def run(self) -> None:
        """Computes batches until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            batch = self._take()
            if not batch:
                self._arrived.clear()
                continue
            texts = [text for _, text in batch]
            try:
                vectors, tokens = await loop.run_in_executor(self._thread, self._embedder.embed_counted, texts)
            except Exception as error:
                self._fail(batch, error)
            else:
                self._finish(batch, vectors, tokens)

    def close(self) -> None:
        """Ends the thread that computes, after its batch."""
        self._thread.shutdown()

    def _take(self) -> list[tuple[bytes, str]]:
        """The texts of the next batch: one of each request in turn."""
        batch: list[tuple[bytes, str]] = []
        while self._requests and len(batch) < BATCH:
            request = self._requests.popleft()
            batch.append(request.popleft())
            if request:
                self._requests.append(request)
        self.waiting -= len(batch)
        return batch

    def _finish(self, batch: list[tuple[bytes, str]], vectors: Vectors, tokens: list[int]) -> None:
        self.batches += 1
        self.computed += len(batch)
        for (key, _), vector, count in zip(batch, vectors, tokens, strict=True):
            # A copy, as a row of the array would pin the whole batch.
            embedding = Embedding(vector.copy(), count)
            self._cache[key] = embedding
            self._underway.pop(key).set_result(embedding)
        while len(self._cache) > self._capacity:
            self._cache.popitem(last=False)

    def _fail(self, batch: list[tuple[bytes, str]], error: Exception) -> None:
        for key, _ in batch:
            future = self._underway.pop(key)
            future.set_exception(error)
            # Read here, so that nothing is logged where no request waits any more.
            future.exception()
