"""An embedding that needs no model: texts that share words are near each other."""

import hashlib
import re

import numpy
from langchain_core.embeddings import Embeddings


class WordEmbeddings(Embeddings):
    """The sum of a vector for each word, of length 1."""

    def __init__(self, dimensions=32):
        self._dimensions = dimensions

    def embed_query(self, text):
        vector = sum(self._of_word(word) for word in re.findall(r"\w+", text.lower()))
        return (vector / numpy.linalg.norm(vector)).tolist()

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def _of_word(self, word):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        return numpy.random.default_rng(seed).standard_normal(self._dimensions)
