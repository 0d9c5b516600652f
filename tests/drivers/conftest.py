import itertools
import os

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from conftest_server import server  # noqa: F401

_names = itertools.count()


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "embedded(why): holds for Annulus on its own storage alone; left out where CQL_SERVER is another one"
    )


def pytest_collection_modifyitems(config, items):
    if "CQL_SERVER" not in os.environ:
        return
    left_out = [item for item in items if item.get_closest_marker("embedded")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def connect(server, **options):
    """A driver's cluster object for a server, at the version of the protocol that the driver comes to
    by itself unless the options say another."""
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
    return Cluster(
        [server.host],
        port=server.cql_port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        # The driver's own limits are 5 s and 2 s. It goes on with the schema as it was after the second.
        connect_timeout=30,
        control_connection_timeout=30,
        **options,
    )


@pytest.fixture(scope="session")
def cluster(server):
    cluster = connect(server)
    yield cluster
    cluster.shutdown()


def _session_of_fresh_keyspace(cluster):
    """Yields a session that uses a fresh keyspace, which is dropped afterwards."""
    session = cluster.connect()
    keyspace = f"test_{next(_names)}"
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.set_keyspace(keyspace)
    yield session
    session.execute(f"DROP KEYSPACE {keyspace}")
    session.shutdown()


@pytest.fixture
def session(cluster):
    """A session with a keyspace for one test."""
    yield from _session_of_fresh_keyspace(cluster)


@pytest.fixture(scope="module")
def shared_session(cluster):
    """A session with a keyspace for all tests of a file, which only read the rows that a fixture
    wrote."""
    yield from _session_of_fresh_keyspace(cluster)
