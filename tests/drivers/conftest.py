import itertools

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from server import Server

_names = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    yield server
    assert server.stop() == 0, server.log()


def connect(server, **options):
    """A driver's cluster object for a server."""
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
    return Cluster(
        [server.host],
        port=server.cql_port,
        protocol_version=4,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        **options,
    )


@pytest.fixture(scope="session")
def cluster(server):
    cluster = connect(server)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def session(cluster):
    """A session that uses a fresh keyspace, dropped afterwards."""
    session = cluster.connect()
    keyspace = f"test_{next(_names)}"
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.set_keyspace(keyspace)
    yield session
    session.execute(f"DROP KEYSPACE {keyspace}")
    session.shutdown()
