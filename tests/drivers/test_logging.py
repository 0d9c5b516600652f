"""Tests the log as syslog with a receiver that goes away, lines about large data, slow statements, and maintenance."""

import json
import re
import socket
import subprocess
import threading

import pytest
from cassandra.cluster import NoHostAvailable
from cassandra.query import BatchStatement
from conftest import connect
from process import BINARY
from server import Server, eventually

REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"

# A record of RFC 5424 with the head of Annulus.
RECORD = re.compile(
    r"^<(?P<priority>\d+)>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ annulus \d+ - - "
    r"\[shard (?P<shard>\d+)\] (?P<module>\S+) - (?P<text>.*)$"
)

pytestmark = pytest.mark.embedded("it starts servers with settings of their own")


class Receiver:
    """A receiver of syslog over TCP, which takes a record a line."""

    def __init__(self, port=0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.records, self.connections = [], []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            with connection.makefile(encoding="utf-8", newline="\n") as lines:
                try:
                    for line in lines:
                        self.records.append(line.removesuffix("\n"))
                except OSError:
                    pass

    def stop(self):
        if self.listener.fileno() < 0:
            return
        # A thread in accept keeps the socket until it is shut down.
        self.listener.shutdown(socket.SHUT_RDWR)
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.listener.close()
        self.thread.join(30)
        for connection in self.connections:
            connection.close()

    def of(self, module):
        """The (priority, text) of the records of a module."""
        found = [RECORD.match(record) for record in list(self.records)]
        return [(int(of["priority"]), of["text"]) for of in found if of and of["module"] == module]


def metric(server, name):
    status, text = server.http("/metrics")
    assert status == 200
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found, f"{name} is no metric"
    return float(found[1])


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture(scope="module")
def logged(tmp_path_factory, receiver):
    """A server that logs to the receiver, for which a statement of a millisecond is slow."""
    settings = ["--log-syslog", f"127.0.0.1:{receiver.port}", "--log-format", "syslog"]
    settings += ["--large-collection-warning-elements", "2", "--large-cell-warning-mib", "1"]
    settings += ["--large-row-warning-mib", "2", "--slow-query-threshold", "1ms"]
    settings += ["--slow-queries-per-second", "1000000"]
    server = Server(tmp_path_factory.mktemp("logged") / "data", *settings).start()
    with connect(server) as cluster:
        cluster.connect().execute(f"CREATE KEYSPACE logged WITH replication = {REPLICATION}")
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="module")
def session(logged):
    with connect(logged) as cluster:
        yield cluster.connect()


def test_lines_on_stderr_and_at_the_receiver_are_records(logged, receiver):
    eventually(lambda: receiver.of("annulus"))
    lines = logged.log().splitlines()
    # The line for people is on stdout.
    records = [line for line in lines if not line.startswith("annulus is ready")]
    assert records and all(RECORD.match(line) for line in records), records
    priorities = {priority for priority, _ in receiver.of("annulus")}
    assert priorities <= {30, 28, 27}, priorities


def test_large_data_has_a_warning_of_its_kind(logged, session, receiver):
    session.execute("CREATE TABLE logged.large (id int PRIMARY KEY, b blob, c blob, l list<int>)")
    insert = session.prepare("INSERT INTO logged.large (id, b, c, l) VALUES (?, ?, ?, ?)")
    mib = b"x" * ((1 << 20) + 1)
    session.execute(insert, (1, mib, mib, [1, 2, 3]))
    session.execute(insert, (2, b"x" * (1 << 20), b"", [1, 2]))
    wanted = [
        "Large cell in logged.large: column b, 1048577 bytes, above 1048576",
        "Large cell in logged.large: column c, 1048577 bytes, above 1048576",
        "Large collection in logged.large: column l, 3 elements, above 2",
    ]
    lines = eventually(lambda: len(receiver.of("large_data")) >= 4 and receiver.of("large_data"))
    assert {priority for priority, _ in lines} == {28}
    texts = sorted(text for _, text in lines)
    assert texts[:3] == wanted and texts[3].startswith("Large row in logged.large: "), texts
    for kind, count in (("cell", 2), ("row", 1), ("collection", 1), ("partition", 0)):
        assert metric(logged, f'annulus_large_data_total{{kind="{kind}"}}') == count


def test_slow_statements_are_shown_without_literals(logged, session, receiver):
    session.execute("CREATE TABLE logged.slow (id int PRIMARY KEY, t text)")
    # It has to wait for the disk, which takes a millisecond sooner or later.
    written = "INSERT INTO logged.slow (id, t) VALUES (1, 'ann@example.com')"

    def is_shown():
        session.execute(written)
        rows = session.execute("SELECT * FROM system_views.slow_queries")
        return [row for row in rows if row.statement == "INSERT INTO logged.slow (id, t) VALUES (?, ?)"]

    row = eventually(is_shown)[0]
    assert row.duration_us >= 1000 and row.client and row.request_id is None
    assert all("ann@example.com" not in text for _, text in receiver.of("slow_query"))
    assert metric(logged, "annulus_slow_queries_total") >= 1
    assert eventually(lambda: receiver.of("slow_query"))[0][0] == 30


def test_a_slow_batch_is_shown_with_its_tables(logged, session):
    session.execute("CREATE TABLE logged.one (id int PRIMARY KEY)")
    session.execute("CREATE TABLE logged.two (id int PRIMARY KEY)")
    batch = BatchStatement()
    for table in ("one", "two", "one"):
        batch.add(f"INSERT INTO logged.{table} (id) VALUES (1)")

    def is_shown():
        session.execute(batch)
        rows = session.execute("SELECT * FROM system_views.slow_queries")
        return any(row.statement == "BEGIN BATCH ON logged.one, logged.two" for row in rows)

    assert eventually(is_shown)


def test_no_query_fails_while_the_receiver_is_away(logged, session, receiver):
    session.execute("CREATE TABLE logged.queries (id int PRIMARY KEY, l list<int>)")
    insert = session.prepare("INSERT INTO logged.queries (id, l) VALUES (?, ?)")
    receiver.stop()
    for number in range(200):
        session.execute(insert, (number, [1, 2, 3]))
    assert metric(logged, "annulus_log_dropped_total") == 0
    back = Receiver(receiver.port)
    try:
        wanted = "Large collection in logged.queries: column l, 3 elements, above 2"
        eventually(lambda: any(text == wanted for _, text in back.of("large_data")))
        eventually(lambda: any("is there again" in text for _, text in back.of("annulus")))
    finally:
        back.stop()
    assert len(list(session.execute("SELECT id FROM logged.queries"))) == 200


def maintenance(server, *words):
    command = [BINARY, "maintenance", *words, "--http", f"http://{server.host}:{server.http_port}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_server_in_maintenance_takes_no_requests(tmp_path):
    server = Server(tmp_path / "data").start()
    with connect(server) as cluster:
        session = cluster.connect()
        assert maintenance(server, "status") == {"maintenance": False, "requests_in_progress": 0}
        assert maintenance(server, "on") == {"maintenance": True, "requests_in_progress": 0}
        assert server.http("/health/ready") == (503, '"MAINTENANCE"')
        assert server.http("/health/live")[0] == 200
        assert metric(server, "annulus_maintenance") == 1
        with pytest.raises(NoHostAvailable, match="maintenance"):
            session.execute("SELECT key FROM system.local")
        assert metric(server, 'annulus_cql_errors_total{error="unavailable",kind="other"}') >= 1
        assert maintenance(server, "off")["maintenance"] is False
        assert server.http("/health/ready")[0] == 200
        assert eventually(lambda: list(session.execute("SELECT key FROM system.local")))
    maintenance(server, "on")
    assert server.stop() == 0, server.log()


def test_tables_are_shown_with_their_sizes(logged, session):
    session.execute("CREATE TABLE logged.sized (id int PRIMARY KEY, v int)")
    session.execute("CREATE INDEX by_v ON logged.sized (v)")
    for number in range(10):
        session.execute(f"INSERT INTO logged.sized (id, v) VALUES ({number}, 1)")
    command = [BINARY, "status", "--tables", "--http", f"http://{logged.host}:{logged.http_port}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    [sized] = [of for of in json.loads(done.stdout)["tables"] if of["table"] == "sized"]
    assert sized["keyspace"] == "logged" and sized["indexes"] == ["by_v"]
    assert sized["rows_estimate"] >= 10 and sized["disk_bytes"] >= 0
