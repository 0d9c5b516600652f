"""Tests the system tables that drivers and an index service read of a node."""

import re
import uuid

import pytest
from cassandra import InvalidRequest, Unauthorized
from conftest import connect
from server import eventually


@pytest.mark.embedded("it names the address that the client came to")
def test_local(server, session):
    row = session.execute("SELECT * FROM system.local WHERE key = 'local'").one()
    assert row.cluster_name and row.data_center and row.rack and row.release_version
    assert isinstance(row.host_id, uuid.UUID) and isinstance(row.schema_version, uuid.UUID)
    assert row.tokens and all(re.fullmatch(r"-?\d+", token) for token in row.tokens)
    assert row.rpc_address == server.host and row.native_protocol_version == "5"
    assert row.partitioner == "org.apache.cassandra.dht.Murmur3Partitioner"


@pytest.mark.embedded("it is a node alone")
def test_there_are_no_peers(session):
    assert list(session.execute("SELECT * FROM system.peers")) == []
    assert session.execute("SELECT count(*) FROM system.peers").one()[0] == 0


@pytest.mark.embedded("Cassandra's schema has one version for all")
def test_the_schema_version_and_history_change_with_every_change_and_not_without(session):
    def versions():
        history = session.prepare(
            "SELECT state_id FROM system.group0_history WHERE key = 'history' ORDER BY state_id DESC LIMIT 1"
        )
        return (
            session.execute(history).one().state_id,
            session.execute("SELECT schema_version FROM system.local").one().schema_version,
        )

    seen = [versions()]
    assert seen[0][0].version == 1
    for change in [
        "CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)",
        "ALTER TABLE t ADD n int",
        "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
        "DROP INDEX i",
        "TRUNCATE t",
        "DROP TABLE t",
    ]:
        session.execute(change)
        seen.append(versions())
        assert seen[-1][0] != seen[-2][0] and seen[-1][0].time >= seen[-2][0].time, change
        if not change.startswith("TRUNCATE"):
            assert seen[-1][1] != seen[-2][1], change
    session.execute("SELECT * FROM system.local")
    session.execute("DROP TABLE IF EXISTS nothing")
    assert versions() == seen[-1]


def test_indexes_are_found_as_an_index_service_looks_for_them(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 3>)")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index' WITH OPTIONS = {'quantization': 'f32'}")
    discovery = session.prepare(
        "SELECT keyspace_name, index_name, table_name, options FROM system_schema.indexes WHERE kind = 'CUSTOM' ALLOW FILTERING"
    )
    (row,) = [row for row in session.execute(discovery) if row.keyspace_name == session.keyspace]
    assert (row.index_name, row.table_name) == ("i", "t")
    assert row.options["class_name"] == "vector_index" and row.options["target"] == "v"
    column = session.prepare(
        "SELECT type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ? AND column_name = ?"
    )
    assert session.execute(column, (session.keyspace, "t", "v")).one().type == "vector<float, 3>"


@pytest.mark.embedded("a gateway translates BYPASS CACHE, and no USING TIMEOUT")
def test_the_scan_and_the_reread_of_an_index_service(session):
    """Runs the statements that an index service prepares, and checks their rows."""
    session.execute('CREATE TABLE "T" ("Pk" int, c text, v vector<float, 2>, PRIMARY KEY ("Pk", c))')
    session.execute('INSERT INTO "T" ("Pk", c, v) VALUES (1, \'a\', [1, 2]) USING TIMESTAMP 10')
    session.execute('INSERT INTO "T" ("Pk", c, v) VALUES (1, \'b\', [3, 4]) USING TIMESTAMP 20 AND TTL 1000')
    session.execute('INSERT INTO "T" ("Pk", c) VALUES (2, \'c\')')
    scan = session.prepare(
        'SELECT "Pk", "c", "v", WRITETIME("v"), TTL("v") FROM "T" WHERE token("Pk") >= ? AND token("Pk") <= ? BYPASS CACHE'
    )
    rows = list(session.execute(scan, (-(2**63) + 1, 2**63 - 1)))
    assert sorted((row[0], row[1], row[2] and list(row[2]), row[3]) for row in rows) == [
        (1, "a", [1, 2], 10),
        (1, "b", [3, 4], 20),
        (2, "c", None, None),
    ]
    reread = session.prepare('SELECT "v", WRITETIME("v") FROM "T" WHERE "Pk" = ? AND "c" = ? USING TIMEOUT 10s')
    assert session.execute(reread, (1, "b")).one()[1] == 20


@pytest.fixture(params=[True, False], ids=["tablets", "vnodes"])
def log(request, cluster, session):
    """(keyspace, whether it has tablets), with a table `t` that has a log."""
    name = f"{session.keyspace}_cdc"
    session.execute(
        f"CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} "
        f"AND tablets = {{'enabled': {str(request.param).lower()}}}"
    )
    session.execute(f"CREATE TABLE {name}.t (p int, c int, v text, s set<int>, PRIMARY KEY (p, c)) WITH cdc = {{'enabled': true}}")
    yield name, request.param
    session.execute(f"DROP KEYSPACE {name}")


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_where_the_streams_of_a_log_are_listed(session, log):
    keyspace, tablets = log
    mode = session.execute(
        "SELECT initial_tablets FROM system_schema.scylla_keyspaces WHERE keyspace_name = %s", (keyspace,)
    ).one()
    assert (mode is not None and mode.initial_tablets is not None) == tablets
    if tablets:
        times = list(session.execute(
            "SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = %s AND table_name = 't'", (keyspace,)
        ))  # fmt: skip
        streams = [row.stream_id for row in session.execute(
            "SELECT stream_id FROM system.cdc_streams WHERE keyspace_name = %s AND table_name = 't' AND timestamp = %s AND stream_state = 0",
            (keyspace, times[0].timestamp),
        )]  # fmt: skip
    else:
        times = list(session.execute("SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'"))
        rows = session.execute("SELECT streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time = %s", (times[0].time,))
        streams = [stream for row in rows for stream in row.streams]
    assert times and streams
    assert all(len(stream) == 16 and stream[-1] & 0x0F == 1 for stream in streams)
    tokens = sorted(int.from_bytes(stream[:8], "big", signed=True) for stream in streams)
    assert len(set(tokens)) >= 1
    # The streams lie in ranges that together are the ring, and log rows are found in them alone.
    for p in range(50):
        session.execute(f"INSERT INTO {keyspace}.t (p, c) VALUES (%s, 0)", (p,))
    used = {row[0] for row in session.execute(f'SELECT DISTINCT "cdc$stream_id" FROM {keyspace}.t_scylla_cdc_log')}
    assert used <= set(streams)
    # In each range a log row's stream is the first one whose token is not below the row's.
    for row in session.execute(f'SELECT "cdc$stream_id" AS stream, p FROM {keyspace}.t_scylla_cdc_log'):
        token = session.execute(f"SELECT token(p) AS t FROM {keyspace}.t WHERE p = %s LIMIT 1", (row.p,)).one().t
        ends = [end for end in tokens if end >= token] or tokens
        assert int.from_bytes(row.stream[:8], "big", signed=True) == ends[0]


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_the_columns_of_a_log(session, log):
    keyspace, _ = log
    rows = session.execute(
        "SELECT column_name, kind, position, type FROM system_schema.columns "
        "WHERE keyspace_name = %s AND table_name = 't_scylla_cdc_log'",
        (keyspace,),
    )
    assert {tuple(row) for row in rows} == {
        ("cdc$stream_id", "partition_key", 0, "blob"),
        ("cdc$time", "clustering", 0, "timeuuid"),
        ("cdc$batch_seq_no", "clustering", 1, "int"),
        ("cdc$operation", "regular", -1, "tinyint"),
        ("cdc$ttl", "regular", -1, "bigint"),
        ("cdc$end_of_batch", "regular", -1, "boolean"),
        ("p", "regular", -1, "int"),
        ("c", "regular", -1, "int"),
        ("v", "regular", -1, "text"),
        ("cdc$deleted_v", "regular", -1, "boolean"),
        ("s", "regular", -1, "frozen<set<int>>"),
        ("cdc$deleted_s", "regular", -1, "boolean"),
        ("cdc$deleted_elements_s", "regular", -1, "frozen<set<int>>"),
    }
    partitioner = "SELECT partitioner FROM system_schema.scylla_tables WHERE keyspace_name = %s AND table_name = %s"
    assert session.execute(partitioner, (keyspace, "t_scylla_cdc_log")).one().partitioner.endswith("CDCPartitioner")
    base = session.execute(partitioner, (keyspace, "t")).one()
    assert base is None or base.partitioner is None


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_a_log_follows_the_tables_columns(session, log):
    keyspace, _ = log

    def columns():
        rows = session.execute(
            "SELECT column_name FROM system_schema.columns WHERE keyspace_name = %s AND table_name = 't_scylla_cdc_log'",
            (keyspace,),
        )
        return {row.column_name for row in rows if not row.column_name.startswith("cdc$")}

    session.execute(f"ALTER TABLE {keyspace}.t ADD n int")
    assert columns() == {"p", "c", "v", "s", "n"}
    session.execute(f"ALTER TABLE {keyspace}.t DROP v")
    assert columns() == {"p", "c", "s", "n"}
    session.execute(f"ALTER TABLE {keyspace}.t WITH cdc = {{'enabled': false}}")
    session.execute(f"INSERT INTO {keyspace}.t (p, c) VALUES (1, 1)")
    session.execute(f"ALTER TABLE {keyspace}.t WITH cdc = {{'enabled': true}}")
    session.execute(f"INSERT INTO {keyspace}.t (p, c) VALUES (2, 2)")
    assert [row.p for row in session.execute(f"SELECT p FROM {keyspace}.t_scylla_cdc_log")] in ([2], [1, 2])


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_the_rows_of_a_log_live_as_long_as_its_ttl(session, log):
    keyspace, _ = log
    session.execute(f"INSERT INTO {keyspace}.t (p, c) VALUES (1, 1)")
    left = session.execute(f'SELECT ttl("cdc$operation") AS t FROM {keyspace}.t_scylla_cdc_log').one().t
    assert 86_000 < left <= 86_400
    session.execute(f"ALTER TABLE {keyspace}.t WITH cdc = {{'enabled': true, 'ttl': 100}}")
    session.execute(f"INSERT INTO {keyspace}.t (p, c) VALUES (2, 2)")
    rows = session.execute(f'SELECT p, ttl("cdc$operation") AS t FROM {keyspace}.t_scylla_cdc_log')
    assert {row.p: row.t <= 100 for row in rows} == {1: False, 2: True}


@pytest.mark.embedded("a gateway's log has the columns of the key alone")
def test_the_log_of_an_index_holds_keys_alone_and_goes_with_it(session):
    session.execute("CREATE TABLE t (p int, c int, x text, v vector<float, 2>, PRIMARY KEY (p, c))")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    session.execute("INSERT INTO t (p, c, x, v) VALUES (1, 2, 'x', [1, 2])")
    (row,) = session.execute("SELECT * FROM t_scylla_cdc_log")
    assert (row.p, row.c, row.x, row.v) == (1, 2, None, None)
    option = session.execute(
        "SELECT extensions FROM system_schema.tables WHERE keyspace_name = %s AND table_name = 't'", (session.keyspace,)
    ).one()
    assert not option.extensions
    session.execute("DROP INDEX i")
    with pytest.raises(InvalidRequest, match="t_scylla_cdc_log"):
        session.execute("SELECT * FROM t_scylla_cdc_log")


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_a_log_cannot_be_dropped_by_hand(session, log):
    keyspace, _ = log
    with pytest.raises(Unauthorized, match="(?i)cdc"):
        session.execute(f"DROP TABLE {keyspace}.t_scylla_cdc_log")
    session.execute(f"SELECT * FROM {keyspace}.t_scylla_cdc_log")


@pytest.mark.embedded("its settings are its own")
def test_settings_are_shown_with_their_values(server, session):
    settings = {row.name: row.value for row in session.execute("SELECT * FROM system_views.settings")}
    assert settings["durability"] == "synced" and settings["listen"] == server.host
    row = session.execute("SELECT * FROM system.config WHERE name = 'http-port'").one()
    assert (row.source, row.type, row.value) == ("command line or environment", "integer", "0")


@pytest.mark.embedded("Cassandra sees the gateway's connections, which come from its address")
def test_open_connections_are_shown(server, session):
    with connect(server, protocol_version=4) as cluster:
        other = cluster.connect(session.keyspace)
        other.execute("SELECT key FROM system.local")
        clients = list(session.execute("SELECT * FROM system_views.clients"))
        mine = [client for client in clients if client.keyspace_name == session.keyspace]
        assert len(mine) >= 2 and all(client.address == server.host for client in mine)
        assert all(client.connection_stage == "ready" and client.request_count > 0 for client in mine)
        assert all("Python" in client.driver_name and client.driver_version for client in mine)
        assert all(client.client_options["CQL_VERSION"].startswith("3.") for client in mine)
        assert {client.protocol_version for client in mine} == {4, session.cluster.protocol_version}
        assert not mine[0].ssl_enabled and mine[0].username == "anonymous"
        open_ones = len(clients)
    eventually(lambda: len(list(session.execute("SELECT port FROM system_views.clients"))) < open_ones)


def test_drivers_see_the_virtual_keyspaces(cluster):
    tables = cluster.metadata.keyspaces["system_views"].tables
    assert {"clients", "settings"} <= set(tables) and tables["clients"].virtual
    assert "request_count" in tables["clients"].columns


def test_there_are_no_peers_by_their_ports(session):
    assert list(session.execute("SELECT * FROM system.peers_v2")) == []


@pytest.mark.embedded("an index of a gateway's own is none of Cassandra's")
def test_the_indexes_that_are_built_are_listed(session):
    keyspace = session.keyspace

    def built():
        select = 'SELECT index_name FROM system."IndexInfo" WHERE table_name = %s'
        return {row.index_name for row in session.execute(select, (keyspace,))}

    assert built() == set()
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>, n int, s text)")
    session.execute("INSERT INTO t (k, v, n) VALUES (1, [1, 0], 2)")
    session.execute("CREATE CUSTOM INDEX of_v ON t (v) USING 'vector_index'")
    session.execute("CREATE CUSTOM INDEX of_n ON t (n) USING 'sai'")
    session.execute("CREATE INDEX of_s ON t (s)")
    eventually(lambda: built() == {"of_v", "of_n", "of_s"})
    one = 'SELECT index_name FROM system."IndexInfo" WHERE table_name = %s AND index_name = %s'
    assert session.execute(one, (keyspace, "of_n")).one().index_name == "of_n"
    assert session.execute(one, (keyspace, "of_k")).one() is None
    session.execute("DROP INDEX of_n")
    # The index on vectors is built again without the column.
    eventually(lambda: built() == {"of_v", "of_s"})
    session.execute("DROP TABLE t")
    assert built() == set()


@pytest.mark.embedded("ids of statements are its own")
def test_the_statements_that_are_prepared_are_listed(session):
    keyspace = session.keyspace
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    qualified = session.prepare(f"SELECT v FROM {keyspace}.t WHERE k = ? /* qualified */")
    unqualified = session.prepare("SELECT v FROM t WHERE k = ? /* unqualified */")
    listed = {row.prepared_id: row for row in session.execute("SELECT * FROM system.prepared_statements")}
    for statement, in_use in ((qualified, None), (unqualified, keyspace)):
        row = listed[statement.query_id]
        assert row.query_string == statement.query_string and row.logged_keyspace == in_use
    select = session.prepare("SELECT query_string FROM system.prepared_statements WHERE prepared_id = ?")
    assert session.execute(select, (qualified.query_id,)).one().query_string == qualified.query_string
    assert session.execute(select, (b"none",)).one() is None
    session.prepare("CREATE ROLE IF NOT EXISTS somebody WITH PASSWORD = 'hunter2'")
    texts = [row.query_string for row in session.execute("SELECT query_string FROM system.prepared_statements")]
    assert "CREATE ROLE IF NOT EXISTS somebody WITH PASSWORD = *******" in texts
    assert not any("hunter2" in text for text in texts)
