"""Vectors of texts: by the bundled model in this process, or by a server in OpenAI's form."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from annulus_semantic_cache.settings import BUNDLED_MODEL, LOCAL, Settings


class EmbeddingError(Exception):
    """No vector could be had. The message has nothing of the text."""


@dataclass(frozen=True)
class Embedded:
    """A vector, and of how many tokens it was made where the model says so."""

    vector: Sequence[float]
    tokens: int | None


class Embeddings(Protocol):
    """What makes vectors of texts."""

    name: str

    async def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """A vector for each text. Raises EmbeddingError."""

    async def close(self) -> None:
        """Frees what it has open."""


class LocalEmbeddings:
    """The bundled model, on a thread of its own, loaded at the first text."""

    name = BUNDLED_MODEL

    def __init__(self, threads: int | None = None) -> None:
        self._thread = ThreadPoolExecutor(1, "embeddings")
        self._threads = threads
        self._model: Any = None

    async def embed(self, texts: Sequence[str]) -> list[Embedded]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._compute, list(texts))

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _compute(self, texts: list[str]) -> list[Embedded]:
        if self._model is None:
            try:
                from annulus_embedder.model import Embedder
            except ImportError as error:
                raise EmbeddingError(
                    f"the bundled model needs apps/embedder and its packages ({error.name} is missing); "
                    "or name a server by --embedding-url"
                ) from None
            self._model = Embedder(self._threads)
        vectors, tokens = self._model.embed_counted(texts)
        return [Embedded(vector.tolist(), count) for vector, count in zip(vectors, tokens, strict=True)]


class ServerEmbeddings:
    """A server that has `/v1/embeddings`. Its key is `EMBEDDING_API_KEY` of the environment."""

    def __init__(self, url: str, model: str, timeout: float, key: str | None = None) -> None:
        self.name = model
        key = key or os.environ.get("EMBEDDING_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._url = url.rstrip("/") + "/embeddings"
        self._client = httpx2.AsyncClient(timeout=timeout, headers=headers)

    async def embed(self, texts: Sequence[str]) -> list[Embedded]:
        body = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        try:
            response = await self._client.post(self._url, json=body)
        except (httpx2.HTTPError, UnicodeEncodeError) as error:
            raise EmbeddingError(f"{self._url}: {type(error).__name__}") from None
        if response.status_code != 200:
            raise EmbeddingError(f"{self._url} answers {response.status_code}")
        try:
            answer = response.json()
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
            tokens = (answer.get("usage") or {}).get("prompt_tokens") if len(texts) == 1 else None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise EmbeddingError(f"{self._url} answers without the vectors") from None
        if len(vectors) != len(texts) or not all(math.isfinite(number) for one in vectors for number in one):
            raise EmbeddingError(f"{self._url} answers other vectors than were asked for")
        return [Embedded(vector, tokens) for vector in vectors]

    async def close(self) -> None:
        await self._client.aclose()


def embeddings_of(settings: Settings) -> Embeddings:
    """The embeddings that settings name. Raises ValueError where they don't fit each other."""
    if settings.embedding_url != LOCAL:
        return ServerEmbeddings(settings.embedding_url, settings.embedding_model, settings.embedding_timeout)
    if (settings.embedding_model, settings.dimensions) != (BUNDLED_MODEL, 384):
        raise ValueError(
            f"--embedding-url local is {BUNDLED_MODEL} of 384 dimensions: name a server for {settings.embedding_model}"
        )
    return LocalEmbeddings()
