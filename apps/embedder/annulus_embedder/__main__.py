"""Starts the embedding server."""

from __future__ import annotations

import argparse

from .model import Embedder
from .openai_form import serve
from .server import embedding_server


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is below 0")
    return value


def main() -> None:
    arguments = argparse.ArgumentParser("annulus_embedder", description="Embeds texts offline, in OpenAI's form.")
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=8080, help="0 for a free one")
    arguments.add_argument("--threads", type=_count, help="cores that a batch uses; all by default")
    arguments.add_argument("--cache", type=_count, default=10_000, help="embeddings to remember, 2 kB each")
    arguments.add_argument(
        "--allow-origin", action="append", default=[], help="an origin whose pages may use it, besides this machine's"
    )
    options = arguments.parse_args()
    serve(embedding_server(Embedder(options.threads), options.cache, options.allow_origin), options.host, options.port)


if __name__ == "__main__":
    main()
