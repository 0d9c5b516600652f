"""Connections of HTTP by asyncio, open from one request to the next."""

from __future__ import annotations

import asyncio
import http.client
import io
from typing import Any, NamedTuple

from annulus_db._call import Address, Answered, Call, Reply
from annulus_db._connections import connection_failure
from annulus_db.errors import ConnectionFailedError

# An answer's lines of status and headers.
_HEAD_MAX = 64 << 10
# What sending and reading may raise.
_FAILURES = (
    OSError,
    EOFError,
    ValueError,
    http.client.HTTPException,
    asyncio.LimitOverrunError,
    asyncio.TimeoutError,
)


class Streams:
    """Connections to one server, of which up to `open_max` are in use at once.

    A request that is cancelled closes its connection, by which the server ends its work."""

    def __init__(self, address: Address, timeout: float | None, open_max: int) -> None:
        self._address = address
        self._timeout = timeout
        self._open_max = open_max
        self._idle: list[_Stream] = []
        self._places: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, call: Call[Answered]) -> Answered:
        """Sends a call. Returns what its answer means."""
        async with self._of_this_loop():
            reply = await self._reply(call)
        return call.answer(reply)

    async def close(self) -> None:
        """Closes those that no request uses."""
        idle, self._idle = self._idle, []
        for stream in idle:
            stream.writer.close()
        for stream in idle:
            try:
                await stream.writer.wait_closed()
            except OSError:
                pass

    def _of_this_loop(self) -> asyncio.Semaphore:
        """The places for requests. What belongs to a loop of before, which has ended, is dropped."""
        loop = asyncio.get_running_loop()
        if self._places is None or self._loop is not loop:
            self._loop, self._idle = loop, []
            self._places = asyncio.Semaphore(self._open_max)
        return self._places

    async def _reply(self, call: Call[Any]) -> Reply:
        while True:
            stream, is_new = await self._taken()
            try:
                reply, goes_on = await asyncio.wait_for(self._exchange(stream, call), self._timeout)
            except _FAILURES as error:
                stream.writer.close()
                # The server may have closed it for being idle as the request was sent.
                if is_new or not call.is_repeatable or isinstance(error, asyncio.TimeoutError):
                    raise self._failure(error) from error
                continue
            except BaseException:
                stream.writer.close()
                raise
            if goes_on:
                self._idle.append(stream)
            else:
                stream.writer.close()
            return reply

    async def _taken(self) -> tuple[_Stream, bool]:
        """A connection, and whether it is new."""
        while self._idle:
            stream = self._idle.pop()
            if not stream.reader.at_eof() and not stream.writer.is_closing():
                return stream, False
            stream.writer.close()
        host, port, tls, _ = self._address
        opening = asyncio.open_connection(host, port, ssl=tls, limit=_HEAD_MAX)
        try:
            return _Stream(*await asyncio.wait_for(opening, self._timeout)), True
        except (OSError, asyncio.TimeoutError) as error:
            raise self._failure(error) from error

    async def _exchange(self, stream: _Stream, call: Call[Any]) -> tuple[Reply, bool]:
        lines = [f"{call.method} {call.path} HTTP/1.1", f"Host: {self._address.name}"]
        headers = {**self._address.headers, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.body is not None or call.method not in ("GET", "DELETE"):
            headers["Content-Length"] = str(len(call.body or b""))
        lines += [f"{name}: {value}" for name, value in headers.items()]
        stream.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (call.body or b""))
        try:
            await stream.writer.drain()
        except ConnectionError:
            # The server may have refused the request before all of it was sent.
            pass
        return await _read_reply(stream.reader)

    def _failure(self, error: BaseException) -> ConnectionFailedError:
        # Before Python 3.11 that of asyncio is a class of its own.
        if isinstance(error, asyncio.TimeoutError):
            error = TimeoutError()
        return connection_failure(error, self._address, self._timeout)


class _Stream(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def _read_reply(reader: asyncio.StreamReader) -> tuple[Reply, bool]:
    """A reply, and whether the connection goes on after it."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        status_line, _, rest = head.partition(b"\r\n")
        version, status = status_line.decode("latin-1").split(None, 2)[:2]
        if not version.startswith("HTTP/1."):
            raise http.client.BadStatusLine(status_line.decode("latin-1"))
        # An interim answer comes before the one that counts.
        if int(status) >= 200:
            break
    parsed = http.client.parse_headers(io.BytesIO(rest))
    headers = {name.lower(): value for name, value in parsed.items()}
    goes_on = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if int(status) in (204, 304):
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body, goes_on = await reader.read(), False
    return Reply(int(status), headers, body), goes_on


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size == 0:
            break
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return b"".join(pieces)
