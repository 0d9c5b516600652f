"""Tests the native protocol: versions, compression, many requests on one connection, bounds."""

import os
import struct
import time

import pytest
import wire
from cassandra.cluster import Cluster
from cassandra.query import BatchStatement
from conftest import connect
from server import Server
from wire import Wire

SERVER_ERROR = pytest.mark.embedded("Cassandra has a server error for it")
BOUNDS = pytest.mark.embedded("bounds of its own")


def test_a_driver_comes_to_version_5_by_itself(server):
    cluster = Cluster([server.host], port=server.cql_port)
    try:
        assert cluster.protocol_version >= 5
        assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"
        assert cluster.protocol_version == 5
    finally:
        cluster.shutdown()


@pytest.mark.parametrize("version", [4, 5])
def test_a_version_that_a_driver_chooses_is_spoken(server, version):
    cluster = Cluster([server.host], port=server.cql_port, protocol_version=version)
    try:
        assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"
        assert cluster.protocol_version == version
    finally:
        cluster.shutdown()


@pytest.mark.parametrize("version", [1, 2, 3, 6, 66])
def test_other_versions_get_the_protocols_own_error(server, version):
    with Wire(server, start=False) as connection:
        answer = connection.ask(wire.OPTIONS, version=version, stream=7)
        code, message = answer.error
        # As in Cassandra: a later version is answered in the latest that is spoken.
        assert (answer.version, code) == (0x85 if version > 5 else 0x84, wire.PROTOCOL_ERROR)
        # Apache's gocql 2 falls back to another version only if the answer is on stream 0.
        assert answer.stream == 0
        assert "unsupported protocol version" in message and "greatest is 5" in message


def test_options_are_answered_before_startup(server):
    with Wire(server, start=False) as connection:
        answer = connection.ask(wire.OPTIONS)
        assert answer.opcode == wire.SUPPORTED
        for word in [b"CQL_VERSION", b"COMPRESSION", b"lz4", b"snappy", b"4/v4", b"5/v5"]:
            assert word in answer.body


def test_a_statement_before_startup_is_a_protocol_error(server):
    with Wire(server, start=False) as connection:
        assert connection.query("SELECT * FROM system.local").error[0] == wire.PROTOCOL_ERROR


@pytest.mark.parametrize("version", [4, 5])
def test_custom_payloads_are_passed_over(server, version):
    cluster = connect(server, protocol_version=version)
    try:
        session, payload = cluster.connect(), {"key": b"value", "other": b"x" * 10_000}
        select = "SELECT key FROM system.local WHERE key = %s"
        future = session.execute_async(select, ("local",), custom_payload=payload)
        assert future.result().one().key == "local" and not future.custom_payload
        prepared = session.prepare(select.replace("%s", "?"), custom_payload=payload)
        assert session.execute(prepared, ("local",), custom_payload=payload).one().key == "local"
        # A batch without statements is one, too.
        batch = BatchStatement(custom_payload=payload)
        assert list(session.execute(batch)) == []
    finally:
        cluster.shutdown()


@pytest.mark.parametrize(
    "version, compression", [(4, "lz4"), (4, "snappy"), (4, False), (5, "lz4"), (5, False)]
)
def test_compression(server, version, compression):
    cluster = connect(server, protocol_version=version, compression=compression)
    try:
        session = cluster.connect()
        used = cluster.control_connection._connection._compression_type if compression else None
        assert used == (compression or None)
        text = "tell me, o muse, " * 10_000
        row = session.execute("SELECT (text)%s AS t, key FROM system.local", (text,)).one()
        assert row == (text, "local")
        blob = os.urandom(300_000)
        assert session.execute("SELECT (blob)%s AS b FROM system.local", (blob,)).one().b == blob
        # This frame is too short to get smaller.
        assert session.execute("SELECT key FROM system.local").one().key == "local"
    finally:
        cluster.shutdown()


def test_many_requests_at_once_on_one_connection(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    select = session.prepare("SELECT v FROM t WHERE k = ?")
    for future in [session.execute_async(insert, (k, k * k)) for k in range(1_000)]:
        future.result()
    futures = [session.execute_async(select, (k,)) for k in range(1_000)]
    assert [future.result().one().v for future in futures] == [k * k for k in range(1_000)]


def test_every_stream_gets_its_own_answer(server):
    with Wire(server) as connection:
        streams = range(500)
        for stream in streams:
            text = f"SELECT (int){stream} AS n FROM system.local" if stream % 2 else f"NONSENSE {stream}"
            connection.send(wire.QUERY, wire.query(text), stream=stream)
        answers = {answer.stream: answer for answer in (connection.receive() for _ in streams)}
        assert sorted(answers) == list(streams)
        for stream, answer in answers.items():
            if stream % 2:
                assert answer.kind == wire.ROWS and answer.body.endswith(wire.value(struct.pack(">i", stream)))
            else:
                assert answer.error[0] == wire.SYNTAX_ERROR


def test_skip_metadata_leaves_the_column_names_out(server):
    with Wire(server) as connection:
        statement = "SELECT key AS some_alias FROM system.local"
        assert b"some_alias" in connection.query(statement).body
        assert b"some_alias" not in connection.query(statement, flags=wire.SKIP_METADATA).body


def test_values_by_name(server):
    with Wire(server) as connection:
        statement = "SELECT key FROM system.local WHERE key = :wanted"
        for name, error in [("wanted", None), ("other", wire.INVALID)]:
            values = struct.pack(">H", 1) + wire.string(name) + wire.value(b"local")
            answer = connection.query(statement, flags=wire.VALUES | wire.NAMES, rest=values)
            assert (answer.error and answer.error[0]) == error


def test_the_wrong_number_of_values_is_invalid(server):
    with Wire(server) as connection:
        for count in [0, 2]:
            values = struct.pack(">H", count) + wire.value(b"local") * count
            answer = connection.query("SELECT key FROM system.local WHERE key = ?", wire.VALUES, values)
            assert answer.error[0] == wire.INVALID


def test_an_unknown_prepared_statement_is_unprepared_and_named(server):
    with Wire(server) as connection:
        unknown = bytes(range(16))
        answer = connection.ask(wire.EXECUTE, struct.pack(">H", 16) + unknown + struct.pack(">HB", wire.ONE, 0))
        assert answer.error[0] == wire.UNPREPARED
        assert answer.body.endswith(struct.pack(">H", 16) + unknown)


@pytest.mark.parametrize(
    "opcode, body",
    [
        (wire.QUERY, b""),
        (wire.QUERY, struct.pack(">i", 1 << 30) + b"SELECT"),
        pytest.param(wire.QUERY, wire.long_string("SELECT * FROM system.local") + b"\x00\x01\xff", marks=SERVER_ERROR),
        (wire.QUERY, struct.pack(">i", 2) + b"\xff\xfe" + b"\x00\x01\x00"),
        (wire.PREPARE, struct.pack(">i", -5)),
        (wire.EXECUTE, b"\x00"),
        pytest.param(wire.BATCH, b"\x07\xff\xff", marks=SERVER_ERROR),
        (wire.REGISTER, struct.pack(">H", 1) + wire.string("WEATHER_CHANGE")),
        (0x77, b""),
    ],
)
def test_a_malformed_message_is_a_protocol_error_and_harms_nobody(server, opcode, body):
    with Wire(server) as witness, Wire(server) as connection:
        answer = connection.ask(opcode, body, stream=3)
        assert answer.error[0] == wire.PROTOCOL_ERROR
        assert answer.stream == 3
        assert witness.query("SELECT key FROM system.local").kind == wire.ROWS


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_many_messages_share_a_segment_of_version_5(server, compression):
    with Wire(server, version=5, compression=compression) as connection:
        streams = range(200)
        frames = b""
        for stream in streams:
            body = wire.query_v5(f"SELECT (int){stream} AS n FROM system.local")
            frames += wire.HEADER.pack(5, 0, stream, wire.QUERY, len(body)) + body
        connection.socket.sendall(connection.segments(frames))
        answers = {answer.stream: answer for answer in (connection.receive() for _ in streams)}
        assert sorted(answers) == list(streams)
        for stream, answer in answers.items():
            assert answer.version == 0x85
            assert answer.kind == wire.ROWS and answer.body.endswith(wire.value(struct.pack(">i", stream)))


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_a_long_message_goes_over_several_segments(server, compression):
    text = "a long text, " * 50_000
    with Wire(server, version=5, compression=compression) as connection:
        answer = connection.query(f"SELECT (text)'{text}' AS t FROM system.local")
        assert answer.kind == wire.ROWS and answer.body.endswith(wire.value(text.encode()))


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("at, part", [(1, "header"), (-1, "body")])
def test_a_damaged_segment_is_a_protocol_error_and_ends_the_connection(server, compression, at, part):
    with Wire(server, version=5, compression=compression) as connection:
        body = wire.query_v5("SELECT key FROM system.local")
        frame = wire.HEADER.pack(5, 0, 3, wire.QUERY, len(body)) + body
        segment = bytearray(connection.segments(frame))
        segment[at] ^= 0x04
        connection.socket.sendall(bytes(segment))
        code, message = connection.receive().error
        assert code == wire.PROTOCOL_ERROR
        assert f"invalid, unrecoverable CRC mismatch detected in frame {part}. Read " in message
        assert connection.receive() is None


def test_version_5_has_no_snappy(server):
    with Wire(server, start=False, version=5) as connection:
        options = {"CQL_VERSION": "3.0.0", "COMPRESSION": "snappy"}
        answer = connection.ask(wire.STARTUP, wire.string_map(options))
        assert answer.error == (wire.PROTOCOL_ERROR, "Snappy compression is not supported in protocol V5")


def test_a_request_of_version_5_has_a_keyspace_of_its_own(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY)")
    keyspace = wire.string(session.keyspace)
    select = "SELECT * FROM t"
    with Wire(server, version=5) as connection:
        assert connection.query(select).error[0] == wire.INVALID
        assert connection.query(select, wire.KEYSPACE, keyspace).kind == wire.ROWS
        missing = connection.query(select, wire.KEYSPACE, wire.string("missing"))
        assert missing.error == (wire.INVALID, "Keyspace 'missing' does not exist")
        prepare = wire.long_string(select) + struct.pack(">I", 1) + keyspace
        assert connection.ask(wire.PREPARE, prepare).kind == wire.PREPARED
        assert connection.ask(wire.PREPARE, wire.long_string(select) + bytes(4)).error[0] == wire.INVALID
        # A bit that the version does not define.
        odd = connection.ask(wire.QUERY, wire.query_v5(select, 0x8000))
        assert odd.error and odd.error[0] in (wire.PROTOCOL_ERROR, wire.INVALID)


def test_a_request_of_version_5_tells_its_present(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    with Wire(server, version=5) as connection:

        def at(seconds, statement):
            rest = wire.string(session.keyspace) + struct.pack(">I", seconds)
            return connection.query(statement, wire.KEYSPACE | wire.NOW_IN_SECONDS, rest)

        now = int(time.time())
        assert at(now, "INSERT INTO t (k, v) VALUES (1, 1) USING TTL 1000").kind == wire.VOID
        for later, left in [(0, 1000), (400, 600), (999, 1)]:
            answer = at(now + later, "SELECT ttl(v) FROM t WHERE k = 1")
            assert answer.kind == wire.ROWS and answer.body.endswith(wire.value(struct.pack(">i", left)))
        assert at(now + 1000, "SELECT v FROM t WHERE k = 1").body.endswith(struct.pack(">i", 0))


def test_a_prepared_statement_follows_its_columns(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO t (k, v) VALUES (1, 2)")
    assert session.cluster.protocol_version == 5
    select = session.prepare("SELECT * FROM t")
    assert session.execute(select).one()._fields == ("k", "v")
    before = select.result_metadata_id
    session.execute("ALTER TABLE t ADD a text")
    assert session.execute(select).one()._fields == ("k", "a", "v")
    assert session.execute(select).one() == (1, None, 2)
    again = session.prepare("SELECT * FROM t")
    assert again.query_id == select.query_id and again.result_metadata_id != before


@pytest.fixture(scope="module")
def small_server(tmp_path_factory):
    """A server of narrow bounds."""
    data_dir = tmp_path_factory.mktemp("small") / "data"
    server = Server(data_dir, "--max-frame-mib", "1", "--max-requests", "1").start()
    yield server
    assert server.stop() == 0, server.log()


@BOUNDS
def test_a_frame_above_the_limit_is_refused(small_server):
    with Wire(small_server) as connection:
        half = wire.query("SELECT key FROM system.local" + " " * (1 << 19))
        assert connection.ask(wire.QUERY, half).kind == wire.ROWS
        connection.socket.sendall(wire.HEADER.pack(4, 0, 9, wire.QUERY, (1 << 20) + 1))
        code, message = connection.receive().error
        assert code in (wire.PROTOCOL_ERROR, wire.INVALID) and str(1 << 20) in message


@BOUNDS
def test_requests_beyond_the_bound_are_answered_overloaded(small_server):
    with Wire(small_server) as connection:
        slow = wire.query("SELECT * FROM system_schema.columns")
        for stream in range(200):
            connection.send(wire.QUERY, slow, stream=stream)
        answers = [connection.receive() for _ in range(200)]
        assert sorted(answer.stream for answer in answers) == list(range(200))
        refused = [answer.error[0] for answer in answers if answer.error]
        assert set(refused) == {wire.OVERLOADED} and len(refused) < 200
        assert connection.query("SELECT key FROM system.local").kind == wire.ROWS
