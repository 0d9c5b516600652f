"""What both servers share: requests and errors in the form of OpenAI's API, and the start of a server."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

MAX_BODY_BYTES = 16 * 1024 * 1024
# Pages of the same machine, such as the console.
LOOPBACK_ORIGINS = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"


class ApiError(Exception):
    """An answer that refuses a request, with what is wrong and the remedy."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def response(self) -> JSONResponse:
        """The error as OpenAI's API has it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return JSONResponse({"error": error}, self.status)


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object that a request has. Raises ApiError."""
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        # What is too much is read on for a while, as a client that still sends doesn't see the answer.
        if size <= MAX_BODY_BYTES:
            body += piece
        elif size > 8 * MAX_BODY_BYTES:
            break
    if size > MAX_BODY_BYTES:
        raise ApiError(413, f"The body has more than {MAX_BODY_BYTES} bytes: send fewer texts at once.")
    try:
        value = json.loads(body.decode())
        if b"\\ud" in body.lower():
            # An escape may be half a character, which no other part could write.
            json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ApiError(400, f"The body is not text in UTF-8: {error.reason}.") from error
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"The body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ApiError(400, "The body is not a JSON object.")
    return value


def text_of(body: Mapping[str, Any], name: str) -> str:
    """The text that a body has under `name`. Raises ApiError."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ApiError(400, f"The body needs a text {name!r}.", name)
    return value


def application(
    routes: list[BaseRoute],
    lifespan: Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]] | None = None,
    origins: list[str] | None = None,
) -> Starlette:
    """An application whose errors have OpenAI's form. Pages of this machine and of `origins` may use it."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return error.response()

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        said = {404: f"There is no {request.url.path} here.", 405: f"{request.url.path} takes no {request.method}."}
        answer = ApiError(error.status_code, said.get(error.status_code, error.detail)).response()
        answer.headers.update(error.headers or {})
        return answer

    async def failed(request: Request, error: Exception) -> Response:
        return ApiError(500, f"The server failed: {type(error).__name__}. Its log says more.").response()

    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins or [],
        allow_origin_regex=LOOPBACK_ORIGINS,
        allow_methods=["*"],
        allow_headers=["*"],
    )
    handlers = {ApiError: refused, HTTPException: http_error, Exception: failed}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers, middleware=[cors])


# Longer than a client keeps a connection that is idle: one that sends a request on a connection that the server has just
# closed gets no answer.
KEEP_ALIVE_SECONDS = 75


class _ReadyServer(uvicorn.Server):
    """Says on its output when it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            print(f"ready: http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)


def serve(app: Starlette, host: str, port: int) -> None:
    """Serves until a signal ends it. Port 0 is a free one. No request is in its log."""
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise SystemExit(f"Can't listen on {host}:{port}: {error}. Choose another by --port.") from error
    with listener:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=3,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        with contextlib.suppress(KeyboardInterrupt):
            _ReadyServer(config).run(sockets=[listener])
