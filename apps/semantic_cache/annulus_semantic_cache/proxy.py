"""The proxy: OpenAI's API with a cache before the model.

A client changes its base URL and nothing else. Its key goes to the model with the request, and is
stored nowhere: the tenant is a digest of it.
"""

from __future__ import annotations

import array
import asyncio
import base64
import contextlib
import hashlib
import hmac
import importlib.resources
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from annulus_semantic_cache import openai_form
from annulus_semantic_cache.answers import Hit, Miss
from annulus_semantic_cache.cache import AsyncSemanticCache
from annulus_semantic_cache.embeddings import EmbeddingError
from annulus_semantic_cache.flights import Broadcast, Flights
from annulus_semantic_cache.questions import Question, UncachedError, digest, question_of_chat
from annulus_semantic_cache.rows import DatabaseDownError
from annulus_semantic_cache.settings import seconds_of

LOG = logging.getLogger("annulus_semantic_cache")

BODY_BYTES_MAX = 64 * 1024 * 1024
TEXTS_OF_A_REQUEST = 2_048
# How long the start waits for the database and the embedding model.
START_SECONDS = 10
# Headers of the cache's own, which the model doesn't get.
TENANT, TAGS, TTL, ADMIN = "x-cache-tenant", "x-cache-tags", "x-cache-ttl", "x-cache-admin"
_NOT_SENT_ON = frozenset(
    "host content-length connection keep-alive te trailer transfer-encoding upgrade proxy-authorization "
    "accept-encoding cookie".split()
) | {TENANT, TAGS, TTL, ADMIN}
_NOT_SENT_BACK = frozenset(
    "content-length content-encoding connection keep-alive transfer-encoding trailer upgrade set-cookie".split()
)


@dataclass(frozen=True)
class ProxySettings:
    """Settings of the proxy besides those of its cache."""

    upstream: str
    # Opens the page, and invalidations of any tenant.
    admin_token: str
    upstream_timeout: float = 600.0


@dataclass(frozen=True)
class _Upstream:
    """An answer of the model that is still coming in, or has come."""

    status: int
    headers: dict[str, str]
    body: Broadcast


_Outcome = Hit | _Upstream


class Proxy:
    """The routes of the proxy."""

    def __init__(self, cache: AsyncSemanticCache, settings: ProxySettings) -> None:
        self._cache, self._settings = cache, settings
        self._flights: Flights[_Outcome] = Flights()
        self._model = httpx2.AsyncClient(
            timeout=httpx2.Timeout(settings.upstream_timeout, connect=10),
            # A queue of our own would limit the model, which has limits of its own.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        )
        self._work: set[asyncio.Task[None]] = set()

    def app(self) -> Starlette:
        """The application for an ASGI server."""
        rest = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/v1/{path:path}", self._pass_on, methods=rest),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
                Route("/", self._page),
                Route("/cache/overview", self._overview),
                Route("/cache/report", self._report, methods=["POST"]),
                Route("/cache/invalidate", self._invalidate, methods=["POST"]),
            ],
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._cache.start()
        # Requests pass through meanwhile, if it takes longer.
        await self._cache.ready(START_SECONDS)
        try:
            yield
        finally:
            await self._flights.close()
            if self._work:
                await asyncio.wait(self._work, timeout=5)
            await self._cache.close()
            await self._model.aclose()

    async def _chat(self, request: Request) -> Response:
        try:
            raw = await _body_of(request)
            body = _json_of(raw)
            question, reading, writing = self._question(request, body)
            # What the key leaves out, such as the form of a stream, still makes another answer on the wire.
            whole = digest([body, question.tenant, question.user, sorted(question.tags), question.ttl, reading])
        except RecursionError:
            return await self._bypass(request, raw, "too_deep")
        except _Refused as refused:
            return refused.response
        except UncachedError as error:
            return await self._bypass(request, raw, error.reason)
        if not writing:
            return await self._bypass(request, raw, "no_store")
        streamed = body.get("stream") is True
        headers = _headers_on(request)

        async def ask(landed: Callable[[], None]) -> _Outcome:
            found = await self._cache.look_up(question) if reading else Miss("refresh")
            if isinstance(found, Hit):
                landed()
                return found
            return await self._ask(request.url.query, headers, raw, question, found, landed)

        try:
            outcome, joined = await self._flights.join(whole, ask)
        except httpx2.HTTPError as error:
            return self._unreachable(error)
        if joined:
            self._cache.metrics.shared.inc()
        if isinstance(outcome, Hit):
            return _of_hit(outcome, body, streamed)
        marks = {"x-cache": "shared" if joined else "miss"}
        return StreamingResponse(outcome.body.read(), outcome.status, {**outcome.headers, **marks})

    async def _bypass(self, request: Request, raw: bytes, reason: str) -> Response:
        self._cache.metrics.bypassed.labels(reason).inc()
        return await self._pass_on_body(request, raw, {"x-cache": "bypass", "x-cache-reason": reason})

    def _question(self, request: Request, body: Mapping[str, Any]) -> tuple[Question, bool, bool]:
        """The question of a request, whether an answer may come from the cache, and whether it is stored."""
        ttl = request.headers.get(TTL)
        try:
            seconds = None if ttl is None else seconds_of(ttl)
        except ValueError as error:
            raise _Refused(400, f"{TTL}: {error}") from None
        tags = frozenset(one.strip() for one in request.headers.get(TAGS, "").split(",") if one.strip())
        question = question_of_chat(body, tenant=tenant_of(request), tags=tags, ttl=seconds)
        question.check(self._cache.settings.prompt_bytes)
        control = {part.strip() for part in request.headers.get("cache-control", "").lower().split(",")}
        return question, "no-cache" not in control, "no-store" not in control

    async def _ask(
        self,
        query: str,
        headers: dict[str, str],
        raw: bytes,
        question: Question,
        miss: Miss,
        landed: Callable[[], None],
    ) -> _Upstream:
        """Sends the request to the model, and returns when its answer begins; a whole one when it has ended.

        A stream goes on being read when its client has left, and is stored when it has ended."""
        epoch, start = self._cache.epoch, time.perf_counter()
        response = await self._send("POST", "chat/completions", query, headers, raw)
        body = Broadcast()
        outcome = _Upstream(response.status_code, _headers_back(response), body)
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")

        async def take() -> None:
            try:
                async for piece in response.aiter_bytes():
                    body.add(piece)
            finally:
                await response.aclose()

        async def finish() -> None:
            try:
                seconds = time.perf_counter() - start
                self._cache.metrics.model.observe(seconds)
                read = openai_form.answer_of_stream if streamed else openai_form.answer_of
                answer = read(body.so_far()) if response.status_code == 200 else None
                if answer is not None:
                    with contextlib.suppress(UncachedError):
                        timed = replace(answer, seconds=seconds)
                        await self._cache.store(question, timed, replaces=miss.replaces, epoch=epoch)
            finally:
                landed()

        async def follow() -> None:
            try:
                await take()
            except httpx2.HTTPError as error:
                LOG.warning("the model's stream broke off: %s", type(error).__name__)
                body.end(_BrokenStreamError())
                landed()
                return
            except BaseException:
                body.end(_BrokenStreamError())
                raise
            body.end()
            await finish()

        if streamed:
            self._begin(follow())
        else:
            await take()
            body.end()
            self._begin(finish())
        return outcome

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("an answer was not stored: %s", type(error).__name__)

    async def _embeddings(self, request: Request) -> Response:
        try:
            raw = await _body_of(request)
            body = _json_of(raw)
        except _Refused as refused:
            return refused.response
        if body.get("model") != self._cache.embeddings.name:
            return await self._pass_on_body(request, raw, {})
        given = body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one for one in texts):
            return _refusal(400, "input is a text, or a list of texts, none of them empty")
        if len(texts) > TEXTS_OF_A_REQUEST:
            return _refusal(400, f"input has {len(texts)} texts, and {TEXTS_OF_A_REQUEST} are allowed")
        if body.get("encoding_format", "float") not in ("float", "base64"):
            return _refusal(400, "encoding_format is float or base64")
        try:
            found = await self._cache.embeddings.embed(texts)
        except EmbeddingError as error:
            return _refusal(502, f"no embedding: {error}", "upstream_error")
        form = _base64_of if body.get("encoding_format") == "base64" else list
        rows = [{"object": "embedding", "index": at, "embedding": form(one.vector)} for at, one in enumerate(found)]
        tokens = sum(one.tokens or 0 for one in found)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse({"object": "list", "data": rows, "model": body["model"], "usage": usage})

    async def _pass_on(self, request: Request) -> Response:
        try:
            raw = await _body_of(request)
        except _Refused as refused:
            return refused.response
        return await self._pass_on_body(request, raw, {})

    async def _pass_on_body(self, request: Request, raw: bytes, marks: dict[str, str]) -> Response:
        path = request.url.path.removeprefix("/v1/")
        try:
            response = await self._send(request.method, path, request.url.query, _headers_on(request), raw)
        except httpx2.HTTPError as error:
            return self._unreachable(error)

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in response.aiter_bytes():
                    yield piece
            finally:
                await response.aclose()

        return StreamingResponse(pieces(), response.status_code, {**_headers_back(response), **marks})

    async def _send(
        self, method: str, path: str, query: str, headers: Mapping[str, str], raw: bytes
    ) -> httpx2.Response:
        url = f"{self._settings.upstream.rstrip('/')}/{path}" + (f"?{query}" if query else "")
        return await self._model.send(
            self._model.build_request(method, url, headers=dict(headers), content=raw), stream=True
        )

    def _unreachable(self, error: Exception) -> Response:
        self._cache.metrics.errors.labels("model").inc()
        LOG.warning("the model at %s can't be reached: %s", self._settings.upstream, type(error).__name__)
        what = f"the model at {self._settings.upstream} can't be reached ({type(error).__name__})"
        return _refusal(502, f"{what}: start it, or set --upstream", "upstream_error")

    async def _health(self, _: Request) -> Response:
        """Always 200 while requests are served: a cache that is down is said, and is no reason for a restart."""
        trouble = self._cache.trouble
        return JSONResponse(
            {
                "status": "ok",
                "cache": "down" if trouble else "up",
                "trouble": trouble,
                "embedding_model": self._cache.embeddings.name,
                "threshold": {
                    "cosine": self._cache.settings.least_cosine,
                    "score": (1 + self._cache.settings.least_cosine) / 2,
                },
            }
        )

    async def _metrics(self, _: Request) -> Response:
        return Response(self._cache.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _page(self, _: Request) -> Response:
        page = importlib.resources.files("annulus_semantic_cache") / "page.html"
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        return HTMLResponse(page.read_text("utf-8"), headers={"content-security-policy": policy})

    async def _overview(self, request: Request) -> Response:
        if not self._is_admin(request):
            return _refusal(403, _ADMINS_ONLY, "permission_error")
        settings = self._cache.settings
        about = {
            "threshold": settings.threshold,
            "scale": settings.scale,
            "cosine": settings.least_cosine,
            "score": (1 + settings.least_cosine) / 2,
            "embedding_model": self._cache.embeddings.name,
            "upstream": self._settings.upstream,
            "trouble": self._cache.trouble,
        }
        return JSONResponse(
            {**self._cache.metrics.overview(), "settings": about}, headers={"cache-control": "no-store"}
        )

    async def _report(self, request: Request) -> Response:
        """Takes `{"prompt_id": "..."}`, or `{"prompt_id": "...", "remove": true}`: a hit that was false."""
        try:
            body = _json_of(await _body_of(request), request)
            prompt_id = uuid.UUID(str(body.get("prompt_id", "")).removeprefix("chatcmpl-"))
        except _Refused as refused:
            return refused.response
        except ValueError:
            return _refusal(400, "prompt_id is the x-cache-id of the hit, or the id of its body")
        self._cache.report_false_hit()
        if not body.get("remove"):
            return JSONResponse({"removed": 0})
        tenant = None if self._is_admin(request) and body.get("any_tenant") is True else tenant_of(request)
        try:
            return JSONResponse({"removed": await self._cache.invalidate(prompt_id=prompt_id, tenant=tenant)})
        except DatabaseDownError as error:
            return _refusal(503, f"nothing is removed: {error}; try again", "cache_down")

    async def _invalidate(self, request: Request) -> Response:
        """Takes tag, text, user, older_than, prompt_id or everything, of the caller's tenant. An admin may
        name another by `tenant`, or all by `"any_tenant": true`."""
        try:
            body = _json_of(await _body_of(request), request)
            which = _which_of(body)
        except _Refused as refused:
            return refused.response
        tenant: str | None = tenant_of(request)
        if "tenant" in body or body.get("any_tenant") is True:
            if not self._is_admin(request):
                return _refusal(403, _ADMINS_ONLY, "permission_error")
            tenant = None if body.get("any_tenant") is True else str(body["tenant"])
        if not which and not body.get("everything"):
            return _refusal(400, 'say which rows: tag, text, user, older_than, prompt_id, or "everything": true')
        try:
            everything = body.get("everything") is True
            count = await self._cache.invalidate(tenant=tenant, everything=everything, **which)
        except DatabaseDownError as error:
            return _refusal(503, f"not all is deleted: {error}; try again", "cache_down")
        return JSONResponse({"removed": count})

    def _is_admin(self, request: Request) -> bool:
        given = request.headers.get(ADMIN, "")
        return hmac.compare_digest(given.encode(), self._settings.admin_token.encode())


_ADMINS_ONLY = (
    "only an admin may do that: send the token that the proxy printed, or that of --admin-token, as x-cache-admin"
)


class _BrokenStreamError(Exception):
    """The model's stream broke off, and so does that to its readers."""


class _Refused(Exception):  # noqa: N818 (it is an answer, not an error)
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.response = _refusal(status, message)


def tenant_of(request: Request) -> str:
    """The tenant of a request: a digest of its key, and within it the name in `x-cache-tenant`.

    The header alone can't lead to the rows of another key."""
    key = request.headers.get("authorization") or request.headers.get("api-key") or ""
    tenant = "key-" + hashlib.sha256(key.encode()).hexdigest()[:32] if key else "default"
    name = request.headers.get(TENANT, "")
    return f"{tenant}/{name}" if name else tenant


async def _body_of(request: Request) -> bytes:
    """The body. Raises _Refused above the bound."""
    pieces, size = [], 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > BODY_BYTES_MAX:
                raise _Refused(413, f"the body has more than {BODY_BYTES_MAX} bytes")
            pieces.append(piece)
    except ClientDisconnect:
        raise _Refused(400, "the body is not whole") from None
    return b"".join(pieces)


def _json_of(raw: bytes, own: Request | None = None) -> dict[str, Any]:
    """A body's object of JSON. A route of the cache's `own` takes it only under that content type, which a
    form of another site can't send."""
    if own is not None and not own.headers.get("content-type", "").startswith("application/json"):
        raise _Refused(415, "send JSON, with content-type: application/json")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise _Refused(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise _Refused(400, "the body is not an object of JSON")
    return body


def _which_of(body: Mapping[str, Any]) -> dict[str, Any]:
    known = {"tag", "text", "user", "older_than", "prompt_id", "everything", "tenant", "any_tenant"}
    if unknown := sorted(set(body) - known):
        raise _Refused(400, f"unknown: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    which: dict[str, Any] = {name: body[name] for name in ("tag", "text", "user") if name in body}
    if not all(isinstance(value, str) and value for value in which.values()):
        raise _Refused(400, "tag, text and user are texts that are not empty")
    try:
        if "older_than" in body:
            which["older_than"] = seconds_of(str(body["older_than"]))
        if "prompt_id" in body:
            which["prompt_id"] = uuid.UUID(str(body["prompt_id"]))
    except ValueError as error:
        raise _Refused(400, str(error)) from None
    return which


def _of_hit(hit: Hit, body: Mapping[str, Any], streamed: bool) -> Response:
    model = str(body.get("model", ""))
    headers = {
        "x-cache": f"hit-{hit.kind}",
        "x-cache-id": str(hit.prompt_id),
        "x-cache-similarity": f"{hit.similarity:.4f}",
        "x-cache-score": f"{hit.score:.4f}",
        "x-cache-stored": hit.updated_at.isoformat(timespec="seconds"),
    }
    if not streamed:
        return JSONResponse(openai_form.whole(hit, model), headers=headers)
    options = body.get("stream_options")
    with_usage = isinstance(options, dict) and options.get("include_usage") is True
    return StreamingResponse(
        iter(openai_form.stream(hit, model, with_usage)), headers=headers, media_type="text/event-stream"
    )


def _refusal(status: int, message: str, kind: str = "invalid_request_error") -> Response:
    return JSONResponse(openai_form.error(message, kind), status)


def _headers_on(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name not in _NOT_SENT_ON}


def _headers_back(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.lower() not in _NOT_SENT_BACK}


def _base64_of(vector: Any) -> str:
    return base64.b64encode(array.array("f", vector).tobytes()).decode()
