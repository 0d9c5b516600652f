"""Tests vector indexes whose tables and logs come and go in unusual ways."""

import os
import pathlib
import signal
import threading
import time
import uuid

import pytest
from cassandra.query import BatchStatement, BatchType
from definitions import CREATE, another, connect, defined, make_anew, session, tables  # noqa: F401
from server import eventually

LEASE_SECONDS = 15
# Cassandra's truncate_request_timeout.
TRUNCATE_SECONDS = 60


def version(session):
    index = defined(session).get("ours")
    return index and dict(index.options)["index_version"]


def notes(session):
    """The notes of TRUNCATEs in the definitions of the keyspace."""
    rows = session.execute(
        "SELECT truncates FROM annulus.vector_indexes WHERE scope = 'cluster' AND keyspace_name = 'vectors'"
    )
    return {row.truncates for row in rows}


def states(pid):
    """The state of each thread of a process; T is a stopped one."""
    return [stat.read_text().rpartition(")")[2].split()[0] for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]


def test_an_index_without_a_log_is_refused_and_holds_nothing_up(session, another):
    long = "t" * 215
    session.execute(f"CREATE TABLE vectors.{long} (id int PRIMARY KEY, v vector<float, 2>)")
    session.execute('CREATE TABLE vectors.odd ("cdc$ttl" int PRIMARY KEY, v vector<float, 2>)')
    for table, text in [(long, "for its log, which cannot be made"), ("odd", "two columns cdc$ttl")]:
        with pytest.raises(Exception) as raised:
            session.execute(CREATE.format("no", f"vectors.{table}"))
        assert text in str(raised.value)
        assert not defined(session, table)

    # An index that is defined without a log keeps neither gateways from starting nor other indexes
    # from being made.
    row = list(session.execute("SELECT revision FROM annulus.vector_indexes LIMIT 1"))[0]
    [(table_id,)] = session.execute(
        "SELECT id FROM system_schema.tables WHERE keyspace_name = 'vectors' AND table_name = 'odd'"
    )
    session.execute(
        "BEGIN BATCH UPDATE annulus.vector_indexes SET revision = %s WHERE scope = 'cluster' IF revision = %s; "
        "INSERT INTO annulus.vector_indexes (scope, keyspace_name, index_name, table_name, table_id, column_name, "
        "version, state, changed_at) VALUES ('cluster', 'vectors', 'stuck', 'odd', %s, 'v', now(), 'CREATING', %s); "
        "APPLY BATCH",
        (row.revision + 1, row.revision, table_id, row.revision + 1),
    )
    another.stop()
    another.start()
    with connect(another) as cluster:
        assert cluster.connect().execute("SELECT release_version FROM system.local").one()
    result = session.execute_async(CREATE.format("ours", "vectors.t"))
    result.result()
    assert not result.warnings and set(defined(session)) == {"ours"}
    session.execute("DROP INDEX vectors.stuck")


def test_a_table_that_was_made_anew_gets_a_new_index_and_a_new_log(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    before = version(session)
    for statement in (CREATE.format("IF NOT EXISTS ours", "vectors.t"), CREATE.format("other", "vectors.t")):
        session.execute("DROP TABLE vectors.t")
        session.execute("CREATE TABLE vectors.t (id uuid PRIMARY KEY, v vector<float, 2>)")
        session.execute(statement)
        assert len(defined(session)) == 1 and version(session) != before
        session.execute("INSERT INTO vectors.t (id, v) VALUES (uuid(), [1, 1])")
        assert session.execute("SELECT id FROM vectors.t_scylla_cdc_log").one().id


def test_a_table_that_was_made_anew_takes_writes_at_once(session):
    """For half a second gateways take the table for the old one, whose log is gone."""
    text = "INSERT INTO vectors.t (part, number, v) VALUES (1, '{}', [1, 1])"
    kept = session.prepare("INSERT INTO vectors.t (part, number, v) VALUES (1, ?, [1, 1])")
    unlogged = BatchStatement(batch_type=BatchType.UNLOGGED)
    unlogged.add(text.format("batch"))
    unlogged.add(kept, ("prepared in a batch",))
    writes = {
        "text": lambda: session.execute(text.format("text")),
        "condition": lambda: session.execute(f"{text.format('condition')} IF NOT EXISTS"),
        "prepared": lambda: session.execute(kept, ("prepared",)),
        "batch": lambda: session.execute(unlogged),
        "batch as text": lambda: session.execute(f"BEGIN BATCH {text.format('batch as text')}; APPLY BATCH"),
    }
    for name, write in writes.items():
        session.execute(CREATE.format("ours", "vectors.t"))
        # Both statements are prepared and used once.
        write()
        assert session.execute("SELECT number FROM vectors.t_scylla_cdc_log").one(), name
        make_anew(session)
        write()
        rows = {row.number for row in session.execute("SELECT number FROM vectors.t")}
        assert name in rows and rows <= {name, "prepared in a batch"}


def test_an_index_whose_log_was_dropped_begins_anew(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    before = version(session)
    session.execute("DROP TABLE vectors.t_scylla_cdc_log")
    eventually(lambda: version(session) not in (None, before), seconds=30)
    assert "t_scylla_cdc_log" in tables(session)
    session.execute("INSERT INTO vectors.t (part, number, v) VALUES (1, 'one', [1, 1])")
    assert session.execute("SELECT number FROM vectors.t_scylla_cdc_log").one().number == "one"


def test_a_truncate_leaves_no_note(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    session.execute("INSERT INTO vectors.t (part, number, v) VALUES (1, 'one', [1, 1])")
    truncate = session.prepare("TRUNCATE vectors.t")
    for statement in ("TRUNCATE vectors.t", truncate):
        before = version(session)
        session.execute(statement)
        assert notes(session) == {None}
        # The version shown for the index follows at once.
        eventually(lambda: version(session) not in (None, before))
    assert not list(session.execute("SELECT * FROM vectors.t"))


def test_a_truncate_that_its_gateway_did_not_finish_has_the_index_built_anew(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    before = version(session)
    # A gateway that dies during a TRUNCATE leaves this.
    began = time.monotonic()

    def noted():
        row = list(session.execute("SELECT revision FROM annulus.vector_indexes LIMIT 1"))[0]
        result = session.execute(
            "BEGIN BATCH UPDATE annulus.vector_indexes SET revision = %s WHERE scope = 'cluster' IF revision = %s; "
            "UPDATE annulus.vector_indexes SET truncates = truncates + %s "
            "WHERE scope = 'cluster' AND keyspace_name = 'vectors' AND index_name = 'ours'; APPLY BATCH",
            (row.revision + 1, row.revision, {uuid.uuid1()}),
        )
        return result.one().applied

    eventually(noted)
    # The table is about to be truncated, so no index may read it.
    session.execute("ALTER TABLE vectors.t ADD w vector<float, 2>")
    with pytest.raises(Exception) as raised:
        session.execute(CREATE.format("other", "vectors.t").replace("(v)", "(w)"))
    assert "vectors.t is being truncated: try again" in str(raised.value)
    eventually(lambda: version(session) not in (None, before), seconds=2 * TRUNCATE_SECONDS, every=0.5)
    assert time.monotonic() - began > TRUNCATE_SECONDS
    assert notes(session) == {None}
    session.execute(CREATE.format("other", "vectors.t").replace("(v)", "(w)"))


def test_a_gateway_that_slept_passes_no_write_by_what_it_knew(session, another):
    insert = "INSERT INTO vectors.t (part, number, v) VALUES (1, %s, [1, 1])"
    with connect(another) as cluster:
        slept = cluster.connect()
        slept.execute(insert, ("before",))
        os.kill(another.pid, signal.SIGSTOP)
        try:
            # The last of the gateway's threads stops a while after the signal.
            eventually(lambda: set(states(another.pid)) == {"T"})
            waking = slept.execute_async(insert, ("waking",))
            # What the gateway knows holds for so long, so this time has to pass.
            time.sleep(LEASE_SECONDS + 2)
            session.execute(CREATE.format("ours", "vectors.t"))
            assert defined(session)
        finally:
            os.kill(another.pid, signal.SIGCONT)
        try:
            waking.result()
        except Exception:
            pass
        written = {row.number for row in session.execute("SELECT number FROM vectors.t")}
        logged = {row.number for row in session.execute("SELECT number FROM vectors.t_scylla_cdc_log")}
        assert written - {"before"} <= logged


def test_under_load_an_index_comes_and_goes_as_soon(session):
    stop, loaded = threading.Event(), threading.Event()

    def load():
        busy = [session.execute_async("SELECT * FROM vectors.t") for _ in range(32)]
        while not stop.is_set():
            busy.append(session.execute_async("SELECT * FROM vectors.t"))
            busy.pop(0).result()
            loaded.set()
        for answer in busy:
            answer.result()

    loading = threading.Thread(target=load)
    loading.start()
    try:
        assert loaded.wait(60)
        for statement in (CREATE.format("ours", "vectors.t"), "DROP INDEX vectors.ours"):
            result = session.execute_async(statement)
            result.result()
            assert not result.warnings, statement
    finally:
        stop.set()
        loading.join()


def test_an_index_is_dropped_twice_at_once(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    drops = [session.execute_async("DROP INDEX IF EXISTS vectors.ours") for _ in range(2)]
    for drop in drops:
        drop.result()
    assert not defined(session)
