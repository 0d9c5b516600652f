"""Tests one program beside a node of Cassandra: `annulus gateway --with-store` is gateway and index
service in one process."""

from clients import client_of_all, client_of_one
from gateways import NETWORK
from ring import free_port
from server import eventually
from stores import GatewayWithStore

# No other test has a gateway on this address.
HOST = f"{NETWORK}.9"


def nearest(session, k):
    """The keys of the rows nearest to the direction of the x axis."""
    return [row.k for row in session.execute(f"SELECT k FROM solo.points ORDER BY v ANN OF [1, 0] LIMIT {k}")]


def test_an_index_is_made_searched_and_kept_by_one_process(ring, tmp_path):
    node = ring.hosts[0], ring.port
    # Other gateways of the same cluster do not know the keyspace of its definitions, so it need not
    # wait for them.
    settings = ["--index-keyspace", "solo_indexes"]
    gateway = GatewayWithStore((HOST, free_port(HOST)), free_port(HOST), node, tmp_path, settings)

    with gateway:
        # The table is made directly on the ring: through a gateway that names one node, a driver
        # can't wait until the other nodes know the table.
        with client_of_all([(host, ring.port) for host in ring.hosts]) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE solo WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}")
            session.execute("CREATE TABLE solo.points (k int PRIMARY KEY, v vector<float, 2>)")
        with client_of_one(gateway.address) as cluster:
            session = cluster.connect()
            session.execute("INSERT INTO solo.points (k, v) VALUES (1, [0.9, 0.1])")
            session.execute("INSERT INTO solo.points (k, v) VALUES (2, [0.1, 0.9])")
            session.execute(
                "CREATE CUSTOM INDEX near ON solo.points (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}"
            )
            eventually(lambda: gateway.serves("solo", "near", 2))
            assert nearest(session, 1) == [1]
            session.execute("INSERT INTO solo.points (k, v) VALUES (3, [1, 0])")
            eventually(lambda: nearest(session, 3) == [3, 1, 2])
        assert gateway.stop() == 0

        gateway.start()
        with client_of_one(gateway.address) as cluster:
            session = cluster.connect()
            eventually(lambda: gateway.serves("solo", "near", 3))
            assert nearest(session, 3) == [3, 1, 2]
            # The index came back from its snapshot and the log.
            assert gateway.metric("index_scans_total") == 0
            session.execute("DELETE FROM solo.points WHERE k = 3")
            eventually(lambda: gateway.serves("solo", "near", 2))
            assert nearest(session, 3) == [1, 2]
        assert gateway.stop() == 0
