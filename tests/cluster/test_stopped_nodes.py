"""Tests that writes acknowledged while a node stood still are found at once when it goes on."""

import os
import signal
import threading
import time
from contextlib import ExitStack

import pytest
from cassandra import ConsistencyLevel
from clients import client_of_all
from load import Load
from server import eventually
from stores import Store

WRITERS = 4
# The time limit, counted from when the node goes on.
FOUND_WITHIN_SECONDS = 2
ROUNDS = 3


class Written:
    """Writes to a table with an index, and remembers which writes were acknowledged."""

    def __init__(self, session, replication_factor):
        session.execute("DROP KEYSPACE IF EXISTS stopped")
        session.execute(
            "CREATE KEYSPACE stopped WITH replication = "
            f"{{'class': 'SimpleStrategy', 'replication_factor': {replication_factor}}}"
        )
        session.execute("CREATE TABLE stopped.t (id int PRIMARY KEY, v vector<float, 2>)")
        session.execute(
            "CREATE CUSTOM INDEX near ON stopped.t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
        )
        self._session, self._lock, self._next = session, threading.Lock(), 0
        self._insert = session.prepare("INSERT INTO stopped.t (id, v) VALUES (?, ?)")
        self._insert.is_idempotent = True
        self._acknowledged = set()

    def write(self, _):
        with self._lock:
            number = self._next
            self._next += 1
        self._session.execute(self._insert, (number, [number, 0]))
        with self._lock:
            self._acknowledged.add(number)

    def acknowledged(self):
        with self._lock:
            return set(self._acknowledged)

    def missing(self, store, acknowledged):
        """The acknowledged keys that are not in the index."""
        found = store.nearest("stopped", "near", [0.0, 0.0], self._next + 1) or {"id": []}
        return acknowledged - set(found["id"])


@pytest.fixture
def session(gateways):
    consistency = ConsistencyLevel.QUORUM if len(gateways) >= 3 else ConsistencyLevel.ONE
    with client_of_all([gateway.address for gateway in gateways], consistency) as cluster:
        session = cluster.connect()
        yield session
        session.execute("DROP KEYSPACE stopped")


@pytest.mark.parametrize("seconds", [0.3, 1, 2, 4])
def test_what_was_acknowledged_is_found_at_once(session, gateways, ring, tmp_path, seconds):
    if ring is None:
        pytest.skip("the nodes are somebody else's")
    written = Written(session, min(len(gateways), 3))
    with Store(gateways, tmp_path) as store:
        eventually(lambda: store.index_status("stopped", "near")["status"] == "SERVING", seconds=120)
        for _ in range(ROUNDS):
            with ExitStack() as loads:
                for _ in range(WRITERS):
                    loads.enter_context(Load(written.write))
                goes_on(written)
                # The last node is stopped, since the store's and the first client's connections
                # begin with the first.
                os.kill(ring.pid(len(gateways) - 1), signal.SIGSTOP)
                try:
                    # The node is away for this long.
                    time.sleep(seconds)
                finally:
                    os.kill(ring.pid(len(gateways) - 1), signal.SIGCONT)
                found(written, store)
                goes_on(written)
            found(written, store)


def goes_on(written):
    wanted = len(written.acknowledged()) + 200
    eventually(lambda: len(written.acknowledged()) >= wanted, seconds=60)


def found(written, store):
    """Waits until everything that is acknowledged by now is found."""
    acknowledged = written.acknowledged()
    began = time.monotonic()
    while missing := written.missing(store, acknowledged):
        waited = time.monotonic() - began
        assert waited < FOUND_WITHIN_SECONDS, f"{len(missing)} of {len(acknowledged)} after {waited:.1f} s"
        time.sleep(0.02)
