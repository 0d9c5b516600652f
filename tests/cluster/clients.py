"""Makes clients like those of applications, but with more patience."""

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy, TokenAwarePolicy, WhiteListRoundRobinPolicy


def client_of_all(addresses, consistency=ConsistencyLevel.QUORUM):
    """The driver's cluster object with all servers as contact points. It asks the server beside a
    replica."""
    policy = TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1"))
    return _client(addresses, policy, consistency, reconnection_policy=ConstantReconnectionPolicy(1, None))


def client_of_one(address, consistency=ConsistencyLevel.QUORUM, **options):
    """The driver's cluster object for one server only."""
    return _client([address], WhiteListRoundRobinPolicy([address[0]]), consistency, **options)


def _client(addresses, policy, consistency, **options):
    profile = ExecutionProfile(load_balancing_policy=policy, consistency_level=consistency, request_timeout=60)
    return Cluster(
        [host for host, _ in addresses],
        port=addresses[0][1],
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        **options,
    )
