"""Tests that polls of idle logs cost the nodes nothing, and that a write to an idle table is found
at once."""

import time

import pytest
from clients import client_of_one
from definitions import CREATE
from server import eventually
from stores import Store

TABLES = 14
# The longest time until logs are idle. Readers that stay 30 s behind must pass the last write, too.
SECONDS = 240
COUNTED_SECONDS = 10


@pytest.fixture
def session(gateway):
    with client_of_one(gateway.address) as cluster:
        session = cluster.connect()
        session.execute("DROP KEYSPACE IF EXISTS idle")
        session.execute("CREATE KEYSPACE idle WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for number in range(TABLES):
            session.execute(f"CREATE TABLE idle.t{number} (id int PRIMARY KEY, v vector<float, 2>)")
            session.execute(CREATE.format(f"near{number}", f"idle.t{number}"))
        yield session
        session.execute("DROP KEYSPACE idle")


@pytest.fixture
def nodes_sessions(nodes):
    """A session of each node, to read what a node tells of itself."""
    clusters = [client_of_one(node) for node in nodes]
    yield [cluster.connect() for cluster in clusters]
    for cluster in clusters:
        cluster.shutdown()


def reads(nodes_sessions):
    """The number of reads of logs, by the nodes' own count."""
    counted = 0
    for session in nodes_sessions:
        for row in session.execute("SELECT keyspace_name, table_name, count FROM system_views.local_read_latency"):
            if row.keyspace_name == "idle" or row.table_name.startswith("cdc_"):
                counted += row.count
    return counted


def reads_a_second(nodes_sessions):
    before, began = reads(nodes_sessions), time.monotonic()
    time.sleep(COUNTED_SECONDS)
    return (reads(nodes_sessions) - before) / (time.monotonic() - began)


def test_logs_of_idle_tables_are_not_read(session, gateways, nodes_sessions, tmp_path):
    with Store(gateways, tmp_path) as store:
        for number in range(TABLES):
            eventually(lambda: store.index_status("idle", f"near{number}")["status"] == "SERVING", seconds=SECONDS)
        eventually(lambda: reads_a_second(nodes_sessions) < TABLES, seconds=SECONDS)

        # The writes go through another gateway than the one that answered the polls, if there is
        # one.
        for gateway in gateways:
            with client_of_one(gateway.address) as cluster:
                writer = cluster.connect()
                for number in range(TABLES):
                    key = gateways.index(gateway)
                    writer.execute(f"INSERT INTO idle.t{number} (id, v) VALUES ({key}, [1, 2])")
                    # The reader that stays behind would find the row only after half a minute.
                    eventually(lambda: store.serves("idle", f"near{number}", key + 1), seconds=15)
