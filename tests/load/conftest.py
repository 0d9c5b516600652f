"""Fixtures of `annulus import` and `annulus export`: a server, a session, and the programs."""

import pathlib
import sys

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))

from conftest_server import server  # noqa: E402, F401
from loading import Loader  # noqa: E402
from secured import secured, way  # noqa: E402, F401


@pytest.fixture(scope="session")
def session(server):  # noqa: F811
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
    cluster = Cluster(
        [server.host],
        port=server.cql_port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=30,
        control_connection_timeout=30,
    )
    yield cluster.connect()
    cluster.shutdown()


@pytest.fixture
def loader(server, session, tmp_path, request):  # noqa: F811
    """The programs, which run in a folder of the test, and a keyspace of its name that is dropped."""
    keyspace = request.node.name.split("[")[0].removeprefix("test_")[:40]
    yield Loader(server, session, tmp_path, keyspace)
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
