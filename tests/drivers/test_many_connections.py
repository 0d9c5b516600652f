"""A thousand connections with ten requests each in flight, and a client that does not read, stay within the memory
limit."""

import sys

import pytest
import wire
from memory import anonymous_bytes, may_open
from server import Server
from wire import OVERLOADED, QUERY, RESULT, Wire

pytestmark = [
    pytest.mark.embedded("its own memory limit"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

CONNECTIONS, REQUESTS = 1_000, 10
SMALL, LARGE = 2_000, 1 << 20  # bytes of a row
MIB = 1 << 20
LIMIT = 256 * MIB
# A quarter of the limit is for clients, and half of that for CQL.
SHARE = LIMIT // 8
# The allocator keeps free memory beside what is in use, up to a multiple.
KEPT_FREE = 2
SUPERUSER = ("ada", "lovelace")


def blob(number, size):
    return bytes([number]) * size


def prepare(server, login):
    with Wire(server, login=login) as connection:
        for statement in (
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE k.t (id int PRIMARY KEY, b blob)",
            *(f"INSERT INTO k.t (id, b) VALUES ({n}, 0x{blob(n, SMALL).hex()})" for n in range(REQUESTS)),
            f"INSERT INTO k.t (id, b) VALUES ({REQUESTS}, 0x{blob(REQUESTS, LARGE).hex()})",
        ):
            assert connection.query(statement).error is None


@pytest.fixture(params=["open", "login"])
def crowded(request, tmp_path):
    """A server with little memory, and the login that it asks for."""
    if not may_open(CONNECTIONS + 500):
        pytest.skip(f"the system allows fewer than {CONNECTIONS + 500} open files (ulimit -Hn)")
    arguments, login = ["--memory-limit", f"{LIMIT // MIB}MiB"], None
    if request.param == "login":
        (tmp_path / "superuser").write_text("\n".join(SUPERUSER))
        arguments += ["--login", "--superuser-file", tmp_path / "superuser"]
        login = SUPERUSER
    with Server(tmp_path / "data", *arguments) as server:
        prepare(server, login)
        yield server, login


def ask(connection, number, stream):
    text = f"SELECT b FROM k.t WHERE id = {number}"
    body = wire.query(text) if connection.version == 4 else wire.query_v5(text)
    connection.send(QUERY, body, stream)


def is_answered(answer, number, size):
    """Whether an answer has the row. It may be refused for want of memory, and is never another."""
    if answer.opcode == RESULT:
        assert answer.body.endswith(blob(number, size)), "another row"
        return True
    assert answer.error[0] == OVERLOADED, answer.error
    return False


def flood(connections):
    """Sends all requests before an answer is read. Returns the number of those that were not refused."""
    for connection in connections:
        for number in range(REQUESTS):
            ask(connection, number, stream=number)
    answered = 0
    for connection in connections:
        waiting = set(range(REQUESTS))
        while waiting:
            answer = connection.receive()
            waiting.remove(answer.stream)
            answered += is_answered(answer, answer.stream, SMALL)
    return answered


def close(connections):
    for connection in connections:
        connection.socket.close()


def test_a_thousand_connections_with_ten_requests_each(crowded):
    server, login = crowded
    connections = [Wire(server, version=4 + number % 2, login=login) for number in range(CONNECTIONS)]
    most, answered = 0, []
    for _ in range(2):
        answered.append(flood(connections))
        most = max(most, anonymous_bytes(server))
    print(f"{answered} of {CONNECTIONS * REQUESTS} answered, {most / MIB:.1f} MiB in all")
    # Clients get a quarter, and the process itself takes little.
    assert most < LIMIT / 2
    # A part at most was refused, and nothing stays held.
    assert min(answered) > CONNECTIONS * REQUESTS / 2
    assert all(is_answered(one_by_one(connection), 0, SMALL) for connection in connections)
    close(connections)


def one_by_one(connection):
    ask(connection, 0, stream=0)
    return connection.receive()


@pytest.mark.parametrize("version", [4, 5])
def test_a_client_that_does_not_read_pins_little_and_keeps_nobody_waiting(crowded, version):
    server, login = crowded
    slow, other = (Wire(server, version=version, login=login) for _ in range(2))
    before = anonymous_bytes(server)
    requests = 4 * SHARE // LARGE
    for stream in range(requests):
        ask(slow, REQUESTS, stream)
    most = 0
    for _ in range(200):
        assert is_answered(one_by_one(other), 0, SMALL), "the other client is refused"
        most = max(most, anonymous_bytes(server) - before)
    assert most < KEPT_FREE * SHARE
    answers = [slow.receive() for _ in range(requests)]
    assert sorted(answer.stream for answer in answers) == list(range(requests))
    answered = sum(is_answered(answer, REQUESTS, LARGE) for answer in answers)
    print(f"{answered} of {requests} large answers, {most / MIB:.1f} MiB more")
    assert answered > 0
    close([slow, other])
