"""The embedding server: `POST /v1/embeddings` in OpenAI's form."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .batches import Batches, Embedding
from .model import NAME, WIDTH, Embedder
from .openai_form import ApiError, application, read_body, text_of

MAX_TEXTS = 2048
MAX_TEXT_BYTES = 65_536
MODEL = {"id": NAME, "object": "model", "created": 0, "owned_by": "sentence-transformers"}


def embedding_server(embedder: Embedder, cache: int, origins: list[str]) -> Starlette:
    """The application. `cache`: how many embeddings it remembers."""
    batches = Batches(embedder, cache)

    async def embeddings(request: Request) -> Response:
        body = await read_body(request)
        _check_model(text_of(body, "model"))
        in_base64 = _checked_options(body)
        found = await batches.embed(_checked_texts(body))
        tokens = sum(embedding.tokens for embedding in found)
        return JSONResponse(
            {
                "object": "list",
                "data": [
                    {"object": "embedding", "index": index, "embedding": _encoded(embedding, in_base64)}
                    for index, embedding in enumerate(found)
                ],
                "model": NAME,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        )

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [MODEL]})

    async def model(request: Request) -> Response:
        _check_model(request.path_params["name"])
        return JSONResponse(MODEL)

    async def health(request: Request) -> Response:
        return JSONResponse(
            {
                "status": "ok",
                "model": NAME,
                "dimensions": WIDTH,
                "texts": batches.texts,
                "cache_hits": batches.cache_hits,
                "computed": batches.computed,
                "batches": batches.batches,
                "waiting": batches.waiting,
            }
        )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        computing = asyncio.create_task(batches.run())
        try:
            yield
        finally:
            computing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await computing
            batches.close()

    routes = [
        Route("/v1/embeddings", embeddings, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", model),
        Route("/health", health),
    ]
    return application(list(routes), lifespan, origins)


def _check_model(name: str) -> None:
    if name != NAME:
        raise ApiError(404, f"There is no model {name!r} here, only {NAME!r}.", "model", "model_not_found")


def _checked_options(body: Mapping[str, Any]) -> bool:
    """Whether embeddings go out in base64."""
    if body.get("dimensions") not in (None, WIDTH):
        raise ApiError(400, f"{NAME} has {WIDTH} dimensions: leave 'dimensions' out.", "dimensions")
    encoding = body.get("encoding_format")
    if encoding not in (None, "float", "base64"):
        raise ApiError(400, "'encoding_format' is 'float' or 'base64'.", "encoding_format")
    return bool(encoding == "base64")


def _checked_texts(body: Mapping[str, Any]) -> list[str]:
    texts = body.get("input")
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not texts:
        raise ApiError(400, "'input' is to be a text, or a list of texts that has at least one.", "input")
    if len(texts) > MAX_TEXTS:
        raise ApiError(400, f"'input' has {len(texts)} texts; {MAX_TEXTS} are taken at once.", "input")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ApiError(400, f"Input {index} is not a text. Tokens of another model mean nothing here.", "input")
        if not text.strip():
            raise ApiError(400, f"Input {index} is an empty text, which has no embedding: leave it out.", "input")
        size = len(text.encode())
        if size > MAX_TEXT_BYTES:
            message = f"Input {index} has {size} bytes; {MAX_TEXT_BYTES} are taken: embed it in pieces."
            raise ApiError(400, message, "input", "context_length_exceeded")
    return texts


def _encoded(embedding: Embedding, in_base64: bool) -> str | list[float]:
    if in_base64:
        return base64.b64encode(embedding.vector.astype(np.dtype("<f4")).tobytes()).decode()
    numbers: list[float] = embedding.vector.tolist()
    return numbers
