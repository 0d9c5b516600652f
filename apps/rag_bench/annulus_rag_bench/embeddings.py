"""Texts to vectors: by the bundled model in this process, or by a server in OpenAI's form."""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from annulus_embedder.client import EmbeddingError, RemoteEmbedder
from annulus_embedder.model import NAME, Embedder, Vectors

from .config import TARGET, Settings

__all__ = ["DIMENSIONS", "BundledModel", "EmbeddingError", "Embeddings", "Vectors", "embed_cached", "embeddings_of"]

DIMENSIONS = 384
# Texts between two reports of progress.
REPORT_EVERY = 512


class Embeddings(Protocol):
    """A model. Vectors of models with different names are never compared."""

    @property
    def name(self) -> str:
        """The model's name."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, one a row, each of length 1. Raises `EmbeddingError`."""


def embeddings_of(settings: Settings) -> Embeddings:
    """The model that the settings name."""
    if settings.embeddings_url is None:
        return BundledModel()
    key = settings.embeddings_key.get_secret_value() if settings.embeddings_key is not None else None
    remedy = "Unset RAG_EMBEDDINGS_URL for the bundled model"
    return RemoteEmbedder(settings.embeddings_url, settings.embeddings_model, DIMENSIONS, key, remedy)


class BundledModel:
    """all-MiniLM-L6-v2 in this process, loaded with the first text."""

    name = NAME

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def embed(self, texts: Sequence[str]) -> Vectors:
        # Half a character, which JSON can carry, is no text in UTF-8.
        return self._embedder.embed([text.encode(errors="replace").decode() for text in texts])

    @cached_property
    def _embedder(self) -> Embedder:
        return Embedder(self._threads)


def embed_cached(
    embeddings: Embeddings,
    texts: Sequence[str],
    directory: Path = TARGET / "embeddings",
    progress: Callable[[int, int], None] = lambda done, all: None,
) -> Vectors:
    """The embeddings of many texts, which a file remembers by the model and the texts themselves."""
    digest = hashlib.sha256(json.dumps([embeddings.name, *texts]).encode()).hexdigest()
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
