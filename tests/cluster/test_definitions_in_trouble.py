"""Vector indexes whose tables and logs come and go in other ways than they should."""

import os
import pathlib
import signal
import threading
import time

import pytest
from definitions import CREATE, another, connect, defined, session, tables  # noqa: F401
from server import eventually

LEASE_SECONDS = 15


def version(session):
    index = defined(session).get("ours")
    return index and dict(index.options)["index_version"]


def states(pid):
    """The state of each thread of a process: T for one that is stopped."""
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

    # One that is defined all the same keeps neither gateways from starting nor other indexes from coming.
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


def test_an_index_whose_log_was_dropped_begins_anew(session):
    session.execute(CREATE.format("ours", "vectors.t"))
    before = version(session)
    session.execute("DROP TABLE vectors.t_scylla_cdc_log")
    eventually(lambda: version(session) not in (None, before), seconds=30)
    assert "t_scylla_cdc_log" in tables(session)
    session.execute("INSERT INTO vectors.t (part, number, v) VALUES (1, 'one', [1, 1])")
    assert session.execute("SELECT number FROM vectors.t_scylla_cdc_log").one().number == "one"


def test_a_gateway_that_slept_passes_no_write_by_what_it_knew(session, another):
    insert = "INSERT INTO vectors.t (part, number, v) VALUES (1, %s, [1, 1])"
    with connect(another) as cluster:
        slept = cluster.connect()
        slept.execute(insert, ("before",))
        os.kill(another.pid, signal.SIGSTOP)
        try:
            # The last of its threads stops a while after the signal.
            eventually(lambda: set(states(another.pid)) == {"T"})
            waking = slept.execute_async(insert, ("waking",))
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
    stop = threading.Event()

    def load():
        busy = [session.execute_async("SELECT * FROM vectors.t") for _ in range(32)]
        while not stop.is_set():
            busy.append(session.execute_async("SELECT * FROM vectors.t"))
            busy.pop(0).result()
        for answer in busy:
            answer.result()

    loading = threading.Thread(target=load)
    loading.start()
    try:
        time.sleep(1)
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
