"""Restores into a real Cassandra and through a gateway, and backups of a gateway's own state."""

import json

import pytest
from clients import client_of_one
from commands import Backups, metric, run
from gateways import NETWORK
from places import Directory
from ring import cassandra_ring, free_port
from stores import GatewayWithStore

import data

HOST = f"{NETWORK}.8"


@pytest.fixture(scope="module")
def ring():
    with cassandra_ring(1) as ring:
        yield ring


@pytest.fixture(scope="module")
def gateway(ring, tmp_path_factory):
    node = ring.hosts[0], ring.port
    folder = tmp_path_factory.mktemp("gateway")
    with GatewayWithStore((HOST, free_port(HOST)), free_port(HOST), node, folder) as gateway:
        yield gateway
        if gateway.is_running:
            assert gateway.stop() == 0


def test_rows_are_written_into_cassandra_with_their_times(server, session, ring, directory):
    data.make(session, "plain", indexes=False)
    session.execute("CREATE INDEX events_what ON plain.events (what)")
    expected, before = data.contents(session, "plain"), data.expiries(session, "plain")
    backups = Backups(directory.location("plain"), server=server)
    backups.backup()
    session.execute("DROP KEYSPACE plain")
    backups.restore_by_cql(f"{ring.hosts[0]}:{ring.port}", "--keyspace", "plain")
    with client_of_one((ring.hosts[0], ring.port)) as cluster:
        of_cassandra = cluster.connect()
        assert data.contents(of_cassandra, "plain") == expected
        data.assert_expire_alike(data.expiries(of_cassandra, "plain"), before)
        assert data.of_event(of_cassandra, "plain") == data.expected_answers()[2]
        # Deleted cells have not come back, and a second restore changes nothing, counters and lists neither.
        options = ["--keyspace", "plain", "--schema", "skip"]
        backups.restore_by_cql(f"{ring.hosts[0]}:{ring.port}", *options)
        assert data.contents(of_cassandra, "plain") == expected


def test_rows_and_indexes_go_through_a_gateway(one_backup, gateway, expected):
    one_backup.restore_by_cql("{}:{}".format(*gateway.address), "--keyspace", "shop")
    with client_of_one(gateway.address) as cluster:
        session = cluster.connect()
        assert data.contents(session) == expected
        data.wait_for_answers(session)


def test_the_state_of_a_gateway_is_saved_and_serves_again(gateway, ring, tmp_path):
    with client_of_one(gateway.address) as cluster:
        session = cluster.connect()
        if not data.tables(session, "shop"):
            data.make(session)
        data.wait_for_answers(session)
    directory = Directory(tmp_path / "backups")
    backups = Backups(directory.location("gateway"), server=gateway)
    said = run(*backups.words("backup"), *backups.http())
    assert "nodetool snapshot" in said.stdout + said.stderr and "annulus" in said.stdout + said.stderr
    [point] = backups.points()
    assert point["kind"] == "gateway-state" and backups.verify()[1] == set()
    assert backups.restore_fails() and "--data" in backups.restore_fails()
    backups.restore_to(tmp_path / "again")
    state = json.loads((tmp_path / "again" / "gateway-state.json").read_text())
    assert "items_v" in json.dumps(state)
    assert list((tmp_path / "again" / "indexes").rglob("*"))
    address = gateway.address
    assert gateway.stop() == 0
    # The rows are still in Cassandra: the gateway that takes the restored directory builds nothing.
    again = GatewayWithStore(address, free_port(HOST), gateway.node, tmp_path / "again")
    with again, client_of_one(address) as cluster:
        data.wait_for_answers(cluster.connect())
        assert metric(again, "index_scans_total") == 0
        assert again.stop() == 0
