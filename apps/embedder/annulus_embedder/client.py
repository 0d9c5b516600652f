"""Embeddings by a server in OpenAI's form, over HTTP: OpenAI's own, the one of this package, and many others."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Texts in one request.
BATCH = 64
REQUEST_SECONDS = 30
SAID_BYTES = 300

Vectors = npt.NDArray[np.float32]


class EmbeddingError(Exception):
    """The model gave no embedding. The text says why, and what helps. It has nothing of the key."""


class RemoteEmbedder:
    """A model behind a server. Threads may share one."""

    def __init__(self, url: str, model: str, dimensions: int, key: str | None = None, remedy: str = "") -> None:
        """`url` is the base that clients of OpenAI take. `remedy` says what to do where no server answers."""
        self.name, self.dimensions = model, dimensions
        self._url = url.rstrip("/") + "/embeddings"
        self._remedy = f". {remedy}" if remedy else ""
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of texts, one a row, each of length 1. Raises `EmbeddingError`."""
        batches = [self._embed_batch(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return np.concatenate(batches) if batches else np.empty((0, self.dimensions), np.float32)

    def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        found = self._request(texts)
        if found.shape != (len(texts), self.dimensions):
            raise EmbeddingError(
                f"{self.name} gives vectors of shape {found.shape}, and the table takes {self.dimensions} dimensions"
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise EmbeddingError(f"{self.name} gives a vector without a direction")
        return np.asarray(found / lengths, np.float32)

    def _request(self, texts: Sequence[str]) -> Vectors:
        """The vectors as the server gives them, in the order of the texts."""
        # A table has one number of dimensions; models of OpenAI shorten their vectors on request.
        body = json.dumps({"model": self.name, "input": list(texts), "dimensions": self.dimensions}).encode()
        try:
            request = urllib.request.Request(self._url, body, self._headers)
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
                data = json.load(response)["data"]
            return np.array([row["embedding"] for row in sorted(data, key=lambda row: row["index"])], np.float32)
        except urllib.error.HTTPError as error:
            said = error.read(SAID_BYTES).decode(errors="replace")
            raise EmbeddingError(f"{self._url} answers {error.code}: {said}") from error
        except (OSError, http.client.HTTPException) as error:
            raise EmbeddingError(f"No embedding server at {self._url}: {error}{self._remedy}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._url} does not answer in OpenAI's form: {error}") from error
