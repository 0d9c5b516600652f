"""Tests random writes and reads beside a naive model, while the server is killed and stopped (after
Cassandra's Harry).

`make histories SEEDS=1000` runs more of them, and `make histories FIRST_SEED=7 SEEDS=1` repeats
one. With CQL_SERVER=host:port they run beside another server, such as a real Cassandra, to check
the model itself."""

import contextlib
import os

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy
from history import KEYSPACE, History
from server import Elsewhere, Server

FIRST_SEED = int(os.environ.get("FIRST_SEED", 0))
SEEDS = int(os.environ.get("SEEDS", 40))
KILL_AT, STOP_AT = 60, 90


class Sessions:
    """Sessions to a server that is killed and stopped."""

    def __init__(self, server):
        self._server, self._cluster = server, None

    def open(self):
        self.close()
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
        self._cluster = Cluster(
            [self._server.host],
            port=self._server.cql_port,
            protocol_version=4,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=30,
            # Nothing here reads the schema, and a history changes it all the time.
            schema_metadata_enabled=False,
        )
        return self._cluster.connect()

    def close(self):
        if self._cluster is not None:
            self._cluster.shutdown()
            self._cluster = None

    def killed_and_stopped(self, number, session):
        if number not in (KILL_AT, STOP_AT):
            return session
        if number == KILL_AT:
            self._server.kill()
        else:
            assert self._server.stop() == 0, self._server.log()
        self._server.start()
        return self.open()


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        if address := os.environ.get("CQL_SERVER"):
            server = Elsewhere(address)
        else:
            # The kernel has the writes that a killed process acknowledged.
            data = tmp_path_factory.mktemp("histories") / "data"
            server = stack.enter_context(Server(data, "--durability", "buffered"))
        sessions = Sessions(server)
        stack.callback(sessions.close)
        session = sessions.open()
        session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        session.execute(
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        yield sessions


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_rows_are_those_of_the_model(sessions, seed):
    # Every fourth history has a kill and a stop.
    between = sessions.killed_and_stopped if seed % 4 == 0 and "CQL_SERVER" not in os.environ else None
    History(seed, between=between).run(sessions.open())
