"""Tests vector indexes on Cassandra: defined through one gateway, seen through all, built and
followed by an index service."""

import contextlib
import os
import signal
import time

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Cluster
from clients import client_of_one
from definitions import CREATE, another, connect, defined, session, tables  # noqa: F401
from server import eventually
from stores import Store


def test_an_index_is_seen_where_cassandras_own_are(session):
    session.execute("CREATE INDEX theirs ON vectors.t (number)")
    session.execute(CREATE.format("ours", "vectors.t"))

    rows = defined(session)
    assert set(rows) == {"theirs", "ours"}
    assert rows["ours"].kind == "CUSTOM"
    options = dict(rows["ours"].options)
    assert options.pop("index_version")
    assert options == {"class_name": "vector_index", "target": "v", "similarity_function": "euclidean"}

    # The driver's own model of the schema, once it was told of the change.
    metadata = session.cluster.metadata.keyspaces["vectors"].tables["t"]
    assert set(metadata.indexes) == {"theirs", "ours"}

    prepared = session.prepare(
        "SELECT options FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = ? AND index_name = ?"
    )
    [row] = session.execute(prepared, ("vectors", "t", "ours"))
    assert row.options["target"] == "v"
    assert not list(session.execute(prepared, ("vectors", "t", "none")))


def test_describe_tells_of_it(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    statement = (
        "CREATE CUSTOM INDEX ours ON vectors.t(v) USING 'vector_index' "
        "WITH OPTIONS = {'similarity_function': 'euclidean'};"
    )
    for what in ("TABLE vectors.t", "KEYSPACE vectors", "INDEX vectors.ours", "vectors.ours", "SCHEMA"):
        rows = [tuple(row) for row in session.execute(f"DESCRIBE {what}")]
        assert ("vectors", "index", "ours", statement) in rows, what
    with pytest.raises(InvalidRequest):
        session.execute("DESCRIBE INDEX vectors.none")


def test_definitions_that_cannot_be_are_refused(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    for statement, text in [
        (CREATE.format("ours", "vectors.t"), "Index 'ours' already exists"),
        (CREATE.format("", "vectors.t"), "is a duplicate of existing index ours"),
        (CREATE.format("i", "vectors.none"), "Table 'vectors.none' doesn't exist"),
        (CREATE.format("i", "none.none"), "Keyspace 'none' doesn't exist"),
        (CREATE.format("i", "vectors.t").replace("(v)", "(number)"), "columns of vectors of floats"),
        (CREATE.format("i", "vectors.t").replace("euclidean", "far"), "'far'. Supported are case insensitive"),
        (CREATE.format("i", "vectors.t_scylla_cdc_log").replace("(v)", '("cdc$time")'), "is a change log"),
        ("DROP INDEX vectors.none", "doesn't exist"),
    ]:
        with pytest.raises(Exception) as raised:
            session.execute(statement)
        assert text in str(raised.value), statement
    session.execute(CREATE.format("IF NOT EXISTS ours", "vectors.t"))
    session.execute("DROP INDEX IF EXISTS vectors.none")
    assert set(defined(session)) == {"ours"}


def test_a_log_lives_as_long_as_an_index_of_its_table(session):
    session.execute("USE vectors")
    session.execute(CREATE.format("one", "t"))
    session.execute(session.prepare(CREATE.format("two", "t")))
    assert set(defined(session)) == {"one", "two"}
    assert tables(session) == {"t", "t_scylla_cdc_log"}
    session.execute("DROP INDEX one")
    assert set(defined(session)) == {"two"}
    session.execute(session.prepare("DROP INDEX vectors.two"))
    assert not defined(session)
    eventually(lambda: tables(session) == {"t"})
    # A new index of a name that was in use gets a new log.
    session.execute(CREATE.format("one", "t"))
    assert tables(session) == {"t", "t_scylla_cdc_log"}
    session.execute("DROP TABLE t")
    eventually(lambda: not tables(session))
    assert not defined(session)


def test_what_an_index_needs_is_neither_dropped_nor_renamed(session):
    def refusal(statement):
        with pytest.raises(InvalidRequest) as raised:
            session.execute(statement)
        return str(raised.value)

    session.execute("ALTER TABLE vectors.t ADD (w vector<float, 3>, plain int)")
    session.execute(CREATE.format("ours", "vectors.t"))
    session.execute(CREATE.format("other", "vectors.t").replace("(v)", "(w)"))
    session.execute("CREATE INDEX theirs ON vectors.t (plain)")
    # Cassandra refuses in these words.
    for column, index in [("plain", "theirs"), ("v", "ours"), ("w", "other")]:
        text = f"Cannot drop column {column} because it has dependent secondary indexes ({index})"
        assert text in refusal(f"ALTER TABLE vectors.t DROP {column}")
        assert text in refusal(session.prepare(f"ALTER TABLE vectors.t DROP ({column})"))
    assert "Cannot rename non PRIMARY KEY column v" in refusal("ALTER TABLE vectors.t RENAME v TO x")
    text = "Cannot rename column number because it has dependent secondary indexes (other, ours)"
    assert text in refusal("ALTER TABLE vectors.t RENAME number TO n")
    assert set(defined(session)) == {"ours", "other", "theirs"}

    session.execute("DROP INDEX vectors.other")
    session.execute("ALTER TABLE vectors.t DROP w")
    session.execute("DROP INDEX vectors.ours")
    session.execute("ALTER TABLE vectors.t RENAME number TO n")


def test_an_index_goes_with_a_column_that_is_dropped_straight_on_a_node(session, gateway):
    session.execute("ALTER TABLE vectors.t ADD w vector<float, 3>")
    session.execute(CREATE.format("ours", "vectors.t"))
    session.execute(CREATE.format("gone", "vectors.t").replace("(v)", "(w)"))
    host, port = gateway.node
    with Cluster([host], port=port) as cluster:
        cluster.connect().execute("ALTER TABLE vectors.t DROP w", timeout=60)
    eventually(lambda: set(defined(session)) == {"ours"})
    assert tables(session) == {"t", "t_scylla_cdc_log"}


def test_all_gateways_see_an_index_once_it_is_made_and_tell_clients(session, another):
    with connect(another) as cluster:
        other = cluster.connect()
        result = session.execute_async(CREATE.format("ours", "vectors.t"))
        result.result()
        assert not result.warnings
        assert set(defined(other)) == {"ours"}
        eventually(lambda: "ours" in cluster.metadata.keyspaces["vectors"].tables["t"].indexes)
        other.execute("DROP INDEX vectors.ours")
        assert not defined(session)
        eventually(lambda: "ours" not in cluster.metadata.keyspaces["vectors"].tables["t"].indexes)


def test_a_gateway_that_died_holds_an_index_up_no_longer_than_its_lease(session, another):
    another.kill()
    began = time.monotonic()
    result = session.execute_async(CREATE.format("ours", "vectors.t"))
    result.result()
    assert time.monotonic() - began < 12
    [warning] = result.warnings
    assert "not all gateways log the writes of t yet" in warning
    assert not defined(session)
    eventually(lambda: defined(session), seconds=20)


def test_a_gateway_that_stopped_holds_nothing_up(session, another):
    assert another.stop() == 0
    session.execute(CREATE.format("ours", "vectors.t"))
    assert set(defined(session)) == {"ours"}


def test_a_gateway_that_lost_the_cluster_passes_no_writes_until_it_is_back(session, gateway, ring):
    if ring is None or len(ring.hosts) > 1:
        pytest.skip("stops the only node")
    insert = session.prepare("INSERT INTO vectors.t (part, number, v) VALUES (1, 'one', [1, 1])")
    session.execute(insert)
    os.kill(ring.pid(0), signal.SIGSTOP)
    try:
        # The gateway alone gives this refusal, without the node.
        def is_refused():
            try:
                session.execute("INSERT INTO vectors.t (part, number, v) VALUES (1, 'two', [1, 1])", timeout=1)
            except Exception as error:
                return "lost touch with the cluster" in str(error)
            # The threads of the node stop one after the other: one may still have answered.
            return False

        eventually(is_refused, seconds=30)
    finally:
        os.kill(ring.pid(0), signal.SIGCONT)

    def passes():
        try:
            session.execute(insert)
        except Exception:
            return False
        return True

    eventually(passes, seconds=60, every=1)
    session.execute(CREATE.format("ours", "vectors.t"))
    eventually(lambda: defined(session), seconds=30)


def test_a_name_that_cassandra_gives_away_meanwhile_is_no_vector_index(session, gateway, another):
    """Two gateways may be asked for the same name at the same time. Here the node itself stands for
    one of them."""
    session.execute("CREATE TABLE vectors.u (id int PRIMARY KEY, x int)")
    state = "SELECT state FROM annulus.vector_indexes WHERE scope = 'cluster' AND keyspace_name = 'vectors' AND index_name = 'same'"
    with connect(another) as cluster, client_of_one(gateway.node) as direct:
        # The other gateway is stopped, so not all gateways take the definition up before this one
        # goes on.
        os.kill(another.pid, signal.SIGSTOP)
        try:
            creating = session.execute_async(CREATE.format("same", "vectors.t"), timeout=60)
            eventually(lambda: any(row.state == "LOGGING" for row in session.execute(state)), seconds=30)
            direct.connect().execute("CREATE INDEX same ON vectors.u (x)")
        finally:
            os.kill(another.pid, signal.SIGCONT)
        eventually(lambda: not list(session.execute(state)), seconds=60)
        with contextlib.suppress(InvalidRequest):
            creating.result()
        assert not defined(session)
        assert set(defined(session, "u")) == {"same"}
        # Another name is free.
        session.execute(CREATE.format("other", "vectors.t"))
        assert set(defined(cluster.connect())) == {"other"}


def test_an_index_service_finds_builds_and_frees_an_index(session, gateways, tmp_path):
    insert = session.prepare("INSERT INTO vectors.t (part, number, v) VALUES (?, ?, ?)")
    for number in range(50):
        session.execute(insert, (number % 3, f"row {number}", [float(number), 1.0]))
    with Store(gateways, tmp_path) as store:
        session.execute(CREATE.format("ours", "vectors.t"))
        eventually(lambda: store.serves("vectors", "ours", 50), seconds=60)
        keys = store.nearest("vectors", "ours", [17.2, 1.0], 3)
        assert keys == {"part": [2, 0, 1], "number": ["row 17", "row 18", "row 16"]}
        assert "the log reader ended" not in store.log()

        session.execute("DROP INDEX vectors.ours")
        eventually(lambda: store.index_status("vectors", "ours")["status"] == "HTTP 404", seconds=30)
