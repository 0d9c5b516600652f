"""The cache: `AsyncSemanticCache` for asyncio, and `SemanticCache` for threads."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

from annulus_semantic_cache.answers import Answer, Hit, Miss, Prices, hit_of
from annulus_semantic_cache.differences import VolatileRule, difference
from annulus_semantic_cache.embeddings import EmbeddingError, Embeddings, embeddings_of
from annulus_semantic_cache.metrics import SHOWN_CHARACTERS, Metrics, RecentHit
from annulus_semantic_cache.questions import Key, Question, UncachedError, digest
from annulus_semantic_cache.rows import DatabaseDownError, DatabaseRefusedError, Row, Rows
from annulus_semantic_cache.settings import Settings

LOG = logging.getLogger("annulus_semantic_cache")
T = TypeVar("T")

# Vectors of the last texts: a prompt that is looked up and then stored is embedded once.
_LAST_VECTORS = 256
# A text with more characters for each token of the model is taken to be too long without a look.
_CHARACTERS_OF_A_TOKEN = 12
_FLUSH_SECONDS = 1.0
# A missing table is made again in the time of fewer attempts.
_REFUSALS_MAX = 30


@dataclass
class _Write:
    """A row on its way. `erased`: an invalidation named it before it was written."""

    values: dict[str, Any]
    ttl: int
    replaces: uuid.UUID | None
    erased: bool = False
    refusals: int = 0


class AsyncSemanticCache:
    """A semantic cache in a table of Annulus, ScyllaDB or Cassandra 5.

    It never fails a request: while the database or the embedding model is down, a look-up is a miss,
    and answers wait in memory within a bound. Only `invalidate` raises, as what wasn't deleted must
    not look deleted.

        async with AsyncSemanticCache(Settings()) as cache:
            hit = await cache.get("How do I boil an egg?", model="gpt-x")
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        embeddings: Embeddings | None = None,
        metrics: Metrics | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.embeddings = embeddings or embeddings_of(self.settings)
        self.metrics = metrics or Metrics()
        self._prices = prices or Prices()
        self._rows = Rows(self.settings)
        self._volatile = VolatileRule.of(self.settings.volatile_rules)
        self._vectors: collections.OrderedDict[str, tuple[Sequence[float] | None]] = collections.OrderedDict()
        self._waiting: collections.OrderedDict[uuid.UUID, _Write] = collections.OrderedDict()
        self._flushing: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[bool] | None = None
        # Counts invalidations: an answer that was asked for before one is not stored after it.
        self._erasures = 0

    async def __aenter__(self) -> Self:
        self.start()
        await self.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def start(self) -> None:
        """Begins to connect in the background."""
        loop = asyncio.get_running_loop()
        self._rows.start()
        self._warming = loop.create_task(self._warm())
        self._flushing = loop.create_task(self._flush())

    async def ready(self, seconds: float = 10) -> bool:
        """Waits for the database and the embedding model at most so long, and says whether both are there."""
        deadline = time.monotonic() + seconds
        up = await self._rows.ready(seconds)
        if self._warming is None:
            return False
        await asyncio.wait([self._warming], timeout=max(deadline - time.monotonic(), 0))
        return up and self._warming.done() and self._warming.result()

    async def close(self) -> None:
        """Writes what waits if the database is there, and ends the connections."""
        for task in (self._flushing, self._warming):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        with contextlib.suppress(DatabaseDownError):
            await self._write_waiting()
        await self._rows.close()
        await self.embeddings.close()

    @property
    def trouble(self) -> str:
        """Why the database can't be had, empty if it can."""
        return "" if self._rows.is_up else self._rows.trouble

    @property
    def epoch(self) -> int:
        """Changes with each invalidation: `store` takes what it was before the model was asked."""
        return self._erasures

    async def get(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        model: str = "",
        user: str = "",
        parameters: Any = None,
        conversation: Any = None,
    ) -> Hit | None:
        """The answer to this prompt or to a similar one, None if there is none.

        `parameters` and `conversation` are any values of JSON: temperature, system prompt and tools, and
        the earlier turns. Only a prompt that was put with equal ones is a hit."""
        found = await self.look_up(_question(prompt, tenant, model, user, parameters, conversation))
        return found if isinstance(found, Hit) else None

    async def put(
        self,
        prompt: str,
        response: str,
        *,
        tenant: str = "default",
        model: str = "",
        user: str = "",
        parameters: Any = None,
        conversation: Any = None,
        tags: Sequence[str] = (),
        ttl: float | None = None,
    ) -> uuid.UUID | None:
        """Stores an answer and returns its key; None where it isn't stored.

        Raises UncachedError, a ValueError, for an empty or too long prompt or answer."""
        question = _question(prompt, tenant, model, user, parameters, conversation)
        return await self.store(replace(question, tags=frozenset(tags), ttl=ttl), Answer(response))

    async def look_up(self, question: Question) -> Hit | Miss:
        """The answer to a question, or why there is none. It never raises."""
        start = time.perf_counter()
        try:
            question.check(self.settings.prompt_bytes)
        except UncachedError as error:
            self.metrics.bypassed.labels(error.reason).inc()
            return Miss(error.reason)
        try:
            found = await self._look_up(question)
        except DatabaseDownError:
            self.metrics.errors.labels("database").inc()
            found = Miss("database_down")
        except EmbeddingError as error:
            LOG.warning("no embedding: %s", error)
            self.metrics.errors.labels("embeddings").inc()
            found = Miss("embeddings_down")
        seconds = time.perf_counter() - start
        self.metrics.look_up.labels("hit" if isinstance(found, Hit) else "miss").observe(seconds)
        if isinstance(found, Miss):
            self.metrics.misses.labels(found.reason).inc()
        else:
            self._count(question, found, seconds)
        return found

    async def store(
        self, question: Question, answer: Answer, *, replaces: Row | None = None, epoch: int | None = None
    ) -> uuid.UUID | None:
        """Stores an answer, now or when the database is back, and returns its key.

        None: it isn't stored, as it is volatile with a life of 0, or an invalidation came between.
        Raises UncachedError for what is no key, or too long an answer."""
        question.check(self.settings.prompt_bytes)
        if len(answer.text.encode("utf-8", "surrogatepass")) > self.settings.answer_bytes:
            raise UncachedError("long_answer", f"the answer is longer than {self.settings.answer_bytes} bytes")
        if not _is_unicode(answer.text):
            raise UncachedError("not_unicode", "the answer has half a surrogate pair, which is no text")
        key, volatile = self._key(question)
        ttl = self._life(question, volatile)
        if ttl is None:
            return None
        epoch = self._erasures if epoch is None else epoch
        try:
            vector = await self._vector(question)
        except EmbeddingError:
            # Without a vector the row is found by its exact text alone.
            self.metrics.errors.labels("embeddings").inc()
            vector = None
        if epoch != self._erasures:
            return None
        write = self._write(question, key, volatile, answer, vector, ttl, replaces)
        self._waiting[key.prompt_id] = write
        self._waiting.move_to_end(key.prompt_id)
        while len(self._waiting) > self.settings.waiting:
            self._waiting.popitem(last=False)
            self.metrics.lost.inc()
        try:
            await self._write_one(key.prompt_id)
        except DatabaseDownError:
            self.metrics.errors.labels("database").inc()
        self.metrics.waiting.set(len(self._waiting))
        return key.prompt_id

    async def invalidate(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        older_than: float | None = None,
        prompt_id: uuid.UUID | None = None,
        everything: bool = False,
    ) -> int:
        """Deletes the rows for which all that is given holds, and returns how many.

        Args:
            tenant: of one tenant; of all if it is None.
            user: stored for this user.
            tag: with this tag, as when a source changes.
            text: of exactly this prompt, for all models and parameters.
            older_than: last written so many seconds ago, or earlier.
            prompt_id: this row.
            everything: required where nothing else is given.

        Raises ValueError without a condition, DatabaseDownError if the database can't do it now."""
        if not everything and all(one is None for one in (tenant, user, tag, text, older_than, prompt_id)):
            raise ValueError("say which rows: tenant, user, tag, text, older_than, prompt_id, or everything")
        wanted = None if text is None else digest(Question(text).normal_text)
        limit = None if older_than is None else datetime.now(UTC) - timedelta(seconds=older_than)
        # An answer that a model gives at this moment is not stored: the source was still the old one.
        self._erasures += 1
        self._vectors.clear()
        self.metrics.forget(tenant, user)
        for waiting_id, write in list(self._waiting.items()):
            row = write.values
            if (
                (tenant is None or row["tenant"] == tenant)
                and (user is None or row["user_id"] == user)
                and (tag is None or tag in row["tags"])
                and (wanted is None or row["text_digest"] == wanted)
                and (limit is None or row["updated_at"] <= limit)
                and (prompt_id is None or waiting_id == prompt_id)
            ):
                write.erased = True
                del self._waiting[waiting_id]
        found = await self._rows.find(prompt_id=prompt_id, text_digest=wanted, tag=tag, tenant=tenant)
        ids = [
            row.prompt_id
            for row in found
            if (tenant is None or row.tenant == tenant)
            and (user is None or row.user == user)
            and (wanted is None or row.text_digest == wanted)
            and (limit is None or row.updated_at <= limit)
        ]
        count = await self._rows.delete(ids)
        self.metrics.erased.inc(count)
        return count

    def report_false_hit(self) -> None:
        """Counts a hit that a user calls false."""
        self.metrics.false_hits.inc()

    async def _look_up(self, question: Question) -> Hit | Miss:
        key, volatile = self._key(question)
        if self._life(question, volatile) is None:
            return Miss("volatile")
        row = await self._rows.exact(key.prompt_id)
        if row is not None and (row.scope, row.prompt_text) != (key.scope, question.normal_text):
            row = None
        if row is not None and not self._is_stale(row):
            return hit_of(row, "exact", 1.0)
        stale = row
        vector = await self._vector(question)
        if vector is None:
            return Miss("too_long" if stale is None else "stale", stale)
        reason = "new"
        for row, cosine in await self._rows.nearest(key.scope, vector, self.settings.candidates):
            if cosine < self.settings.least_cosine:
                break
            if row.scope != key.scope or row.tenant != question.tenant or row.embedding_model != self.embeddings.name:
                continue
            if (rule := difference(question.normal_text, row.prompt_text, self.settings.rules)) is not None:
                reason = rule
            elif self._is_stale(row):
                reason, stale = "stale", stale or row
            else:
                return hit_of(row, "similar", min(max(cosine, 0.0), 1.0))
        return Miss(reason if stale is None else "stale", stale)

    def _key(self, question: Question) -> tuple[Key, bool]:
        volatile = self._volatile.holds(question.normal_text)
        key = Key.of(question, embedding_model=self.embeddings.name, volatile=volatile, per_user=self.settings.per_user)
        return key, volatile

    def _life(self, question: Question, volatile: bool) -> int | None:
        """Seconds that an answer lives, 0 for ever, None for not at all."""
        ttl = self.settings.ttl if question.ttl is None else question.ttl
        if not volatile:
            return _whole(ttl)
        if self.settings.volatile_ttl <= 0:
            return None
        return _whole(min(ttl, self.settings.volatile_ttl) if ttl else self.settings.volatile_ttl)

    def _is_stale(self, row: Row) -> bool:
        now = datetime.now(UTC)
        if row.expires_at is not None and row.expires_at <= now:
            return True
        after = self.settings.refresh_after
        return after > 0 and (now - row.updated_at).total_seconds() > after

    async def _vector(self, question: Question) -> Sequence[float] | None:
        """The vector of a question, None for a text that the model doesn't read to its end.

        Two long texts with the same beginning would have the same vector."""
        text = question.normal_text
        if len(text) > _CHARACTERS_OF_A_TOKEN * self.settings.embedding_tokens:
            return None
        key = digest(text)
        if key in self._vectors:
            self._vectors.move_to_end(key)
            return self._vectors[key][0]
        try:
            (embedded,) = await asyncio.wait_for(self.embeddings.embed([text]), self.settings.embedding_timeout)
        except TimeoutError:
            raise EmbeddingError(f"none within {self.settings.embedding_timeout:g} s") from None
        if len(embedded.vector) != self.settings.dimensions:
            raise EmbeddingError(
                f"{self.embeddings.name} makes vectors of {len(embedded.vector)} numbers, not "
                f"{self.settings.dimensions}: set --dimensions and another --table"
            )
        whole = embedded.tokens is None or embedded.tokens < self.settings.embedding_tokens
        vector = embedded.vector if whole and any(embedded.vector) else None
        self._vectors[key] = (vector,)
        if len(self._vectors) > _LAST_VECTORS:
            self._vectors.popitem(last=False)
        return vector

    def _write(
        self,
        question: Question,
        key: Key,
        volatile: bool,
        answer: Answer,
        vector: Sequence[float] | None,
        ttl: int,
        replaces: Row | None,
    ) -> _Write:
        now = datetime.now(UTC)
        same = replaces is not None and replaces.prompt_id == key.prompt_id
        values = {
            "prompt_id": key.prompt_id,
            "inserted_at": replaces.inserted_at if replaces is not None and same else now,
            "prompt_text": question.normal_text,
            "prompt_embedding": vector,
            "llm_response": answer.text,
            "updated_at": now,
            "scope": key.scope,
            "tenant": question.tenant,
            "user_id": question.user,
            "model": question.model,
            "embedding_model": self.embeddings.name,
            "parameters": question.parameters,
            "conversation": question.conversation,
            "text_digest": key.text_digest,
            "tags": set(question.tags),
            "volatile": volatile,
            "expires_at": now + timedelta(seconds=ttl) if ttl else None,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "model_seconds": answer.seconds,
        }
        return _Write(values, ttl, None if replaces is None or same else replaces.prompt_id)

    async def _write_one(self, prompt_id: uuid.UUID) -> None:
        write = self._waiting.get(prompt_id)
        if write is None:
            return
        ttl = write.ttl
        if ttl:
            # What waited has less of its life left.
            ttl = int((write.values["expires_at"] - datetime.now(UTC)).total_seconds() + 0.999)
        if not write.ttl or ttl > 0:
            try:
                await self._rows.put(write.values, ttl)
            except DatabaseRefusedError:
                self._refused(prompt_id, write)
                raise
        if write.erased:
            await self._rows.delete([prompt_id])
            return
        if self._waiting.get(prompt_id) is not write:
            return
        del self._waiting[prompt_id]
        self.metrics.stored.inc()
        if write.replaces is not None:
            await self._rows.delete([write.replaces])

    def _refused(self, prompt_id: uuid.UUID, write: _Write) -> None:
        """Gives up an answer that is refused again and again: others shall not wait for it."""
        write.refusals += 1
        if write.refusals >= _REFUSALS_MAX and self._waiting.get(prompt_id) is write:
            del self._waiting[prompt_id]
            self.metrics.lost.inc()

    async def _write_waiting(self) -> None:
        for prompt_id in list(self._waiting):
            with contextlib.suppress(DatabaseRefusedError):
                await self._write_one(prompt_id)

    async def _warm(self) -> bool:
        """Embeds a word: the bundled model takes seconds to load, which no request shall wait for."""
        try:
            await self.embeddings.embed(["ready"])
        except EmbeddingError as error:
            LOG.warning("no embedding: %s", error)
            return False
        return True

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            with contextlib.suppress(DatabaseDownError):
                await self._write_waiting()
            self.metrics.waiting.set(len(self._waiting))
            self.metrics.up.set(self._rows.is_up)

    def _count(self, question: Question, hit: Hit, seconds: float) -> None:
        metrics = self.metrics
        metrics.hits.labels(hit.kind).inc()
        metrics.tokens.labels("prompt").inc(hit.prompt_tokens)
        metrics.tokens.labels("completion").inc(hit.completion_tokens)
        prices = self._prices
        metrics.money.inc((hit.prompt_tokens * prices.prompt + hit.completion_tokens * prices.completion) / 1e6)
        metrics.seconds.inc(max(hit.model_seconds - seconds, 0.0))
        metrics.recent.append(
            RecentHit(
                time.time(),
                question.tenant,
                question.user,
                question.text[:SHOWN_CHARACTERS],
                hit.prompt[:SHOWN_CHARACTERS],
                hit.kind,
                hit.similarity,
                str(hit.prompt_id),
            )
        )


class SemanticCache:
    """The same cache for threads. It has an event loop on a thread of its own.

    with SemanticCache(Settings()) as cache:
        hit = cache.get("How do I boil an egg?", model="gpt-x")
        if hit is None:
            cache.put("How do I boil an egg?", ask_the_model(), model="gpt-x")
    """

    def __init__(self, settings: Settings | None = None, *, embeddings: Embeddings | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="semantic-cache", daemon=True)
        self._thread.start()
        self.asynchronous = AsyncSemanticCache(settings, embeddings=embeddings)

        async def start() -> None:
            self.asynchronous.start()

        self.run(start())

    def __enter__(self) -> Self:
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of `asynchronous` and waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of `asynchronous` for a caller in another event loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def ready(self, seconds: float = 10) -> bool:
        """As `AsyncSemanticCache.ready`."""
        return self.run(self.asynchronous.ready(seconds))

    def get(self, prompt: str, **key: Any) -> Hit | None:
        """As `AsyncSemanticCache.get`."""
        return self.run(self.asynchronous.get(prompt, **key))

    def put(self, prompt: str, response: str, **key: Any) -> uuid.UUID | None:
        """As `AsyncSemanticCache.put`."""
        return self.run(self.asynchronous.put(prompt, response, **key))

    def invalidate(self, **which: Any) -> int:
        """As `AsyncSemanticCache.invalidate`."""
        return self.run(self.asynchronous.invalidate(**which))

    def close(self) -> None:
        """Ends the connections and the thread."""
        if self._loop.is_closed():
            return
        self.run(self.asynchronous.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _question(prompt: str, tenant: str, model: str, user: str, parameters: Any, conversation: Any) -> Question:
    return Question(
        text=prompt,
        tenant=tenant,
        model=model,
        user=user,
        parameters="" if parameters is None else digest(parameters),
        conversation="" if conversation is None else digest(conversation),
    )


def _whole(seconds: float) -> int:
    """A time to live as the database takes it: whole seconds, 20 years at most; 0 is for ever."""
    return 0 if seconds <= 0 else min(max(round(seconds), 1), 630_720_000)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
