"""The embedding creator: texts to vectors, by the bundled model or by a server in OpenAI's form."""

from collections.abc import Sequence
from typing import Protocol

from annulus_embedder.client import EmbeddingError, RemoteEmbedder
from annulus_embedder.model import Embedder, Vectors

from .config import Settings
from .models import DIMENSIONS

__all__ = ["EmbeddingCreator", "EmbeddingError", "Vectors", "creator"]


class EmbeddingCreator(Protocol):
    """A model."""

    @property
    def name(self) -> str:
        """The model's name: vectors of models with different names are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, one a row, each of length 1. Raises `EmbeddingError`."""


def creator(settings: Settings) -> EmbeddingCreator:
    """The model that the settings name."""
    if settings.embeddings_url is None:
        return Embedder()
    key = settings.embeddings_key.get_secret_value() if settings.embeddings_key is not None else None
    remedy = "Unset FILMS_EMBEDDINGS_URL for the bundled model"
    return RemoteEmbedder(settings.embeddings_url, settings.embeddings_model, DIMENSIONS, key, remedy)
