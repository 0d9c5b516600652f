"""Embeddings of texts by a small model that runs offline, and a stand-in for a language model.

`model` computes embeddings in this process, the server (`python -m annulus_embedder`) serves them in
OpenAI's form, `stub_model` answers chat requests without a model, and `testing` starts both servers
for tests. This module imports nothing, so that `model` needs none of the server's packages.
"""
