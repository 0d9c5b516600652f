"""Tests guardrails: warnings and refusals, their words, and where they are seen."""

import json

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ReadFailure
from cassandra.query import BatchStatement, BatchType, SimpleStatement
from conftest import connect
from server import Server, eventually

THRESHOLDS = """
[guardrails]
batch_size_warn_threshold = "1KiB"
batch_size_fail_threshold = "4KiB"
row_size_warn_threshold = 2000
row_size_fail_threshold = 3000
column_value_size_warn_threshold = 100
column_value_size_fail_threshold = "1KiB"
collection_size_warn_threshold = 50
collection_size_fail_threshold = 100
items_per_collection_warn_threshold = 3
items_per_collection_fail_threshold = 5
tombstone_warn_threshold = 10
tombstone_failure_threshold = 50
coordinator_read_size_warn_threshold = 2000
coordinator_read_size_fail_threshold = 9000
page_size_warn_threshold = 6000
page_size_fail_threshold = 7000
partition_keys_in_select_warn_threshold = 3
partition_keys_in_select_fail_threshold = 5
in_select_cartesian_product_warn_threshold = 4
keyspaces_warn_threshold = 2
keyspaces_fail_threshold = 3
tables_warn_threshold = 6
tables_fail_threshold = 9
columns_per_table_warn_threshold = 5
columns_per_table_fail_threshold = 7
secondary_indexes_per_table_warn_threshold = 0
secondary_indexes_per_table_fail_threshold = 1
fields_per_udt_fail_threshold = 2
vector_dimensions_warn_threshold = 8
vector_dimensions_fail_threshold = 16
"""

pytestmark = pytest.mark.embedded("its thresholds are set in its own file")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("guarded")
    (directory / "settings.toml").write_text(THRESHOLDS)
    server = Server(directory / "data", "--config", directory / "settings.toml").start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="module")
def ks(guarded):
    with connect(guarded) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE g WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.set_keyspace("g")
        session.execute("CREATE TABLE t (p int, c int, v text, l list<int>, f frozen<set<int>>, PRIMARY KEY (p, c))")
        yield session


def warnings(session, statement, values=None):
    future = session.execute_async(statement, values)
    future.result()
    return future.warnings or []


def refused(session, statement, error=InvalidRequest):
    with pytest.raises(error) as refusal:
        session.execute(statement)
    return str(refusal.value)


def batch(kind, sizes):
    made = BatchStatement(batch_type=kind, consistency_level=ConsistencyLevel.ONE)
    for partition, size in enumerate(sizes):
        values = (partition, partition, "x" * size)
        made.add(SimpleStatement("INSERT INTO t (p, c, v) VALUES (%s, %s, %s)"), values)
    return made


def test_values(ks):
    insert = "INSERT INTO t (p, c, v) VALUES (1, 1, '{}')"
    assert warnings(ks, insert.format("x" * 100)) == []
    [warning] = warnings(ks, insert.format("x" * 101))
    assert warning == (
        "Guardrail column_value_size violated: Value of column 'v' has size 101, this exceeds the warning threshold of 100."
    )
    assert "has size 1025, this exceeds the failure threshold of 1024." in refused(ks, insert.format("x" * 1025))
    assert warnings(ks, insert.format("x" * 101) + " IF NOT EXISTS") != []


def test_collections(ks):
    [warning] = warnings(ks, "INSERT INTO t (p, c, l) VALUES (1, 1, [1, 2, 3, 4])")
    assert "Detected collection l with 4 items, this exceeds the warning threshold of 3." in warning
    assert "6 items, this exceeds the failure threshold of 5." in refused(
        ks, "INSERT INTO t (p, c, f) VALUES (1, 1, {1, 2, 3, 4, 5, 6})"
    )
    assert warnings(ks, "UPDATE t SET l = l + [1, 2] WHERE p = 1 AND c = 1") == []


def test_the_size_of_a_collection(ks):
    ks.execute("CREATE TABLE sizes (p int PRIMARY KEY, m map<text, text>, f frozen<list<text>>)")
    by_map = "INSERT INTO sizes (p, m) VALUES (1, {{'{}': '{}'}})"
    # A frozen one takes 4 bytes more, and 4 for each element.
    frozen = "INSERT INTO sizes (p, f) VALUES (1, ['', '{}'])"
    for column, fits, too_large in [
        ("m", by_map.format("k" * 20, "v" * 30), by_map.format("k" * 20, "v" * 31)),
        ("f", frozen.format("v" * 38), frozen.format("v" * 39)),
    ]:
        assert warnings(ks, fits) == []
        assert warnings(ks, too_large) == [
            f"Guardrail collection_size violated: Detected collection {column} of size 51, this exceeds the warning threshold of 50."
        ]
    for column, largest, too_large in [
        ("m", by_map.format("k" * 50, "v" * 50), by_map.format("k" * 50, "v" * 51)),
        ("f", frozen.format("v" * 88), frozen.format("v" * 89)),
    ]:
        assert len(warnings(ks, largest)) == 1
        refusal = refused(ks, too_large)
        assert f"Detected collection {column} of size 101, this exceeds the failure threshold of 100." in refusal
    assert [len(value) for value in ks.execute("SELECT m, f FROM sizes").one()] == [1, 2]
    assert ks.execute("SELECT f FROM sizes").one().f == ["", "v" * 88]
    ks.execute("DROP TABLE sizes")


def test_the_size_of_a_row(ks):
    ks.execute("CREATE TABLE sizes (p int, c text, v text, w text, x text, s text STATIC, PRIMARY KEY (p, c))")
    insert = "INSERT INTO sizes (p, c, v, w, x) VALUES (1, 'abc', '{}', '{}', '{}')"

    def of_rows(statement):
        return [warning for warning in warnings(ks, statement) if "row_size" in warning]

    assert of_rows(insert.format("v" * 1000, "w" * 997, "")) == []
    assert of_rows(insert.format("v" * 1000, "w" * 997, "x")) == [
        "Guardrail row_size violated: A row of table g.sizes has size 2001 in one write, this exceeds the warning threshold of 2000."
    ]
    assert len(of_rows(insert.format("v" * 1000, "w" * 1000, "x" * 997))) == 1
    too_large = insert.format("v" * 1000, "w" * 1000, "x" * 998)
    assert "has size 3001 in one write, this exceeds the failure threshold of 3000." in refused(ks, too_large)
    assert len(ks.execute("SELECT x FROM sizes").one().x) == 997
    # Each row of a batch has a size of its own.
    made = BatchStatement(batch_type=BatchType.UNLOGGED)
    for c in "ab":
        made.add(SimpleStatement(f"INSERT INTO sizes (p, c, v) VALUES (1, '{c}', '{'v' * 1000}')"))
    assert of_rows(made) == []
    counted = ks.execute(
        "SELECT * FROM system.large_data WHERE keyspace_name = 'g' AND table_name = 'sizes' AND guardrail = 'row_size'"
    ).one()
    assert (counted.warned, counted.refused, counted.largest) == (2, 1, 3001)
    ks.execute("DROP TABLE sizes")


def test_batches(ks):
    assert warnings(ks, batch(BatchType.LOGGED, [90] * 5)) == []
    [warning] = warnings(ks, batch(BatchType.LOGGED, [92] * 11))
    assert warning == "Batch for [g.t] is of size 1100, exceeding specified threshold of 1024 by 76."
    assert "Batch too large" in refused(ks, batch(BatchType.LOGGED, [92] * 50))
    [warning] = warnings(ks, batch(BatchType.UNLOGGED, [0] * 11))
    assert warning == (
        "Unlogged batch covering 11 partitions detected against table [g.t]. You should use a logged batch for "
        "atomicity, or asynchronous writes for performance."
    )
    assert warnings(ks, batch(BatchType.UNLOGGED, [0] * 10)) == []


def test_tombstones(ks):
    ks.execute("CREATE TABLE dead (p int, c int, v int, PRIMARY KEY (p, c))")
    for c in range(60):
        ks.execute(f"DELETE FROM dead WHERE p = {1 if c < 10 else 2 if c < 30 else 3} AND c = {c}")
    ks.execute("INSERT INTO dead (p, c, v) VALUES (2, 99, 1)")
    assert warnings(ks, "SELECT v FROM dead WHERE p = 1") == []
    [warning] = warnings(ks, "SELECT v FROM dead WHERE p = 2")
    assert warning.startswith("Read 1 live rows and 20 tombstone cells for query SELECT v FROM g.dead WHERE p = 2; token ")
    assert warning.endswith(" (see tombstone_warn_threshold)")
    assert "tombstone_failure_threshold" in refused(ks, "SELECT v FROM dead", ReadFailure)
    with pytest.raises(ReadFailure) as failed:
        ks.execute("SELECT v FROM dead")
    # Version 5 tells the reason of each node's failure, version 4 their number.
    reasons = failed.value.error_code_map
    assert list(reasons.values()) == [1] if reasons is not None else failed.value.failures == 1
    assert ks.execute("SELECT count(*) FROM dead").one()[0] == 1
    # What the deletion of a partition covers is no tombstone.
    for c in range(60):
        ks.execute(f"INSERT INTO dead (p, c, v) VALUES (4, {c}, 1)")
    ks.execute("DELETE FROM dead WHERE p = 4")
    assert warnings(ks, "SELECT v FROM dead WHERE p = 4") == []


def test_tombstones_of_rows_that_are_returned(ks):
    ks.execute("CREATE TABLE half (p int, c int, v int, w int, PRIMARY KEY (p, c))")
    ks.execute("CREATE CUSTOM INDEX ON half (w) USING 'StorageAttachedIndex'")
    for c in range(60):
        ks.execute(f"INSERT INTO half (p, c, v, w) VALUES ({c % 2}, {c}, null, {c})")
    [warning] = warnings(ks, "SELECT w FROM half WHERE p = 1")
    assert warning.startswith("Read 30 live rows and 30 tombstone cells ")
    merged = SimpleStatement("SELECT w FROM half WHERE p IN (0, 1) ORDER BY c", fetch_size=None)
    for read in ("SELECT w FROM half", merged):
        assert "tombstone_failure_threshold" in refused(ks, read, ReadFailure)
    assert warnings(ks, "SELECT w FROM half WHERE w = 5") == []
    for c in range(60):
        ks.execute(f"INSERT INTO half (p, c, v, w) VALUES ({c}, 0, null, 99)")
    assert "tombstone_failure_threshold" in refused(ks, "SELECT p FROM half WHERE w = 99", ReadFailure)


def test_partitions(tmp_path):
    (tmp_path / "settings.toml").write_text(
        """
        partition-walk-interval = "20ms"
        [guardrails]
        partition_rows_warn_threshold = 10
        partition_size_fail_threshold = "4KiB"
        partition_tombstones_warn_threshold = 5
        """
    )
    server = Server(tmp_path / "data", "--config", tmp_path / "settings.toml").start()
    with connect(server) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE g WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.set_keyspace("g")
        session.execute("CREATE TABLE wide (p int, q text, c int, v text, PRIMARY KEY ((p, q), c))")
        for c in range(30):
            session.execute(f"INSERT INTO wide (p, q, c, v) VALUES ({c}, 'few', 0, 'x')")
            if c < 12:
                session.execute(f"INSERT INTO wide (p, q, c, v) VALUES (1, 'it''s', {c}, '{'x' * 500}')")
            if c < 6:
                session.execute(f"DELETE FROM wide WHERE p = 2 AND q = 'dead' AND c = {c}")

        def large():
            rows = session.execute("SELECT * FROM system.large_data WHERE keyspace_name = 'g' AND table_name = 'wide'")
            return {row.guardrail: row for row in rows}

        # A walk may have met the partitions while they were written: the largest values are those of a later one.
        def largest(guardrail):
            row = large().get(guardrail)
            return row.largest if row else 0

        eventually(lambda: largest("partition_rows") == 12)
        eventually(lambda: 6000 < largest("partition_size") < 9000)
        eventually(lambda: largest("partition_tombstones") == 6)
        found = large()
        assert found["partition_rows"].partition_key == "1, 'it''s'"
        assert found["partition_size"].warned > 0 and found["partition_size"].refused == 0
        assert found["partition_tombstones"].partition_key == "2, 'dead'"
        # Nothing is refused.
        session.execute("INSERT INTO wide (p, q, c, v) VALUES (1, 'it''s', 99, 'x')")
    status, tasks = server.http("/api/v1/tasks")
    walks = [task for task in json.loads(tasks) if task["kind"] == "partitions"]
    assert status == 200 and any(walk["state"] == "done" for walk in walks)
    assert server.stop() == 0, server.log()
    lines = [line for line in server.log().splitlines() if "Partition g.wide:1, 'it''s' has" in line]
    [rows] = [line for line in lines if " rows, this exceeds the warning threshold of 10." in line]
    [size] = [line for line in lines if "this exceeds the failure threshold of 4096." in line]
    assert "WARN" in rows and "ERROR" in size


def test_reads(ks):
    ks.execute("CREATE TABLE pages (p int, c int, v text, PRIMARY KEY (p, c))")
    for c in range(100):
        ks.execute(f"INSERT INTO pages (p, c, v) VALUES (1, {c}, '{'x' * 96}')")
    assert warnings(ks, SimpleStatement("SELECT v FROM pages WHERE p = 1", fetch_size=20)) == []
    [warning] = warnings(ks, SimpleStatement("SELECT v FROM pages WHERE p = 1", fetch_size=21))
    assert warning == "Read on table g.pages has exceeded the size warning threshold of 2,000 bytes"
    assert "size failure threshold of 9,000 bytes" in refused(ks, "SELECT v FROM pages WHERE p = 1", ReadFailure)
    [warning] = warnings(ks, SimpleStatement("SELECT v FROM t WHERE p = 9", fetch_size=6001))
    assert "Query for table t with page size 6001 exceeds warning threshold of 6000." in warning
    assert "page size 7001 exceeds fail threshold of 7000." in refused(
        ks, SimpleStatement("SELECT v FROM t WHERE p = 9", fetch_size=7001)
    )


def test_lists_of_keys(ks):
    assert warnings(ks, "SELECT v FROM t WHERE p IN (11, 12, 13)") == []
    [warning] = warnings(ks, "SELECT v FROM t WHERE p IN (11, 12, 13, 14)")
    assert "with number of partition keys 4 exceeds warning threshold of 3." in warning
    assert "number of partition keys 6 exceeds fail threshold of 5." in refused(
        ks, "SELECT v FROM t WHERE p IN (11, 12, 13, 14, 15, 16)"
    )
    [warning] = warnings(ks, "SELECT v FROM t WHERE p = 11 AND c IN (1, 2, 3, 4, 5)")
    assert "IN restrictions on clustering key produces 5 values, this exceeds warning threshold of 4." in warning


def test_the_schema(ks):
    [warning] = warnings(ks, "CREATE TABLE wide (a int PRIMARY KEY, b int, c int, d int, e int, f int)")
    assert "The table wide has 6 columns, this exceeds the warning threshold of 5." in warning
    assert "Tables cannot have more than 7 columns, but 8 provided for table wide" in refused(ks, "ALTER TABLE wide ADD (g int, h int)")
    assert warnings(ks, "ALTER TABLE wide DROP f") == []
    [warning] = warnings(ks, "CREATE INDEX by_b ON wide (b)")
    assert "Creating secondary index by_b, current number of indexes 1 exceeds warning threshold of 0." in warning
    assert "aborting the creation of secondary index by_c" in refused(ks, "CREATE INDEX by_c ON wide (c)")
    assert "more than 2 columns, but 3 provided for user type u" in refused(ks, "CREATE TYPE u (a int, b int, c int)")
    [warning] = warnings(ks, "CREATE TABLE vectors (p int PRIMARY KEY, v vector<float, 9>)")
    assert "v has a vector of 9 dimensions, this exceeds the warning threshold of 8." in warning
    assert "17 dimensions" in refused(ks, "ALTER TABLE vectors ADD w vector<float, 17>")
    tables = [f"CREATE TABLE more_{n} (p int PRIMARY KEY)" for n in range(9)]
    seen = []
    with pytest.raises(InvalidRequest, match="Cannot have more than 9 tables, aborting the creation of table more_"):
        for table in tables:
            seen += warnings(ks, table)
    assert any("current number of tables 7 exceeds warning threshold of 6." in warning for warning in seen)
    create = "CREATE KEYSPACE g{} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    assert warnings(ks, create.format(2)) == []
    [warning] = warnings(ks, create.format(3))
    assert "Creating keyspace g3, current number of keyspaces 3 exceeds warning threshold of 2." in warning
    assert "Cannot have more than 3 keyspaces, aborting the creation of keyspace g4" in refused(ks, create.format(4))


def test_violations_are_listed_counted_and_logged(guarded, ks):
    refused(ks, f"INSERT INTO t (p, c, v) VALUES (1, 1, '{'x' * 2000}')")
    row = ks.execute(
        "SELECT * FROM system.large_data WHERE keyspace_name = 'g' AND table_name = 't' AND guardrail = 'column_value_size'"
    ).one()
    assert row.column_name == "v" and row.largest >= 2000 and row.refused >= 1
    status, metrics = guarded.http("/metrics")
    assert status == 200
    assert 'guardrail_violations_total{guardrail="column_value_size",outcome="refused"}' in metrics
    lines = [line for line in guarded.log().splitlines() if 'keyspace="g" table="t" column="v"' in line]
    assert any("WARN" in line and 'guardrail="column_value_size"' in line for line in lines)
    settings = ks.execute("SELECT value FROM system_views.settings WHERE name = 'batch_size_fail_threshold'")
    assert settings.one().value == "4096"


def test_names_of_tables_are_as_long_as_in_cassandra(session, server):
    name = "t" * 222
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v vector<float, 2>)")
    session.execute(f"CREATE CUSTOM INDEX long ON {name} (v) USING 'vector_index'")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, [1, 2])")
    server.wait_for_index(session.keyspace, "long", 1)
    assert session.execute(f"SELECT k FROM {name} ORDER BY v ANN OF [1, 2] LIMIT 1").one().k == 1
    session.execute(f"DROP TABLE {name}")
