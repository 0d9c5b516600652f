"""The exceptions of this package. Each says what is wrong, and, where it is known, what to do."""

from __future__ import annotations

from typing import ClassVar


class AnnulusError(Exception):
    """Any failure of a server or of a request.

    Attributes:
        message: what is wrong.
        hint: what to do; None where that is not known.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}; {self.hint}"


class StartError(AnnulusError):
    """A server that did not start. The message ends with what it logged."""


class ConnectionFailedError(AnnulusError):
    """A server that can't be reached, or that ended a connection before it answered."""


class TimedOutError(ConnectionFailedError):
    """A server that did not answer within the client's `timeout`. What it changed is not known."""


class RequestError(AnnulusError):
    """An answer that is an error.

    Attributes:
        status: the status of HTTP.
        retry_after: seconds after which to try again; None where that is of no use.
    """

    statuses: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self, message: str, *, status: int, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"HTTP {self.status}: {super().__str__()}"


class InvalidRequestError(RequestError):
    """A request that can't be served as it is: an unknown column, a vector of another length, a syntax error."""

    statuses = (400, 405, 413, 415, 422)


class LoginError(RequestError):
    """No login, or a wrong one."""

    statuses = (401,)


class ForbiddenError(RequestError):
    """A login that has no right to this."""

    statuses = (403,)


class NotFoundError(RequestError):
    """A keyspace, table or index that is not there."""

    statuses = (404,)


class ConflictError(RequestError):
    """What the request would make is there already, or is in another state."""

    statuses = (409,)


class UnavailableError(RequestError):
    """A server that can't answer now: it starts, an index is being built, it is too busy, the time was up."""

    statuses = (408, 429, 503, 504)


_KINDS: tuple[type[RequestError], ...] = (
    InvalidRequestError,
    LoginError,
    ForbiddenError,
    NotFoundError,
    ConflictError,
    UnavailableError,
)


def request_error(
    status: int, message: str, *, hint: str | None = None, retry_after: float | None = None
) -> RequestError:
    """The exception for an answer of this status."""
    kind = next((kind for kind in _KINDS if status in kind.statuses), RequestError)
    return kind(message, status=status, hint=hint, retry_after=retry_after)
