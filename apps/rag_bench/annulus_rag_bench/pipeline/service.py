"""The service (FastAPI): questions, articles, health and metrics over HTTP, as JSON. It listens on loopback by default.

Every error is `{"error": "..."}`, in words: 400 for what is wrong with a request, 503 for a part that is down.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..config import Settings
from ..embeddings import EmbeddingError
from ..retrieval import QuestionError
from ..stores import StoreError
from .answer import Answer, Outcome, Question
from .pipeline import SOURCES_MAX, Pipeline

BODY_BYTES_MAX = 1024 * 1024
ROUTES = "POST /ask, GET /articles, GET /health, GET /metrics"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Asked(BaseModel):
    """The body of a question. `from` and `until` are whole days, and both belong to the range."""

    model_config = ConfigDict(extra="forbid")

    question: str
    limit: int = Field(default=5, ge=1, le=SOURCES_MAX)
    first: date | None = Field(default=None, alias="from")
    last: date | None = Field(default=None, alias="until")
    hybrid: bool = False


class ArticleForm(BaseModel):
    """An article as it is sent."""

    url: str
    title: str
    body: str
    publication_date: str
    distance: float


def service_of(settings: Settings, pipeline: Pipeline | None = None) -> FastAPI:
    """The service, with a pipeline of its own unless one is given."""
    asked_of = pipeline or Pipeline.of(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        asked_of.warm()
        yield
        asked_of.close()

    # Its pages of documentation load their scripts from elsewhere.
    service = FastAPI(title="Answers from articles", docs_url=None, redoc_url=None, lifespan=lifespan)
    service.add_middleware(BodyLimit)
    add_routes(service, asked_of)
    for kind in (StoreError, EmbeddingError, QuestionError, RequestValidationError, HTTPException, Exception):
        service.add_exception_handler(kind, explained)
    return service


def add_routes(service: FastAPI, pipeline: Pipeline) -> None:
    # No `async`: each request has a thread, as the drivers and the embedding model wait.
    @service.post("/ask")
    def ask(asked: Asked, response: Response) -> Answer:
        question = Question.between(asked.question, asked.limit, asked.first, asked.last, asked.hybrid)
        answer = pipeline.answer(question)
        if answer.outcome is Outcome.NO_ANSWER:
            response.status_code = 503
        return answer

    @service.get("/articles")
    def articles(
        q: str,
        limit: Annotated[int, Query(ge=1, le=SOURCES_MAX)] = 5,
        first: Annotated[date | None, Query(alias="from")] = None,
        last: Annotated[date | None, Query(alias="until")] = None,
        hybrid: bool = False,
    ) -> list[ArticleForm]:
        found = pipeline.articles(Question.between(q, limit, first, last, hybrid))
        forms = [asdict(article) | {"publication_date": article.publication_date.isoformat()} for article in found]
        return [ArticleForm.model_validate(form) for form in forms]

    @service.get("/health")
    def health() -> dict[str, str]:
        store = pipeline.check()
        return {
            "status": "ok",
            "store": store.name,
            "embeddings": pipeline.embeddings.name,
            "model": pipeline.model.name,
        }

    @service.get("/metrics")
    def metrics() -> Response:
        return Response(pipeline.metrics.text(), media_type=METRICS_TYPE)


async def explained(request: Request, error: Exception) -> JSONResponse:
    """The answer that an error is."""
    headers = None
    if isinstance(error, RequestValidationError):
        status, said = 400, "; ".join(map(problem_in, error.errors()))
    elif isinstance(error, QuestionError):
        status, said = 400, str(error)
    elif isinstance(error, (StoreError, EmbeddingError)):
        status, said = 503, str(error)
    elif isinstance(error, HTTPException):
        status, said, headers = error.status_code, error.detail, error.headers
        if status in (404, 405):
            said = f"There is no {request.method} {request.url.path} here: {ROUTES}"
    else:
        status, said = 500, f"The service failed: {type(error).__name__}. Its log says more."
    # What a request has may be no text in UTF-8, such as half a character.
    said = said.encode(errors="replace").decode()
    return JSONResponse({"error": said}, status, headers)


def problem_in(problem: dict[str, Any]) -> str:
    """A problem of a request: where it is, and what it is."""
    # The first part is that of the request, such as `body`; numbers are places in a text.
    place = ".".join(part for part in problem["loc"][1:] if isinstance(part, str))
    return f"{place or problem['loc'][0]}: {problem['msg']}"


class BodyLimit:
    """Refuses bodies over a megabyte before they are in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > BODY_BYTES_MAX:
                raise HTTPException(413, f"The body has more than {BODY_BYTES_MAX:,} bytes.")
            return message

        await self._app(scope, limited if scope["type"] == "http" else receive, send)
