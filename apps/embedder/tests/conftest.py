from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from annulus_embedder.model import Embedder
from annulus_embedder.testing import StubModelServer, TestServer, running_embedder, running_stub_model


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return Embedder(threads=2)


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    with running_embedder() as server:
        yield server


@pytest.fixture
def client(server: TestServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def stub() -> Iterator[StubModelServer]:
    with running_stub_model() as stub:
        yield stub


@pytest.fixture
def chat(stub: StubModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=stub.base_url, api_key="secret", max_retries=0) as client:
        yield client
