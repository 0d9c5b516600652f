"""The model that writes answers, in OpenAI's form: a server, or the stub of `apps/embedder` in this process."""

from collections.abc import Sequence
from typing import Protocol, TypedDict

import httpx
from annulus_embedder.stub_model import answer_to

from ..config import Settings

REQUEST_SECONDS, CONNECT_SECONDS = 60.0, 5.0
SAID_CHARACTERS = 300


class ModelError(Exception):
    """The model gave no answer. The text says why, and what helps."""


class Message(TypedDict):
    """A message of a chat."""

    role: str
    content: str


class ChatModel(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The model's name."""

    def complete(self, messages: Sequence[Message]) -> str:
        """What the model says to a chat. Raises `ModelError`."""

    def is_stub(self) -> bool:
        """Whether it only repeats what it is given, so that judging its words says nothing. Raises `ModelError`."""

    def close(self) -> None:
        """Closes connections."""


def model_of(settings: Settings) -> ChatModel:
    """The model that the settings name."""
    return StubModel() if settings.model_url is None else RemoteModel(settings)


class StubModel:
    """The stub in this process: its answer is the sentence of a source that shares most words with the question."""

    name = "stub"

    def complete(self, messages: Sequence[Message]) -> str:
        return "".join(answer_to({"model": self.name, "messages": list(messages)}).pieces)

    def is_stub(self) -> bool:
        return True

    def close(self) -> None:
        """It has no connection."""


class RemoteModel:
    """A server in OpenAI's form: OpenAI's own, and many others."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.model
        self._url = f"{settings.model_url}".rstrip("/")
        headers = {}
        if settings.model_key is not None:
            headers["Authorization"] = f"Bearer {settings.model_key.get_secret_value()}"
        timeout = httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS)
        self._client = httpx.Client(headers=headers, timeout=timeout)

    def complete(self, messages: Sequence[Message]) -> str:
        url = f"{self._url}/chat/completions"
        answer = self._json(url, {"model": self.name, "messages": list(messages)})
        try:
            text = answer["choices"][0]["message"]["content"]  # type: ignore[index]
        except (LookupError, TypeError) as error:
            raise ModelError(f"{url} does not answer in OpenAI's form: {str(answer)[:SAID_CHARACTERS]}") from error
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"{self.name} gives an empty answer. Try again, or choose another model by RAG_MODEL")
        return text.strip()

    def is_stub(self) -> bool:
        models = self._json(f"{self._url}/models")
        return isinstance(models, dict) and [
            (model.get("id"), model.get("owned_by")) for model in models.get("data", []) if isinstance(model, dict)
        ] == [("stub", "annulus")]

    def close(self) -> None:
        self._client.close()

    def _json(self, url: str, body: object = None) -> object:
        """The JSON that a GET, or a POST with a body, answers."""
        try:
            response = self._client.get(url) if body is None else self._client.post(url, json=body)
            response.raise_for_status()
            found: object = response.json()
        except httpx.HTTPStatusError as error:
            said = error.response.text[:SAID_CHARACTERS]
            raise ModelError(f"{url} answers {error.response.status_code}: {said}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error).rstrip(".") or type(error).__name__
            raise ModelError(f"No model answers at {url}: {why}. Unset RAG_MODEL_URL for the stub") from error
        except ValueError as error:
            raise ModelError(f"{url} does not answer in OpenAI's form: {error}") from error
        return found
