"""The embedding creator: texts to vectors, by the bundled model or by a server in OpenAI's form."""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from annulus_embedder.model import Embedder
from numpy.typing import NDArray

from .config import Settings
from .models import DIMENSIONS

Vectors = NDArray[np.float32]
# Texts in one request to a server.
BATCH = 64
REQUEST_SECONDS = 30


class EmbeddingError(Exception):
    """The model gave no embedding. The text says why, and what helps."""


class EmbeddingCreator(Protocol):
    """A model."""

    @property
    def name(self) -> str:
        """The model's name: vectors of models with different names are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, one a row, each of length 1."""


def creator(settings: Settings) -> EmbeddingCreator:
    """The model that the settings name."""
    if settings.embeddings_url is None:
        return Embedder()
    return RemoteEmbedder(settings)


class RemoteEmbedder:
    """A server in OpenAI's form: OpenAI's own, `apps/embedder`, and many others."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.embeddings_model
        self._url = f"{settings.embeddings_url}".rstrip("/") + "/embeddings"
        self._headers = {"Content-Type": "application/json"}
        if settings.embeddings_key is not None:
            self._headers["Authorization"] = f"Bearer {settings.embeddings_key.get_secret_value()}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        batches = [self._request(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return np.concatenate(batches) if batches else np.empty((0, DIMENSIONS), np.float32)

    def _request(self, texts: Sequence[str]) -> Vectors:
        # The table has 384 dimensions; models of OpenAI shorten their vectors on request.
        body = json.dumps({"model": self.name, "input": list(texts), "dimensions": DIMENSIONS}).encode()
        request = urllib.request.Request(self._url, body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
                data = json.load(response)["data"]
            found = np.array([row["embedding"] for row in sorted(data, key=lambda row: row["index"])], np.float32)
        except urllib.error.HTTPError as error:
            raise EmbeddingError(
                f"{self._url} answers {error.code}: {error.read(300).decode(errors='replace')}"
            ) from error
        except OSError as error:
            raise EmbeddingError(
                f"No embedding server at {self._url}: {error}. Unset FILMS_EMBEDDINGS_URL for the bundled model"
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._url} does not answer in OpenAI's form: {error}") from error
        if found.shape != (len(texts), DIMENSIONS):
            raise EmbeddingError(
                f"{self.name} gives vectors of shape {found.shape}, and the table takes {DIMENSIONS} dimensions"
            )
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)
