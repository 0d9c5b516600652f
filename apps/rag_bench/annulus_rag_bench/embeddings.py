"""Texts to vectors: by the bundled model in this process, or by a server in OpenAI's form."""

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from annulus_embedder.model import NAME, Embedder
from numpy.typing import NDArray

from .config import TARGET, Settings

Vectors = NDArray[np.float32]
DIMENSIONS = 384
# Texts in one request to a server.
BATCH = 64
# Texts between two reports of progress.
REPORT_EVERY = 512
REQUEST_SECONDS = 30


class EmbeddingError(Exception):
    """The model gave no embedding. The text says why, and what helps."""


class Embeddings(Protocol):
    """A model. Vectors of models with different names are never compared."""

    @property
    def model(self) -> str:
        """The model's name."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, one a row, each of length 1. Raises `EmbeddingError`."""


def embeddings_of(settings: Settings) -> Embeddings:
    """The model that the settings name."""
    if settings.embeddings_url is None:
        return BundledModel()
    return RemoteModel(settings)


class BundledModel:
    """all-MiniLM-L6-v2 in this process, loaded with the first text."""

    model = NAME

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def embed(self, texts: Sequence[str]) -> Vectors:
        # Half a character, which JSON can carry, is no text in UTF-8.
        return self._embedder.embed([text.encode(errors="replace").decode() for text in texts])

    @cached_property
    def _embedder(self) -> Embedder:
        return Embedder(self._threads)


class RemoteModel:
    """A server in OpenAI's form: OpenAI's own, `apps/embedder`, and many others."""

    def __init__(self, settings: Settings) -> None:
        self.model = settings.embeddings_model
        self._url = f"{settings.embeddings_url}".rstrip("/") + "/embeddings"
        self._headers = {"Content-Type": "application/json"}
        if settings.embeddings_key is not None:
            self._headers["Authorization"] = f"Bearer {settings.embeddings_key.get_secret_value()}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        batches = [self._request(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return np.concatenate(batches) if batches else np.empty((0, DIMENSIONS), np.float32)

    def _request(self, texts: Sequence[str]) -> Vectors:
        # The tables have 384 dimensions; models of OpenAI shorten their vectors on request.
        body = json.dumps({"model": self.model, "input": list(texts), "dimensions": DIMENSIONS}).encode()
        request = urllib.request.Request(self._url, body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
                data = json.load(response)["data"]
            found = np.array([row["embedding"] for row in sorted(data, key=lambda row: row["index"])], np.float32)
        except urllib.error.HTTPError as error:
            said = error.read(300).decode(errors="replace")
            raise EmbeddingError(f"{self._url} answers {error.code}: {said}") from error
        except OSError as error:
            raise EmbeddingError(
                f"No embedding server at {self._url}: {error}. Unset RAG_EMBEDDINGS_URL for the bundled model"
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._url} does not answer in OpenAI's form: {error}") from error
        if found.shape != (len(texts), DIMENSIONS):
            raise EmbeddingError(
                f"{self.model} gives vectors of shape {found.shape}, and the tables take {DIMENSIONS} dimensions"
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise EmbeddingError(f"{self.model} gives a vector without a direction")
        return np.asarray(found / lengths, np.float32)


def embed_cached(
    embeddings: Embeddings,
    texts: Sequence[str],
    directory: Path = TARGET / "embeddings",
    progress: Callable[[int, int], None] = lambda done, all: None,
) -> Vectors:
    """The embeddings of many texts, which a file remembers by the model and the texts themselves."""
    digest = hashlib.sha256(json.dumps([embeddings.model, *texts]).encode()).hexdigest()
    file = directory / f"{digest[:32]}.npy"
    if file.exists():
        known: Vectors = np.load(file)
        return known
    parts = [np.empty((0, DIMENSIONS), np.float32)]
    for at in range(0, len(texts), REPORT_EVERY):
        parts.append(embeddings.embed(texts[at : at + REPORT_EVERY]))
        progress(min(at + REPORT_EVERY, len(texts)), len(texts))
    vectors = np.concatenate(parts)
    directory.mkdir(parents=True, exist_ok=True)
    # Renamed when whole, so that a run that was cut short leaves no half of a file.
    partial = file.with_suffix(".partial")
    with partial.open("wb") as output:
        np.save(output, vectors)
    partial.rename(file)
    return vectors
