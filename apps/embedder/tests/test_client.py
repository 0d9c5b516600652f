"""The client of embeddings: this package's own server, one that is away, and one that answers wrongly."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from annulus_embedder.client import BATCH, EmbeddingError, RemoteEmbedder
from annulus_embedder.model import NAME, WIDTH, Embedder
from annulus_embedder.testing import ScriptedServer, TestServer, running_embedder, running_scripted_server

REMEDY = "Unset EMBEDDINGS_URL for the bundled model"
EAST, NORTH = [2.0] + [0.0] * (WIDTH - 1), [0.0] * (WIDTH - 1) + [3.0]


@pytest.fixture
def provider() -> Iterator[ScriptedServer]:
    with running_scripted_server() as provider:
        yield provider


def remote(url: str) -> RemoteEmbedder:
    return RemoteEmbedder(url, "text-embedding-3-small", WIDTH, "secret", REMEDY)


def test_a_server_embeds_as_the_model_itself(server: TestServer, embedder: Embedder) -> None:
    client = RemoteEmbedder(server.base_url + "/", NAME, WIDTH)
    texts = [f"text number {number}" for number in range(BATCH + 3)]
    assert np.allclose(client.embed(texts), embedder.embed(texts), atol=1e-4)
    assert client.embed([]).shape == (0, WIDTH)


def test_a_server_that_is_away_is_named_with_the_remedy_and_found_again() -> None:
    with running_embedder() as server:
        client = RemoteEmbedder(server.base_url, NAME, WIDTH, remedy=REMEDY)
        server.stop()
        with pytest.raises(EmbeddingError, match=f"No embedding server at {server.base_url}/embeddings: .*{REMEDY}"):
            client.embed(["a"])
        server.start()
        assert client.embed(["a"]).shape == (1, WIDTH)


def test_a_provider_gets_the_key_and_the_dimensions_of_the_table(provider: ScriptedServer) -> None:
    # Out of order, and not of length 1.
    vectors = [{"index": 1, "embedding": EAST}, {"index": 0, "embedding": NORTH}]
    provider.answer = json.dumps({"data": vectors}).encode()
    found = remote(provider.base_url).embed(["a", "b"])
    assert [found[0][WIDTH - 1], found[1][0]] == [1.0, 1.0]
    assert (provider.path, provider.authorization) == ("/v1/embeddings", "Bearer secret")
    assert provider.body == {"model": "text-embedding-3-small", "input": ["a", "b"], "dimensions": WIDTH}


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (401, b'{"error": {"message": "no such key"}}', "answers 401: .*no such key"),
        (500, b"\xff" * 5_000, "answers 500: "),
        (200, b"", "does not answer in OpenAI's form"),
        (200, b"<html>", "does not answer in OpenAI's form"),
        (200, b"[]", "does not answer in OpenAI's form"),
        (200, b'{"data": [{"index": 0}]}', "does not answer in OpenAI's form"),
        (200, b'{"data": [{"index": 0, "embedding": ["a"]}]}', "does not answer in OpenAI's form"),
        (200, b'{"data": [{"index": 0, "embedding": [1.0, 2.0]}]}', r"shape \(1, 2\), and the table takes 384"),
        (200, b'{"data": []}', "the table takes 384"),
    ],
)
def test_a_provider_that_answers_wrongly_is_an_error_in_words(
    provider: ScriptedServer, status: int, answer: bytes, says: str
) -> None:
    provider.status, provider.answer = status, answer
    with pytest.raises(EmbeddingError, match=says) as error:
        remote(provider.base_url).embed(["a"])
    assert "secret" not in str(error.value) and len(str(error.value)) < 500


@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf")])
def test_a_vector_without_a_direction_is_an_error_in_words(provider: ScriptedServer, number: float) -> None:
    provider.embed([number] * WIDTH)
    with pytest.raises(EmbeddingError, match="text-embedding-3-small gives a vector without a direction"):
        remote(provider.base_url).embed(["a"])


@pytest.mark.parametrize("url", ["nonsense", "http://[", "http://a b"])
def test_an_address_that_is_none_is_an_error_in_words(url: str) -> None:
    with pytest.raises(EmbeddingError, match="embeddings"):
        remote(url).embed(["a"])
