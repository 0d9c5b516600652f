"""Tests that no query at QUORUM fails when a gateway or a node dies, and that it is used again once
it is back."""

import os
import signal

import pytest
from clients import client_of_all
from load import Load
from server import eventually


def writes_and_reads(session):
    """Returns a step of a load: one write, and one read of the row written."""
    session.execute("DROP KEYSPACE IF EXISTS loaded")
    session.execute("CREATE KEYSPACE loaded WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE loaded.rows (id int PRIMARY KEY, name text)")
    insert = session.prepare("INSERT INTO loaded.rows (id, name) VALUES (?, ?)")
    select = session.prepare("SELECT name FROM loaded.rows WHERE id = ?")
    for statement in (insert, select):
        statement.is_idempotent = True

    def step(number):
        session.execute(insert, (number, str(number)))
        assert session.execute(select, (number,)).one().name == str(number)

    return step


@pytest.fixture
def session(ring, gateways):
    if ring is None or len(gateways) < 3:
        pytest.skip("needs a ring of three nodes of its own: NODES=3")
    with client_of_all([gateway.address for gateway in gateways]) as cluster:
        yield cluster.connect()


def is_up(session, gateway):
    hosts = session.cluster.metadata.all_hosts()
    [host] = [host for host in hosts if host.endpoint.address == gateway.host]
    return host.is_up


def test_a_gateway_is_killed_and_restarted(session, gateways):
    with Load(writes_and_reads(session)) as load:
        load.goes_on()
        gateways[1].kill()
        eventually(lambda: not is_up(session, gateways[1]))
        load.goes_on()
        gateways[1].start()
        eventually(lambda: is_up(session, gateways[1]), seconds=60)
        load.goes_on()


def test_a_node_is_killed_and_restarted(session, gateways, ring):
    with Load(writes_and_reads(session)) as load:
        load.goes_on()
        os.kill(ring.pid(2), signal.SIGKILL)
        eventually(lambda: not is_up(session, gateways[2]), seconds=60)
        load.goes_on()
        ring.up()
        eventually(lambda: is_up(session, gateways[2]), seconds=60)
        load.goes_on()
