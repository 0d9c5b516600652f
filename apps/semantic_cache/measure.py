"""Measures the cache on a server of its own: hits, misses and memory, at 10 to 100,000 prompts.

    python apps/semantic_cache/measure.py [--sizes 10,100,1000,10000,100000] [--program target/release/annulus]

For each number of stored prompts it prints, in milliseconds, the P50 and P99 of an exact hit, of a hit
by meaning, and of a look-up that misses, which is what a miss adds to a call of the model. The parts
of these are there too: the embedding alone, and the search alone. Then the same through the proxy, over
HTTP. Memory is that of the server's process (RSS) after its index is built, less that of an empty one.

The prompts are made of words by a rule, and each text is embedded by the bundled model, so that their
vectors are as close to each other as those of real prompts.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime

APP = pathlib.Path(__file__).resolve().parent
ROOT = APP.parents[1]
sys.path[:0] = [str(APP), str(APP.parent / "embedder"), str(ROOT / "tests/drivers")]

import httpx2  # noqa: E402
import process  # noqa: E402
import uvicorn  # noqa: E402
from server import Server  # noqa: E402

from annulus_semantic_cache import Answer, AsyncSemanticCache, Hit, Question, Settings  # noqa: E402
from annulus_semantic_cache.embeddings import Embedded, LocalEmbeddings  # noqa: E402
from annulus_semantic_cache.proxy import Proxy, ProxySettings  # noqa: E402
from annulus_semantic_cache.questions import question_of_chat  # noqa: E402

ASKED = 500
WRITES_AT_ONCE = 64
ANSWER = "A plain answer of a model to a question, as long as a paragraph usually is. " * 8

_WAYS = (
    "bake boil fry clean repair paint measure store carry fold cut sharpen polish label weigh sort pack sell lift cool"
).split()
_THINGS = (
    "bread egg fish window bicycle wall table letter box shirt paper knife shoe jar melon photo suitcase car piano "
    "soup carpet lamp chair mirror clock drum guitar ladder kettle pan oven fridge tent boat rope wheel pump engine battery "
    "cable phone camera printer keyboard screen book map coin stamp ring watch"
).split()
_PLACES = (
    "kitchen garden garage office school hospital farm workshop library museum cabin tent desert forest city village "
    "harbour station hotel shop bakery factory church castle theatre"
).split()
_HOWS = "quickly safely cheaply alone quietly outdoors properly without,tools".replace(",", " ").split()


def prompts() -> Iterator[str]:
    """Different questions without end, in an order that is always the same."""
    every = list(itertools.product(_WAYS, _THINGS, _PLACES))
    random.Random(1).shuffle(every)
    for how in itertools.count():
        word = _HOWS[how % len(_HOWS)] if how < len(_HOWS) else f"in {how} minutes"
        for way, thing, place in every:
            yield f"How do I {way} a {thing} {word} in a {place}?"


def percentiles(seconds: Sequence[float]) -> str:
    """P50 and P99 in milliseconds."""
    ordered = sorted(seconds)
    return (
        f"{1e3 * ordered[len(ordered) // 2]:.2f} / {1e3 * ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]:.2f}"
    )


async def timed(work: Callable[[str], Awaitable[object]], texts: Sequence[str]) -> list[float]:
    """Seconds of each call, one after the other."""
    taken = []
    for text in texts:
        began = time.perf_counter()
        await work(text)
        taken.append(time.perf_counter() - began)
    return taken


def memory_of(pid: int) -> int:
    """Bytes of a process that are in memory."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmRSS of the process {pid}")


class Known:
    """Vectors that were computed before, and the model for the rest."""

    name = LocalEmbeddings.name

    def __init__(self, model: LocalEmbeddings) -> None:
        self._model, self.vectors = model, dict[str, Embedded]()

    async def learn(self, texts: Sequence[str]) -> None:
        self.vectors = dict(zip(texts, await self._model.embed(texts), strict=True))

    async def embed(self, texts: Sequence[str]) -> list[Embedded]:
        return [self.vectors[text] if text in self.vectors else (await self._model.embed([text]))[0] for text in texts]

    async def close(self) -> None:
        await self._model.close()


def question(text: str) -> Question:
    """As the proxy makes it of a request without a key."""
    return question_of_chat({"model": "stub", "messages": [{"role": "user", "content": text}]}, tenant="default")


async def fill(cache: AsyncSemanticCache, known: Known, texts: Sequence[str]) -> None:
    """Stores an answer to each text."""
    for start in range(0, len(texts), 2048):
        some = texts[start : start + 2048]
        await known.learn(some)
        for first in range(0, len(some), WRITES_AT_ONCE):
            at_once = some[first : first + WRITES_AT_ONCE]
            keys = await asyncio.gather(*(cache.store(question(one), Answer(ANSWER, 20, 150, 1.0)) for one in at_once))
            assert all(keys)
    known.vectors = {}


async def measure(server: Server, settings: Settings, sizes: Sequence[int]) -> None:
    model = LocalEmbeddings()
    known = Known(model)
    empty = memory_of(server.pid)
    source, stored = prompts(), list[str]()
    print(
        "| prompts | exact hit | hit by meaning | look-up that misses | embedding | search "
        "| through the proxy: exact hit, by meaning | bytes a prompt |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    async with AsyncSemanticCache(settings, embeddings=known) as cache:
        for size in sizes:
            new = list(itertools.islice(source, size - len(stored)))
            await fill(cache, known, new)
            stored += new
            server.wait_for_index(settings.keyspace, f"{settings.table}_embedding", size, 600)
            print(await row(cache, model, server, settings, stored, empty), flush=True)


async def row(
    cache: AsyncSemanticCache, model: LocalEmbeddings, server: Server, settings: Settings, stored: list[str], empty: int
) -> str:
    """One line of the table."""
    some = random.Random(2).choices(stored, k=ASKED)
    similar = [text.replace("How do I", "How can I") for text in some]
    other = [
        f"Which {random.Random(seed).choice(_PLACES)} was built in {1000 + seed}, and by whom?" for seed in range(ASKED)
    ]

    async def look_up(text: str) -> Hit | object:
        cache._vectors.clear()
        return await cache.look_up(question(text))

    async def embed(text: str) -> object:
        return await model.embed([text])

    scope = cache._key(question(stored[0]))[0].scope
    vectors = {text: (await model.embed([text]))[0].vector for text in similar}

    async def search(text: str) -> object:
        return await cache._rows.nearest(scope, vectors[text], settings.candidates)

    for texts in (some, similar, other):
        await timed(look_up, texts[:20])
    hits = [await cache.look_up(question(text)) for text in similar[:100]]
    share = sum(isinstance(hit, Hit) for hit in hits)
    parts = [await timed(look_up, some), await timed(look_up, similar), await timed(look_up, other)]
    parts += [await timed(embed, other), await timed(search, similar)]
    through = await proxied(cache, settings, some, similar)
    held = (memory_of(server.pid) - empty) / len(stored)
    cells = [f"{len(stored):,}", *map(percentiles, parts), f"{through} ({share} % are hits)", f"{held:,.0f}"]
    return "| " + " | ".join(cells) + " |"


async def proxied(cache: AsyncSemanticCache, settings: Settings, exact: Sequence[str], similar: Sequence[str]) -> str:
    """The same hits over HTTP. The proxy has a cache of its own on the same table."""
    own = AsyncSemanticCache(settings, embeddings=LocalEmbeddings())
    app = Proxy(own, ProxySettings("http://127.0.0.1:9/v1", "token")).app()
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(timeout=60) as client:

        async def ask(text: str) -> object:
            own._vectors.clear()
            body = {"model": "stub", "messages": [{"role": "user", "content": text}]}
            return await client.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body)

        await timed(ask, exact[:20])
        figures = [percentiles(await timed(ask, texts)) for texts in (exact, similar)]
    server.should_exit = True
    await serving
    return ", ".join(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,100,1000,10000,100000")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/annulus")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"{options.program} is missing: cargo build --release --locked -p annulus")
    process.BINARY = options.program
    sizes = sorted(int(size) for size in options.sizes.split(","))
    version = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{datetime.now(UTC):%d %B %Y}, {version}; P50 / P99 in ms of {ASKED} look-ups, one after the other\n")
    with tempfile.TemporaryDirectory() as folder, Server(pathlib.Path(folder) / "data") as server:
        settings = Settings(cql_port=server.cql_port, database_timeout=30, embedding_timeout=60, ttl=0)
        asyncio.run(measure(server, settings, sizes))


if __name__ == "__main__":
    main()
