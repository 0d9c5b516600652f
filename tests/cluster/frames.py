"""A client like that of tests/compat, on a socket of its own, which keeps the bytes of every
response."""

import socket
import struct

from cassandra.connection import locally_supported_compressions
from cassandra.protocol import ErrorMessage, StartupMessage
from client import ANSWER_SECONDS, PROTOCOL, Client, Handler

HEADER = struct.Struct(">BBhBi")  # version, flags, stream, opcode, length of the body
OPCODE_AT = 4
STREAM = 7

COMPRESSED, TRACED, WITH_PAYLOAD, WITH_WARNINGS = 0x01, 0x02, 0x04, 0x08
RESULT = 0x08
ROWS = 2
HAS_MORE_PAGES = 0x0002
TRACE_ID_BYTES = 16


class FrameClient(Client):
    """Sends one request after another on one socket. `frames` holds the responses."""

    def __init__(self, address, compression=None, traced=False):
        self.frames = []
        self._traced = traced
        self._socket = socket.create_connection(address, timeout=ANSWER_SECONDS)
        compress, self._decompress = locally_supported_compressions[compression] if compression else (None, None)
        # STARTUP itself is not compressed, but the answer may be.
        self._compress = None
        options = {"COMPRESSION": compression} if compression else {}
        answer = self._ask(StartupMessage(cqlversion="3.4.7", options=options))
        assert not isinstance(answer, Exception), answer
        self._compress = compress

    def __exit__(self, *_):
        self._socket.close()

    def _ask(self, message, result_metadata=None):
        message.tracing = self._traced
        self._socket.sendall(Handler.encode_message(message, STREAM, PROTOCOL, self._compress, False))
        header = self._exactly(HEADER.size)
        _, flags, _, opcode, length = HEADER.unpack(header)
        body = self._exactly(length)
        self.frames.append(header + body)
        answer = Handler.decode_message(PROTOCOL, {}, STREAM, flags, opcode, body, self._decompress, result_metadata)
        if isinstance(answer, Exception) and not isinstance(answer, ErrorMessage):
            raise answer
        return answer

    def plain(self, frame):
        """A frame with its body uncompressed."""
        header, body = frame[: HEADER.size], frame[HEADER.size :]
        return header + self._decompress(body) if header[1] & COMPRESSED else frame

    def _exactly(self, count):
        received = bytearray()
        while len(received) < count:
            some = self._socket.recv(count - len(received))
            assert some, f"the connection was closed after {len(self.frames)} answers"
            received += some
        return bytes(received)


def comparable(frame):
    """A plain frame with zeros for the parts that differ between two runs on one node: the id of a
    trace and the paging state.

    Both keep their place and length; every other byte stays."""
    _, flags, _, opcode, _ = HEADER.unpack_from(frame)
    masked = bytearray(frame)
    at = HEADER.size
    if flags & TRACED:
        masked[at : at + TRACE_ID_BYTES] = bytes(TRACE_ID_BYTES)
        at += TRACE_ID_BYTES
    if opcode != RESULT:
        return bytes(masked)
    if flags & WITH_WARNINGS:
        at = _past_strings(frame, at)
    assert not flags & WITH_PAYLOAD, "nothing here asks for a custom payload"
    (kind,) = struct.unpack_from(">i", frame, at)
    if kind == ROWS:
        (rows_flags,) = struct.unpack_from(">i", frame, at + 4)
        at += 12  # kind, flags, number of columns
        if rows_flags & HAS_MORE_PAGES:
            (length,) = struct.unpack_from(">i", frame, at)
            masked[at + 4 : at + 4 + length] = bytes(length)
    return bytes(masked)


def _past_strings(frame, at):
    (count,) = struct.unpack_from(">H", frame, at)
    at += 2
    for _ in range(count):
        (length,) = struct.unpack_from(">H", frame, at)
        at += 2 + length
    return at
