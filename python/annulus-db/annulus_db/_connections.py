"""Connections of HTTP that are open from one request to the next."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from annulus_db._call import Address, Answered, Call, Reply
from annulus_db.errors import ConnectionFailedError, TimedOutError


class Connections:
    """Connections to one server. Any number of threads may send by them."""

    def __init__(self, address: Address, timeout: float | None, idle_max: int) -> None:
        self._address = address
        self._timeout = timeout
        self._idle_max = idle_max
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def send(self, call: Call[Answered]) -> Answered:
        """Sends a call. Returns what its answer means."""
        return call.answer(self._reply(call))

    def close(self) -> None:
        """Closes those that no request uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _reply(self, call: Call[Any]) -> Reply:
        while True:
            connection, is_new = self._taken()
            try:
                reply, goes_on = self._exchange(connection, call)
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                # The server may have closed it for being idle as the request was sent.
                if is_new or not call.is_repeatable or isinstance(error, (TimeoutError, socket.timeout)):
                    raise self._failure(error) from error
                continue
            except BaseException:
                connection.close()
                raise
            if goes_on:
                self._give_back(connection)
            else:
                connection.close()
            return reply

    def _exchange(self, connection: http.client.HTTPConnection, call: Call[Any]) -> tuple[Reply, bool]:
        headers: Mapping[str, str] = {**self._address.headers, **call.headers}
        if call.body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        try:
            connection.request(call.method, call.path, call.body, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            # The server may have refused the request before all of it was sent.
            pass
        response = connection.getresponse()
        body = response.read()
        lower = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, lower, body), not response.will_close

    def _taken(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it is new."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._opened(), True
            if not _is_closed_by_peer(connection):
                return connection, False
            connection.close()

    def _opened(self) -> http.client.HTTPConnection:
        host, port, tls, _ = self._address
        if tls is None:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=tls)
        try:
            connection.connect()
            # A request is sent in two pieces, of which the second must not wait for an answer to the first.
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            raise self._failure(error) from error
        return connection

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < self._idle_max:
                self._idle.append(connection)
                return
        connection.close()

    def _failure(self, error: Exception) -> ConnectionFailedError:
        return connection_failure(error, self._address, self._timeout)

    def __enter__(self) -> Connections:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connection_failure(error: BaseException, address: Address, timeout: float | None) -> ConnectionFailedError:
    """The exception for a connection that failed."""
    if isinstance(error, (TimeoutError, socket.timeout)) and timeout is not None:
        return TimedOutError(f"{address.name} did not answer within {timeout:g} s", hint="timeout= gives it more")
    if isinstance(error, ConnectionRefusedError):
        return ConnectionFailedError(
            f"nothing listens on {address.name}", hint="start a server, or name the HTTP port of one that runs"
        )
    return ConnectionFailedError(f"the connection to {address.name} failed: {error or type(error).__name__}")


def _is_closed_by_peer(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection has an end, or bytes that belong to no request."""
    try:
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        return bool(poll.poll(0))
    except (OSError, ValueError):
        return True
