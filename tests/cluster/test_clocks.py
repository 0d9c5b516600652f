"""Tests that a gateway whose clock is wrong writes no log rows that nobody would read, and tells
so."""

import pytest
from cassandra.cluster import NoHostAvailable
from clients import client_of_one
from definitions import CREATE, make_anew
from gateways import NETWORK, Gateway
from ring import free_port
from server import eventually

# The time until the gateway has compared the clocks again.
SECONDS = 60


class Clock:
    """A gateway's clock, which a test sets."""

    def __init__(self, file):
        self.file = file

    def ahead_by(self, seconds):
        self.file.write_text(f"{seconds}\n")


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path / "offset")


@pytest.fixture
def other(gateway, clock, tmp_path):
    """A gateway with that clock before the same node as the first one. It is not started yet."""
    host = f"{NETWORK}.9"
    settings = ["--test-clock-offset-file", str(clock.file)]
    other = Gateway((host, free_port(host)), gateway.node, [], tmp_path / "other.log", settings=settings)
    yield other
    if other.is_running:
        other.stop()


@pytest.fixture
def session(gateway):
    """A session through the first gateway, with an indexed table and another one."""
    with client_of_one(gateway.address) as cluster:
        session = cluster.connect()
        make_anew(session)
        session.execute("CREATE TABLE vectors.plain (id int PRIMARY KEY)")
        session.execute(CREATE.format("near", "vectors.t"))
        yield session
        session.execute("DROP KEYSPACE vectors")


WRITE = "INSERT INTO vectors.t (part, number, v) VALUES (1, 'a', [1, 2])"


def refusal(session):
    """The reason why a write to the indexed table is refused; None if it is not refused."""
    try:
        session.execute(WRITE)
        return None
    except NoHostAvailable as error:
        # After IsBootstrapping drivers ask the next gateway.
        [reason] = error.errors.values()
        assert "Bootstrapping" in type(reason).__name__ or "bootstrapping" in str(reason), reason
        return str(reason)


def test_a_clock_that_is_behind_has_writes_refused_until_it_is_right(session, clock, other):
    clock.ahead_by(-90)
    other.start()
    with client_of_one(other.address) as cluster:
        through = cluster.connect()
        reason = refusal(through)
        assert reason and "s behind the node's" in reason, reason
        # A write that needs no log row passes, and so does a write through another gateway.
        through.execute("INSERT INTO vectors.plain (id) VALUES (1)")
        assert list(through.execute("SELECT id FROM vectors.plain")) == [(1,)]
        session.execute(WRITE)
        clocks = session.execute("SELECT address, node_clock_ms FROM annulus.gateways")
        behind = {row.address: row.node_clock_ms for row in clocks}["{}:{}".format(*other.address)]
        assert 80_000 < behind < 91_000
        clock.ahead_by(0)
        eventually(lambda: refusal(through) is None, seconds=SECONDS)
    assert "ERROR" in other.log() and "the gateway's clock is" in other.log()


def test_a_clock_that_is_set_while_the_gateway_runs(session, clock, other):
    clock.ahead_by(0)
    other.start()
    with client_of_one(other.address) as cluster:
        through = cluster.connect()
        assert refusal(through) is None
        clock.ahead_by(90)
        eventually(lambda: "s ahead of the node's" in (refusal(through) or ""), seconds=SECONDS)
        clock.ahead_by(0)
        eventually(lambda: refusal(through) is None, seconds=SECONDS)


def test_a_small_difference_is_told_and_refuses_nothing(session, clock, other):
    clock.ahead_by(-3)
    other.start()
    with client_of_one(other.address) as cluster:
        assert refusal(cluster.connect()) is None
    eventually(lambda: "s behind the node's: index services may find writes late" in other.log(), seconds=SECONDS)
