"""The model's embeddings, next to those that it gave before it took batches."""

from __future__ import annotations

import base64
import json
import pathlib

import numpy as np
import pytest

from annulus_embedder.model import BATCH, MAX_TOKENS, Embedder

# Texts with their vectors as the first form of this module gave them, one text at a time.
REFERENCE = json.loads((pathlib.Path(__file__).parent / "reference.json").read_text())


def test_embeddings_equal_the_reference(embedder: Embedder) -> None:
    wanted = np.array([np.frombuffer(base64.b64decode(each["vector"]), "<f4") for each in REFERENCE])
    found = embedder.embed([each["text"] for each in REFERENCE])
    assert found.dtype == np.float32
    assert (found * wanted).sum(axis=1).min() > 0.9999


def test_each_embedding_has_length_1(embedder: Embedder) -> None:
    assert embedder.name == "all-MiniLM-L6-v2"
    vectors = embedder.embed(["tea", "", "茶 🍵", "tea " * 500])
    assert vectors.shape == (4, embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_one_embedding_whatever_its_batch_has(embedder: Embedder) -> None:
    texts = [f"text {number} " + "of some length " * (number % 17) for number in range(2 * BATCH + 3)]
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.9999


def test_like_meanings_are_nearer(embedder: Embedder) -> None:
    question, like, unlike = embedder.embed(
        ["How do I get my money back?", "the refund of a payment", "a recipe for apple cake"]
    )
    assert question @ like > question @ unlike + 0.2


def test_tokens_are_counted_up_to_the_bound(embedder: Embedder) -> None:
    vectors, tokens = embedder.embed_counted(["hello world", "word " * 1000, "word " * 2000])
    assert tokens == [4, MAX_TOKENS, MAX_TOKENS]
    assert np.allclose(vectors[1], vectors[2], atol=1e-5)


def test_no_texts_have_no_embeddings(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_a_text_in_place_of_a_list_is_refused(embedder: Embedder) -> None:
    with pytest.raises(TypeError, match="list"):
        embedder.embed("hello")
