"""Tests that a driver that connects to one gateway knows all gateways and nothing else, and that
tokens lead to the right one."""

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from server import eventually


@pytest.fixture
def driver(gateway):
    """The driver as an application sets it up: no protocol version given, no schema switched
    off."""
    policy = TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1"))
    profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=60)
    cluster = Cluster([gateway.host], port=gateway.cql_port, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    yield cluster
    cluster.shutdown()


def endpoint(host):
    return host.endpoint.address, host.endpoint.port


def test_the_hosts_are_the_gateways(driver, gateways):
    driver.connect()
    assert driver.protocol_version == 5
    assert sorted(map(endpoint, driver.metadata.all_hosts())) == sorted(gateway.address for gateway in gateways)
    assert {host.datacenter for host in driver.metadata.all_hosts()} == {"datacenter1"}


def test_each_gateway_says_its_own_address_and_those_of_the_others(gateways):
    addresses = {gateway.address for gateway in gateways}
    for gateway in gateways:
        with Cluster([gateway.host], port=gateway.cql_port) as cluster:
            session = cluster.connect()
            for prepared in (False, True):
                select = session.prepare if prepared else str
                # Each gateway that is asked names its own address.
                own = session.execute(select("SELECT rpc_address, rpc_port FROM system.local"), trace=False)
                asked = own.response_future.coordinator_host
                assert own.one() == endpoint(asked)
                peers = session.execute(
                    select("SELECT native_address, native_port FROM system.peers_v2"), host=asked
                )
                assert {tuple(row) for row in peers} == addresses - {endpoint(asked)}
                peers = session.execute(select("SELECT peer, rpc_address FROM system.peers"), host=asked)
                assert {row.rpc_address for row in peers} == {host for host, _ in addresses - {endpoint(asked)}}


def test_statements_go_to_the_gateway_beside_a_replica(driver, gateways):
    session = driver.connect()
    session.execute("DROP KEYSPACE IF EXISTS aware")
    session.execute(
        "CREATE KEYSPACE aware WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"
    )
    session.execute("CREATE TABLE aware.rows (id int PRIMARY KEY, name text)")
    insert = session.prepare("INSERT INTO aware.rows (id, name) VALUES (?, ?)")
    select = session.prepare("SELECT name FROM aware.rows WHERE id = ?")
    asked = set()
    for number in range(60):
        session.execute(insert, (number, str(number)))
        bound = select.bind((number,))
        [replica] = driver.metadata.get_replicas("aware", bound.routing_key)
        result = session.execute(bound)
        assert result.one().name == str(number)
        coordinator = result.response_future.coordinator_host
        assert coordinator == replica
        asked.add(endpoint(coordinator))
    assert asked == {gateway.address for gateway in gateways}
    # The coordinator's own trace names only itself, so the gateway stands before the replica.
    result = session.execute(select, (1,), trace=True)
    nodes = {event.source for event in result.get_query_trace().events}
    before = {gateway.host: gateway.node[0] for gateway in gateways}
    assert nodes == {before[result.response_future.coordinator_host.address]}
    session.execute("DROP KEYSPACE aware")


def test_a_schema_change_made_elsewhere_is_told(driver, gateways):
    driver.connect()
    other = gateways[-1].node
    with Cluster([other[0]], port=other[1], protocol_version=4) as direct:
        session = direct.connect()
        session.execute("DROP KEYSPACE IF EXISTS elsewhere")
        session.execute("CREATE KEYSPACE elsewhere WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        eventually(lambda: "elsewhere" in driver.metadata.keyspaces)
        session.execute("DROP KEYSPACE elsewhere")
        eventually(lambda: "elsewhere" not in driver.metadata.keyspaces)
