"""Whatever was acknowledged while a node stood still is found at once when it goes on."""

import os
import signal
import threading
import time

import pytest
from cassandra import ConsistencyLevel
from clients import client_of_all
from load import Load
from server import eventually
from stores import Store

WRITERS = 4
# Longer than any search for all rows takes, and half of what the reader of the log takes that stays behind.
FOUND_WITHIN_SECONDS = 15
ROUNDS = 3


class Written:
    """Writes to a table with an index, and which of them were acknowledged."""

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
        self.acknowledged = set()

    def write(self, _):
        with self._lock:
            number = self._next
            self._next += 1
        self._session.execute(self._insert, (number, [number, 0]))
        with self._lock:
            self.acknowledged.add(number)

    def missing(self, store):
        """What was acknowledged and is not in the index."""
        found = store.nearest("stopped", "near", [0.0, 0.0], self._next + 1) or {"id": []}
        return self.acknowledged - set(found["id"])


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
            loads = [Load(written.write) for _ in range(WRITERS)]
            for load in loads:
                load.__enter__()
            wanted = len(written.acknowledged) + 200
            eventually(lambda: len(written.acknowledged) >= wanted, seconds=60)
            # The last of them: the store's and the first client's connections begin with the first.
            os.kill(ring.pid(len(gateways) - 1), signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:
                os.kill(ring.pid(len(gateways) - 1), signal.SIGCONT)
            wanted = len(written.acknowledged) + 200
            eventually(lambda: len(written.acknowledged) >= wanted, seconds=60)
            for load in loads:
                load.__exit__()
            eventually(lambda: not written.missing(store), seconds=FOUND_WITHIN_SECONDS)
