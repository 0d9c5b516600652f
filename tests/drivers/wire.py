"""Speaks the native protocol by hand, for messages that no driver sends."""

import io
import socket
import struct

from cassandra.connection import locally_supported_compressions
from cassandra.segment import SegmentCodec

ERROR, STARTUP, READY, OPTIONS, SUPPORTED, QUERY, RESULT = 0x00, 0x01, 0x02, 0x05, 0x06, 0x07, 0x08
AUTHENTICATE, AUTH_RESPONSE, AUTH_SUCCESS = 0x03, 0x0F, 0x10
PREPARE, EXECUTE, REGISTER, EVENT, BATCH = 0x09, 0x0A, 0x0B, 0x0C, 0x0D

PROTOCOL_ERROR, OVERLOADED, SYNTAX_ERROR, INVALID, UNPREPARED = 0x000A, 0x1001, 0x2000, 0x2200, 0x2500

VOID, ROWS, SET_KEYSPACE, PREPARED, SCHEMA_CHANGE = 1, 2, 3, 4, 5

ONE = 1
VALUES, SKIP_METADATA, PAGE_SIZE, NAMES = 0x01, 0x02, 0x04, 0x40
KEYSPACE, NOW_IN_SECONDS = 0x80, 0x100  # v5

HAS_WARNINGS = 0x08  # a flag of an answer

HEADER = struct.Struct(">BBhBi")


def string(text):
    return struct.pack(">H", len(text.encode())) + text.encode()


def long_string(text):
    return struct.pack(">i", len(text.encode())) + text.encode()


def value(content):
    """The bytes of a [value]; None is null."""
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


def string_map(entries):
    return struct.pack(">H", len(entries)) + b"".join(string(k) + string(v) for k, v in entries.items())


def query(statement, flags=0, rest=b"", consistency=ONE):
    return long_string(statement) + struct.pack(">HB", consistency, flags) + rest


def query_v5(statement, flags=0, rest=b"", consistency=ONE):
    return long_string(statement) + struct.pack(">HI", consistency, flags) + rest


def without_warnings(body):
    """The body of an answer after its list of warnings."""
    [count] = struct.unpack_from(">H", body)
    at = 2
    for _ in range(count):
        [length] = struct.unpack_from(">H", body, at)
        at += 2 + length
    return body[at:]


class Answer:
    def __init__(self, version, flags, stream, opcode, body):
        self.version, self.flags, self.stream, self.opcode = version, flags, stream, opcode
        self.body = without_warnings(body) if flags & HAS_WARNINGS else body

    @property
    def error(self):
        """(code, message); None if it is no error."""
        if self.opcode != ERROR:
            return None
        code, length = struct.unpack_from(">iH", self.body)
        return code, self.body[6 : 6 + length].decode()

    @property
    def kind(self):
        """The kind of the RESULT."""
        assert self.opcode == RESULT, self.error
        return struct.unpack_from(">i", self.body)[0]


class Wire:
    """A connection. In v5 its messages come within segments, which the official driver encodes."""

    def __init__(self, server, start=True, version=4, compression=None, login=None, tls=None):
        """`login` is a role and its password, `tls` an SSLContext."""
        self.socket = socket.create_connection((server.host, server.cql_port), timeout=30)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=server.host)
        self.version = version
        self.codec = None
        self.plain = b""  # bytes of segments that are not read yet
        if start:
            options = {"CQL_VERSION": "3.0.0"} | ({"COMPRESSION": compression} if compression else {})
            answer = self.ask(STARTUP, string_map(options))
            assert answer.opcode == (AUTHENTICATE if login else READY), answer.error
            if version > 4:
                self.begin_segments(compression)
            if login:
                token = "\0".join(("", *login)).encode()
                assert self.ask(AUTH_RESPONSE, value(token)).opcode == AUTH_SUCCESS

    def begin_segments(self, compression=None):
        self.codec = SegmentCodec(*(locally_supported_compressions[compression] if compression else ()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, opcode, body=b"", stream=0, version=None):
        frame = HEADER.pack(version or self.version, 0, stream, opcode, len(body)) + body
        self.socket.sendall(self.segments(frame) if self.codec else frame)

    def segments(self, frames):
        segments = io.BytesIO()
        self.codec.encode(segments, frames)
        return segments.getvalue()

    def receive(self):
        """The next answer; None if the server has closed the connection."""
        header = self._exactly(HEADER.size)
        if header is None:
            return None
        version, flags, stream, opcode, length = HEADER.unpack(header)
        return Answer(version, flags, stream, opcode, self._exactly(length))

    def ask(self, opcode, body=b"", stream=0, version=None):
        self.send(opcode, body, stream, version)
        return self.receive()

    def query(self, statement, flags=0, rest=b""):
        return self.ask(QUERY, (query if self.version == 4 else query_v5)(statement, flags, rest))

    def _exactly(self, count):
        if not self.codec:
            return self._received(count)
        while len(self.plain) < count:
            header = self._received(self.codec.header_length_with_crc)
            if header is None:
                assert not self.plain, "closed in the middle of a frame"
                return None
            header = self.codec.decode_header(io.BytesIO(header))
            rest = self._received(header.payload_length + 4)
            self.plain += self.codec.decode(io.BytesIO(rest), header).payload
        taken, self.plain = self.plain[:count], self.plain[count:]
        return taken

    def _received(self, count):
        received = b""
        while len(received) < count:
            try:
                some = self.socket.recv(count - len(received))
            except ConnectionResetError:
                some = b""
            if not some:
                assert not received, "closed in the middle of a frame"
                return None
            received += some
        return received
