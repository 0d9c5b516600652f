"""The command `annulus-semantic-cache`: serve, tune, invalidate."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence

import uvicorn

from annulus_semantic_cache import tune
from annulus_semantic_cache.answers import Prices
from annulus_semantic_cache.cache import AsyncSemanticCache
from annulus_semantic_cache.embeddings import EmbeddingError, embeddings_of
from annulus_semantic_cache.proxy import Proxy, ProxySettings
from annulus_semantic_cache.rows import DatabaseDownError
from annulus_semantic_cache.settings import Settings, add_flags, seconds_of, settings_of

# A client that sends its next request when the server has just closed the connection reads nothing. Clients close one that
# was idle for 5 s themselves, as httpx does: the server closes later.
_KEEP_ALIVE_SECONDS = 75

_READY = re.compile(rb"ready: (http://127\.0\.0\.1:\d+)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, and returns the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    # These name addresses of each request, and the driver the node's at each attempt.
    for name in ("httpx2", "httpx", "httpcore", "cassandra"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        settings = settings_of(vars(options))
        code: int = options.run(options, settings)
        return code
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, EmbeddingError, DatabaseDownError) as error:
        print(f"annulus-semantic-cache: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="annulus-semantic-cache", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="the proxy before a model")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, default=8090, help="port; 0 takes a free one (8090)")
    where = serve.add_mutually_exclusive_group(required=True)
    where.add_argument("--upstream", help="base URL of the model, such as https://api.openai.com/v1")
    where.add_argument(
        "--demo", action="store_true", help="a stub in place of a model, which takes 0.8 s for an answer"
    )
    serve.add_argument("--price-in", type=float, default=0.0, help="price of a million tokens of prompts (0)")
    serve.add_argument("--price-out", type=float, default=0.0, help="price of a million tokens of answers (0)")
    add_flags(serve)
    serve.set_defaults(run=_serve)

    tuned = commands.add_parser("tune", help="rates of labelled pairs over the threshold, and a value to take")
    tuned.add_argument("pairs", nargs="*", type=pathlib.Path, help="files of JSON lines (those that ship)")
    tuned.add_argument("--false-hits", type=float, default=0.02, help="highest false-hit rate to take (0.02)")
    tuned.add_argument("--chart", type=pathlib.Path, help="file for a chart, as SVG")
    tuned.add_argument(
        "--compare", action="append", default=[], metavar="NAME=DISTANCE",
        help="another cache's threshold to show, as a cosine distance of 0 to 2",
    )  # fmt: skip
    add_flags(tuned)
    tuned.set_defaults(run=_tune)

    deletion = commands.add_parser("invalidate", help="delete answers")
    deletion.add_argument("--tenant", help="of this tenant; of all without it")
    deletion.add_argument("--user", help="stored for this user")
    deletion.add_argument("--tag", help="with this tag")
    deletion.add_argument("--text", help="of exactly this prompt")
    deletion.add_argument("--older-than", help="last written so long ago, such as 30d")
    deletion.add_argument("--prompt-id", type=uuid.UUID, help="of this row")
    deletion.add_argument("--everything", action="store_true", help="all")
    add_flags(deletion)
    deletion.set_defaults(run=_invalidate)
    return parser


def _serve(options: argparse.Namespace, settings: Settings) -> int:
    token = os.environ.get("SEMANTIC_CACHE_ADMIN_TOKEN") or secrets.token_urlsafe(24)
    # The HTTP server ends on a signal, and then raises it again: the stub is ended first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with _stub() if options.demo else contextlib.nullcontext(options.upstream) as upstream:
        cache = AsyncSemanticCache(settings, prices=Prices(options.price_in, options.price_out))
        app = Proxy(cache, ProxySettings(upstream, token)).app()
        config = uvicorn.Config(
            app,
            host=options.host,
            port=options.port,
            log_level="warning",
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        asyncio.run(_listen(uvicorn.Server(config), token))
    return 0


async def _listen(server: uvicorn.Server, token: str) -> None:
    """Serves until a signal, and prints the address once it listens."""
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():
        await asyncio.sleep(0.02)
    # A signal may have come meanwhile.
    if server.started and server.servers and server.servers[0].sockets:
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        print(f"ready: {address}/v1 is the base URL", flush=True)
        # What comes after # never leaves the browser.
        print(f"page: {address}/#{token}", flush=True)
    await serving


@contextlib.contextmanager
def _stub() -> Iterator[str]:
    """A stub model in a process of its own. Yields its base URL."""
    command = [sys.executable, "-m", "annulus_embedder.stub_model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if ready := _READY.search(line):
                    yield ready[1].decode() + "/v1"
                    return
            raise ValueError("the stub model doesn't start: it needs apps/embedder on PYTHONPATH")
        finally:
            process.terminate()


def _tune(options: argparse.Namespace, settings: Settings) -> int:
    paths = options.pairs or sorted(tune.PAIRS.glob("*.jsonl"))
    if not paths:
        raise ValueError(f"no pairs in {tune.PAIRS}: name files")
    others = [_compared(text) for text in options.compare]
    pairs = tune.read_pairs(paths)

    async def judge() -> list[tune.Judged]:
        embeddings = embeddings_of(settings)
        try:
            return await tune.judge(pairs, embeddings, settings.rules)
        finally:
            await embeddings.close()

    judged = asyncio.run(judge())
    held_out = tune.of_split(judged, "test")
    chosen = tune.recommended(tune.of_split(judged, "tune"), options.false_hits, with_rules=True)
    plain = tune.recommended(tune.of_split(judged, "tune"), options.false_hits, with_rules=False)
    rows = [
        ("recommended", tune.rates(held_out, chosen.threshold, with_rules=True)),
        ("recommended, without rules", tune.rates(held_out, plain.threshold, with_rules=False)),
        ("this setting", tune.rates(held_out, settings.least_cosine, with_rules=True)),
        *((name, tune.rates(held_out, 1 - distance, with_rules=False)) for name, distance in others),
    ]
    print(f"{len(pairs)} pairs, of which {len(held_out)} held out; {settings.embedding_model}\n")
    print("All pairs that the threshold was chosen by:\n")
    curve = [round(0.70 + 0.02 * step, 2) for step in range(16)]
    half = tune.of_split(judged, "tune")
    print(tune.table((f"{at:.2f}", tune.rates(half, at, with_rules=True)) for at in curve))
    print("\nThe pairs held out:\n")
    print(tune.table(rows))
    print()
    print(tune.kinds(held_out, chosen.threshold, with_rules=True))
    print(f"\nTake --threshold {chosen.threshold:.3f} (--scale score: {(1 + chosen.threshold) / 2:.4f})")
    if options.chart is not None:
        marks = [("recommended", chosen.threshold), *((name, 1 - distance) for name, distance in others)]
        options.chart.write_text(tune.chart(held_out, marks), encoding="utf-8")
    return 0


def _compared(text: str) -> tuple[str, float]:
    name, _, distance = text.rpartition("=")
    try:
        value = float(distance)
    except ValueError:
        value = -1.0
    if not name or not 0 <= value <= 2:
        raise ValueError(f"--compare {text}: write NAME=DISTANCE, a distance of 0 to 2")
    return name, value


def _invalidate(options: argparse.Namespace, settings: Settings) -> int:
    age = None if options.older_than is None else seconds_of(options.older_than)

    async def delete() -> int:
        async with AsyncSemanticCache(settings) as cache:
            return await cache.invalidate(
                tenant=options.tenant,
                user=options.user,
                tag=options.tag,
                text=options.text,
                older_than=age,
                prompt_id=options.prompt_id,
                everything=options.everything,
            )

    print(f"{asyncio.run(delete())} deleted")
    return 0
