"""Makes a keyspace with a table to index, and reads the definitions of its indexes."""

import pytest
from clients import client_of_one
from gateways import NETWORK, Gateway
from ring import free_port

CREATE = "CREATE CUSTOM INDEX {} ON {} (v) USING 'vector_index' WITH OPTIONS = {{'similarity_function': 'euclidean'}}"


def connect(gateway):
    """The driver's cluster object for one gateway only."""
    return client_of_one(gateway.address)


def make_anew(session):
    """Makes the keyspace and its table anew."""
    session.execute("DROP KEYSPACE IF EXISTS vectors")
    session.execute("CREATE KEYSPACE vectors WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE vectors.t (part int, number text, v vector<float, 2>, PRIMARY KEY (part, number))")


@pytest.fixture
def session(gateway):
    with connect(gateway) as cluster:
        session = cluster.connect()
        make_anew(session)
        yield session
        session.execute("DROP KEYSPACE vectors")


@pytest.fixture
def another(gateway, tmp_path):
    """A second gateway before the same node."""
    host = f"{NETWORK}.9"
    another = Gateway((host, free_port(host)), gateway.node, [], tmp_path / "another.log").start()
    yield another
    if another.is_running:
        another.stop()


def defined(session, table="t"):
    rows = session.execute(
        "SELECT * FROM system_schema.indexes WHERE keyspace_name = 'vectors' AND table_name = %s", (table,)
    )
    return {row.index_name: row for row in rows}


def tables(session):
    rows = session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'vectors'")
    return {row.table_name for row in rows}
