"""Tests the drivers' model of the schema and of the cluster."""

import pytest
from conftest import connect
from server import eventually


@pytest.fixture(scope="module")
def keyspace(shared_session):
    session = shared_session
    session.execute(
        "CREATE TABLE t (p1 int, p2 text, c1 timestamp, c2 int, s set<text> STATIC, a list<int>, "
        "f frozen<map<text, int>>, v vector<float, 3>, PRIMARY KEY ((p1, p2), c1, c2)) "
        "WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC) AND comment = 'it''s' AND default_time_to_live = 60 "
        "AND gc_grace_seconds = 100"
    )
    return session.cluster.metadata.keyspaces[session.keyspace]


def test_a_tables_columns_and_keys(keyspace):
    table = keyspace.tables["t"]
    assert [column.name for column in table.partition_key] == ["p1", "p2"]
    assert [(column.name, column.is_reversed) for column in table.clustering_key] == [("c1", True), ("c2", False)]
    assert list(table.columns)[:4] == ["p1", "p2", "c1", "c2"] and set(table.columns) > {"s", "a", "f", "v"}
    types = {name: column.cql_type for name, column in table.columns.items() if name != "v"}
    assert types == {
        "p1": "int", "p2": "text", "c1": "timestamp", "c2": "int", "s": "set<text>", "a": "list<int>",
        "f": "frozen<map<text, int>>",
    }
    assert [name for name, column in table.columns.items() if column.is_static] == ["s"]


def test_a_tables_options(keyspace):
    options = keyspace.tables["t"].options
    assert (options["comment"], options["default_time_to_live"], options["gc_grace_seconds"]) == ("it's", 60, 100)


def test_a_table_can_be_made_again_from_its_model(cluster, keyspace):
    session = cluster.connect(keyspace.name)
    text = keyspace.tables["t"].export_as_string()
    assert "CLUSTERING ORDER BY (c1 DESC, c2 ASC)" in text
    # The drivers write a vector's type in a form that no server reads.
    session.execute(text.replace(f"{keyspace.name}.t", f"{keyspace.name}.again").replace("VectorType", "vector").replace("org.apache.cassandra.db.marshal.", ""))
    again, table = keyspace.tables["again"], keyspace.tables["t"]
    assert list(again.columns) == list(table.columns)
    assert again.options["comment"] == table.options["comment"]
    session.execute("DROP TABLE again")
    assert "again" not in keyspace.tables


def test_the_columns_of_the_schema_tables(keyspace, shared_session):
    rows = shared_session.execute(
        "SELECT column_name, kind, position, type, clustering_order FROM system_schema.columns "
        "WHERE keyspace_name = %s AND table_name = 't'",
        (keyspace.name,),
    )
    assert {tuple(row) for row in rows} == {
        ("p1", "partition_key", 0, "int", "none"),
        ("p2", "partition_key", 1, "text", "none"),
        ("c1", "clustering", 0, "timestamp", "desc"),
        ("c2", "clustering", 1, "int", "asc"),
        ("s", "static", -1, "set<text>", "none"),
        ("a", "regular", -1, "list<int>", "none"),
        ("f", "regular", -1, "frozen<map<text, int>>", "none"),
        ("v", "regular", -1, "vector<float, 3>", "none"),
    }


def test_replication_is_remembered(cluster, keyspace):
    session = cluster.connect()
    name = f"{keyspace.name}_r"
    session.execute(
        f"CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}} "
        "AND durable_writes = false"
    )
    model = cluster.metadata.keyspaces[name]
    assert model.replication_strategy.name == "NetworkTopologyStrategy" and not model.durable_writes
    assert "'datacenter1': '3'" in model.as_cql_query()
    session.execute(f"ALTER KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 2}}")
    assert "'replication_factor': '2'" in cluster.metadata.keyspaces[name].as_cql_query()
    session.execute(f"DROP KEYSPACE {name}")
    assert name not in cluster.metadata.keyspaces


def test_the_cluster(cluster):
    metadata = cluster.metadata
    assert metadata.cluster_name and metadata.partitioner.endswith("Murmur3Partitioner")
    (host,) = metadata.all_hosts()
    assert host.is_up and host.host_id and host.datacenter and host.rack and host.release_version
    assert metadata.token_map and len(metadata.token_map.ring) >= 1
    assert metadata.get_replicas("system", b"\x00\x00\x00\x01") is not None


def test_changes_reach_the_metadata_of_other_clients(server, session):
    watcher = connect(server, schema_event_refresh_window=0)
    try:
        watcher.connect()
        tables = watcher.metadata.keyspaces[session.keyspace].tables
        assert tables == {}

        def columns(table):
            keyspace = watcher.metadata.keyspaces.get(session.keyspace)
            return keyspace and table in keyspace.tables and set(keyspace.tables[table].columns)

        session.execute("CREATE TABLE t (k int PRIMARY KEY, a int)")
        eventually(lambda: columns("t") == {"k", "a"})
        session.execute("ALTER TABLE t ADD b int")
        eventually(lambda: columns("t") == {"k", "a", "b"})
        session.execute("ALTER TABLE t DROP a")
        eventually(lambda: columns("t") == {"k", "b"})
        session.execute("DROP TABLE t")
        eventually(lambda: columns("t") is False)
        name = f"{session.keyspace}_e"
        session.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        eventually(lambda: name in watcher.metadata.keyspaces)
        session.execute(f"DROP KEYSPACE {name}")
        eventually(lambda: name not in watcher.metadata.keyspaces)
    finally:
        watcher.shutdown()
