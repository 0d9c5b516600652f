"""A request of HTTP, what its answer means, and the exceptions of answers that are errors.

The synchronous and the asynchronous client send the same calls.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from annulus_db import _json
from annulus_db.errors import AnnulusError, RequestError, request_error

Answered = TypeVar("Answered")

# Without it a request that changes something is refused: the page of another site can't send it.
_HEADERS = {"Accept": "application/json", "X-Requested-With": "annulus"}


@dataclass(frozen=True)
class Call(Generic[Answered]):
    """A request, and how its answer is read.

    A call that `is_repeatable` does the same if it is sent twice."""

    method: str
    path: str
    parse: Callable[[Any], Answered]
    body: bytes | None = None
    is_repeatable: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, reply: Reply) -> Answered:
        """What a reply means. Raises the exception of one that is an error."""
        if not 200 <= reply.status < 300:
            raise _error(self, reply)
        try:
            decoded = _json.decode(reply.body) if reply.body else None
            return self.parse(decoded)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AnnulusError(
                f"{self.method} {self.path} has an answer of another form than this package knows: {error!r}",
                hint="is that address an Annulus server of the same version?",
            ) from error


class Reply(NamedTuple):
    """An answer as it comes."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Address(NamedTuple):
    """Where a server is, and what each request carries."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    headers: Mapping[str, str]

    @property
    def name(self) -> str:
        """As the header `Host` has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def address(
    url: str,
    user: str | None = None,
    password: str | None = None,
    ca_file: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    timeout: float | None = None,
) -> Address:
    """The address that a URL names."""
    parts = urlsplit(url)
    is_base = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_base:
        raise ValueError(f"a server's address is http://HOST:PORT or https://HOST:PORT, unlike {url!r}")
    headers = dict(_HEADERS)
    if user is not None:
        login = f"{user}:{password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
    if timeout is not None:
        # The server ends what is no longer waited for.
        headers["X-Request-Timeout-Ms"] = str(max(1, round(timeout * 1000)))
    tls = None
    if parts.scheme == "https":
        tls = ssl_context or ssl.create_default_context(cafile=ca_file)
    elif ssl_context is not None or ca_file is not None:
        raise ValueError(f"{url} is not encrypted: its authorities are of use with https://")
    return Address(parts.hostname, parts.port or 6080, tls, headers)


def quoted(*names: str) -> str:
    """Parts of a path."""
    return "/".join(quote(name, safe="") for name in names)


def _error(call: Call[Any], reply: Reply) -> RequestError:
    message, hint = reply.body.decode(errors="replace").strip(), None
    try:
        decoded = _json.decode(reply.body)
    except ValueError:
        decoded = None
    if isinstance(decoded, dict):
        message = str(decoded.get("error") or decoded.get("message") or decoded.get("reason") or message)
        hint = decoded.get("hint")
    retry_after = reply.headers.get("retry-after", "")
    return request_error(
        reply.status,
        message or f"{call.method} {call.path}: no reason is given",
        hint=str(hint) if hint else None,
        retry_after=float(retry_after) if retry_after.isdigit() else None,
    )
