"""Clusters of a driver for tests."""

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy


def cluster_of(server, **options):
    """A driver's cluster object for a server; options are those of an execution profile."""
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30, **options)
    profiles = {EXEC_PROFILE_DEFAULT: profile}
    return Cluster([server.host], port=server.cql_port, execution_profiles=profiles)


def make_keyspace(session, name):
    session.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
