"""Tests CREATE, ALTER and DROP: their effects and their refusals."""

import pytest
from cassandra import AlreadyExists, InvalidRequest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ConfigurationException, SyntaxException
from cassandra.util import Duration

SIMPLE = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (p int, c int, a int, b text, s int STATIC, PRIMARY KEY (p, c))")
    session.execute("INSERT INTO t (p, c, a, b, s) VALUES (1, 1, 5, 'x', 9)")
    return session


def everything(session):
    return [row._asdict() for row in session.execute("SELECT * FROM t")]


def test_added_columns_are_null_until_written(table):
    table.execute("ALTER TABLE t ADD z int")
    table.execute("ALTER TABLE t ADD (y text, x set<int>)")
    assert everything(table) == [{"p": 1, "c": 1, "a": 5, "b": "x", "s": 9, "z": None, "y": None, "x": None}]
    table.execute("UPDATE t SET z = 1, x = {3} WHERE p = 1 AND c = 1")
    assert table.execute("SELECT z, x FROM t").one() == (1, {3})


def test_dropped_columns_are_gone_and_do_not_come_back_when_added_again(table):
    table.execute("ALTER TABLE t DROP b")
    assert everything(table) == [{"p": 1, "c": 1, "a": 5, "s": 9}]
    table.execute("ALTER TABLE t ADD b text")
    assert everything(table) == [{"p": 1, "c": 1, "a": 5, "s": 9, "b": None}]
    table.execute("UPDATE t SET b = 'new' WHERE p = 1 AND c = 1")
    assert everything(table)[0]["b"] == "new"
    table.execute("ALTER TABLE t DROP (a, s)")
    assert everything(table) == [{"p": 1, "c": 1, "b": "new"}]


def test_a_row_of_dropped_values_alone_is_still_a_row_if_inserted(table):
    table.execute("UPDATE t SET a = 1 WHERE p = 2 AND c = 2")
    table.execute("INSERT INTO t (p, c, a) VALUES (3, 3, 1)")
    table.execute("ALTER TABLE t DROP a")
    assert (3, 3) in {(row.p, row.c) for row in table.execute("SELECT p, c FROM t")}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD a int",
        "ALTER TABLE t DROP nothing",
        "ALTER TABLE t DROP p",
        "ALTER TABLE t DROP c",
        "ALTER TABLE nowhere ADD z int",
        "ALTER TABLE t ADD z nonsense",
        "CREATE TABLE u (k int)",
        "CREATE TABLE u (k int, k text, PRIMARY KEY (k))",
        "CREATE TABLE u (k int, PRIMARY KEY (nothing))",
        "CREATE TABLE u (k int PRIMARY KEY, c int, PRIMARY KEY (k, c))",
        "CREATE TABLE u (k int PRIMARY KEY, s int STATIC)",
        "CREATE TABLE u (k int, c int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (k DESC)",
        "CREATE TABLE u (k int PRIMARY KEY, v vector<float, 0>)",
        "CREATE TABLE u (k int PRIMARY KEY, v vector<float, -1>)",
        "CREATE TABLE nokeyspace.u (k int PRIMARY KEY)",
        "DROP TABLE nowhere",
        "DROP INDEX nothing",
        "TRUNCATE nowhere",
        "USE nokeyspace",
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(table, statement):
    before = everything(table)
    with pytest.raises((InvalidRequest, ConfigurationException, SyntaxException)):
        table.execute(statement)
    assert everything(table) == before
    table.execute("CREATE TABLE u (k int PRIMARY KEY)")


def test_if_exists_and_if_not_exists(table):
    table.execute("CREATE TABLE IF NOT EXISTS t (different int PRIMARY KEY)")
    assert len(everything(table)[0]) == 5
    table.execute("DROP TABLE IF EXISTS nowhere")
    table.execute("DROP INDEX IF EXISTS nothing")
    table.execute("DROP KEYSPACE IF EXISTS nokeyspace")
    table.execute(f"CREATE KEYSPACE IF NOT EXISTS {table.keyspace} {SIMPLE}")
    with pytest.raises(AlreadyExists) as error:
        table.execute("CREATE TABLE t (k int PRIMARY KEY)")
    assert (error.value.keyspace, error.value.table) == (table.keyspace, "t")
    with pytest.raises(AlreadyExists) as error:
        table.execute(f"CREATE KEYSPACE {table.keyspace} {SIMPLE}")
    assert error.value.keyspace == table.keyspace and not error.value.table


def test_truncate_empties_and_old_timestamps_can_be_written_again(table):
    table.execute("INSERT INTO t (p, c, a) VALUES (7, 7, 7) USING TIMESTAMP 4611686018427387904")
    table.execute("TRUNCATE t")
    assert everything(table) == []
    table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 1) USING TIMESTAMP 1")
    assert len(everything(table)) == 1
    table.execute("TRUNCATE TABLE t")
    assert everything(table) == []


@pytest.mark.embedded("Cassandra has no USING TIMEOUT")
def test_truncate_has_a_timeout(table):
    table.execute("INSERT INTO t (p, c, a) VALUES (1, 1, 1)")
    with pytest.raises(NoHostAvailable, match="1003.*timed out"):
        table.execute("TRUNCATE t USING TIMEOUT 0s")
    assert len(everything(table)) == 1
    table.execute(table.prepare("TRUNCATE t USING TIMEOUT ?"), [Duration(0, 0, 5_000_000_000)])
    assert everything(table) == []


def test_dropped_tables_do_not_haunt_their_successors(table):
    table.execute("DROP TABLE t")
    with pytest.raises(InvalidRequest, match="t"):
        table.execute("SELECT * FROM t")
    table.execute("CREATE TABLE t (p int, c int, a int, PRIMARY KEY (p, c))")
    assert everything(table) == []


def test_names_keep_their_case_in_quotes_alone(session):
    session.execute('CREATE TABLE "Mixed" (K int PRIMARY KEY, "Value" int, "select" int, "a""b" int)')
    session.execute('INSERT INTO "Mixed" (k, "Value", "select", "a""b") VALUES (1, 2, 3, 4)')
    row = session.execute('SELECT K, "Value", "select", "a""b" AS quoted FROM "Mixed"').one()
    assert tuple(row) == (1, 2, 3, 4)
    for wrong in ['SELECT * FROM Mixed', 'SELECT Value FROM "Mixed"', 'SELECT "K" FROM "Mixed"']:
        with pytest.raises(InvalidRequest):
            session.execute(wrong)


def test_use_changes_the_keyspace_of_the_connection(cluster, table):
    session = cluster.connect()
    with pytest.raises(InvalidRequest, match="(?i)keyspace"):
        session.execute("SELECT * FROM t")
    session.execute(f"USE {table.keyspace}")
    assert len(list(session.execute("SELECT * FROM t"))) == 1
    with pytest.raises(InvalidRequest, match="nokeyspace"):
        session.execute("USE nokeyspace")
    session.shutdown()


def test_a_system_keyspace_cannot_be_changed(session):
    for statement in ["DROP KEYSPACE system", "CREATE TABLE system.mine (k int PRIMARY KEY)", "DROP TABLE system.local"]:
        with pytest.raises(Exception, match="system"):
            session.execute(statement)
    assert session.execute("SELECT key FROM system.local").one().key == "local"


def test_dropping_a_keyspace_drops_its_tables(session):
    name = f"{session.keyspace}_x"
    for _ in range(2):
        session.execute(f"CREATE KEYSPACE {name} {SIMPLE}")
        session.execute(f"CREATE TABLE {name}.t (k int PRIMARY KEY)")
        assert not list(session.execute(f"SELECT * FROM {name}.t"))
        session.execute(f"INSERT INTO {name}.t (k) VALUES (1)")
        session.execute(f"DROP KEYSPACE {name}")
        with pytest.raises(InvalidRequest, match=name):
            session.execute(f"SELECT * FROM {name}.t")


def warnings(session, statement):
    future = session.execute_async(statement)
    future.result()
    return future.warnings or []


@pytest.mark.embedded("Cassandra has none of ScyllaDB's options, and memtables of its own")
def test_options_that_mean_nothing_on_one_node_are_warned_of(session):
    asked = {
        "tablets": "{'min_tablet_count': 8}",
        "tombstone_gc": "{'mode': 'immediate'}",
        "per_partition_rate_limit": "{'max_reads_per_second': 10, 'max_writes_per_second': 100}",
        "extensions": "{'paxos': '0xff'}",
        "memtable": "'trie'",
    }
    created = warnings(
        session,
        "CREATE TABLE t (k int PRIMARY KEY) WITH " + " AND ".join(f"{name} = {text}" for name, text in asked.items()),
    )
    session.execute("CREATE TABLE u (k int PRIMARY KEY)")
    altered = [warnings(session, f"ALTER TABLE u WITH {name} = {text}") for name, text in asked.items()]
    for name, in_create, in_alter in zip(asked, created, altered, strict=True):
        assert in_create.startswith(f"Option '{name}' of table {session.keyspace}.t has no effect: ")
        assert in_alter == [in_create.replace(".t has", ".u has")]
    assert "there is one node" in created[0]
    # They are shown back.
    for table in ["t", "u"]:
        described = session.execute(f"DESCRIBE TABLE {table}").one().create_statement
        for name in asked:
            assert f"{name} = " in described


@pytest.mark.embedded("Cassandra has none of ScyllaDB's options")
def test_options_that_ask_for_nothing_are_not_warned_of(session):
    options = "tablets = {} AND tombstone_gc = {'mode': 'timeout', 'propagation_delay_in_seconds': 3600}"
    options += " AND per_partition_rate_limit = {} AND extensions = {} AND memtable = 'default' AND comment = 'x'"
    assert warnings(session, f"CREATE TABLE t (k int PRIMARY KEY) WITH {options}") == []
    assert warnings(session, f"ALTER TABLE t WITH {options}") == []


@pytest.mark.embedded("Cassandra has none of ScyllaDB's options")
@pytest.mark.parametrize(
    "option, words",
    [
        ("tombstone_gc = {'mode': 'sometimes'}", "sometimes.*timeout, repair, disabled, immediate"),
        ("tombstone_gc = {'delay': 1}", "delay.*propagation_delay_in_seconds"),
        ("tombstone_gc = {'mode': 'repair', 'propagation_delay_in_seconds': 'x'}", "x.*propagation_delay_in_seconds"),
        ("per_partition_rate_limit = {'max_reads_per_minute': 1}", "max_reads_per_minute.*max_reads_per_second"),
        ("per_partition_rate_limit = {'max_reads_per_second': -1}", "-1.*max_reads_per_second"),
    ],
)
def test_keys_and_values_of_scyllas_options_are_checked(session, option, words):
    with pytest.raises(ConfigurationException, match=words):
        session.execute(f"CREATE TABLE t (k int PRIMARY KEY) WITH {option}")
    session.execute("CREATE TABLE t (k int PRIMARY KEY)")
    with pytest.raises(ConfigurationException, match=words):
        session.execute(f"ALTER TABLE t WITH {option}")
