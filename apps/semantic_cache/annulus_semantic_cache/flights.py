"""Single flight: equal requests at the same time ask the model once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Broadcast:
    """Pieces that arrive once and are read by many, each from the beginning."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._ended = False
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    def add(self, piece: bytes) -> None:
        """Adds a piece."""
        self._pieces.append(piece)
        self._wake()

    def end(self, failure: Exception | None = None) -> None:
        """Ends the pieces. Readers get `failure` after them."""
        self._ended, self._failure = True, failure
        self._wake()

    def so_far(self) -> bytes:
        """All pieces that have come."""
        return b"".join(self._pieces)

    async def read(self) -> AsyncIterator[bytes]:
        """The pieces from the first on."""
        place = 0
        while True:
            while place < len(self._pieces):
                yield self._pieces[place]
                place += 1
            if self._ended:
                if self._failure is not None:
                    raise self._failure
                return
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Flights(Generic[T]):
    """Work by its key. While it runs, callers with the same key wait for its result."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}

    async def join(self, key: str, work: Callable[[Callable[[], None]], Awaitable[T]]) -> tuple[T, bool]:
        """The result of `work`, and whether another caller began it.

        The work goes on when its caller leaves. It is given a function to call when its result is no
        longer to be shared, and may call it after it has returned."""
        task = self._running.get(key)
        joined = task is not None
        if task is None:

            def landed() -> None:
                if self._running.get(key) is begun:
                    del self._running[key]

            async def fly() -> T:
                try:
                    return await work(landed)
                except BaseException:
                    landed()
                    raise

            begun = task = asyncio.get_running_loop().create_task(fly())
            self._running[key] = task
            # A failure that no caller waits for is not an error of the loop.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task), joined

    async def close(self) -> None:
        """Ends what runs."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
