"""Tests traces of requests, as a driver and cqlsh read them."""

import pathlib
import re
import subprocess
import sys
import uuid

import pytest
from cassandra import InvalidRequest
from cassandra.query import BatchStatement, SimpleStatement
from server import CQLSH_PATIENCE
from test_ann import table as ann_table  # noqa: F401

CQLSH = pathlib.Path(sys.executable).parent / "cqlsh"


def traced(session, statement, values=None):
    return session.execute(statement, values, trace=True).get_query_trace()


def activities(trace):
    return [event.description for event in trace.events]


@pytest.fixture
def notes(session):
    session.execute("CREATE TABLE notes (p int, c int, v text, PRIMARY KEY (p, c))")
    for c in range(5):
        session.execute("INSERT INTO notes (p, c, v) VALUES (1, %s, 'x')", (c,))
    session.execute("DELETE FROM notes WHERE p = 1 AND c = 2")
    session.execute("DELETE v FROM notes WHERE p = 1 AND c = 3")
    return session


@pytest.mark.embedded("its words are its own")
def test_a_select_tells_what_it_did(server, notes):
    statement = SimpleStatement("SELECT v FROM notes WHERE p = 1", fetch_size=50)
    trace = traced(notes, statement)
    assert trace.request_type == "Execute CQL3 query" and trace.duration.total_seconds() > 0
    assert trace.client == server.host and trace.coordinator == server.host
    assert trace.parameters["query"] == "SELECT v FROM notes WHERE p = 1"
    assert trace.parameters["page_size"] == "50" and trace.parameters["consistency_level"] == "LOCAL_ONE"
    done = activities(trace)
    assert done[0].startswith("Parsing SELECT v") and done[1] == "Preparing statement"
    assert any(text.startswith("Decided: ") and "partitions by key: p = 1" in text for text in done)
    assert "Read 4 live rows and 2 tombstone cells" in done
    elapsed = [event.source_elapsed for event in trace.events]
    assert elapsed == sorted(elapsed) and elapsed[-1] <= trace.duration
    assert all(event.source == server.host and event.thread_name for event in trace.events)


@pytest.mark.embedded("its words are its own")
def test_prepared_statements_and_batches_and_conditions(notes):
    insert = notes.prepare("INSERT INTO notes (p, c, v) VALUES (?, ?, ?)")
    trace = traced(notes, insert, (7, 8, "it's"))
    assert trace.request_type == "Execute CQL3 prepared query"
    assert trace.parameters["query"].startswith("INSERT INTO notes")
    assert trace.parameters["bound_var_0_p"] == "7" and trace.parameters["bound_var_2_v"] == "'it''s'"
    assert "Committing changes to 1 partitions" in activities(trace)

    batch = BatchStatement()
    batch.add(insert, (1, 9, "a"))
    batch.add(insert, (2, 9, "b"))
    trace = traced(notes, batch)
    assert trace.request_type == "Execute batch of CQL3 queries"
    assert "Committing changes to 2 partitions" in activities(trace)

    trace = traced(notes, "INSERT INTO notes (p, c) VALUES (7, 8) IF NOT EXISTS")
    assert "A condition does not hold" in activities(trace)


@pytest.mark.embedded("its words are its own")
def test_a_search_for_neighbours_tells_what_the_index_did(ann_table):  # noqa: F811
    trace = traced(ann_table, "SELECT n FROM t ORDER BY v ANN OF [4.1, 0, 0] LIMIT 3")
    done = "\n".join(activities(trace))
    assert re.search(r"Asking index \S+\.t_v for \d+ candidates \(k = 3, restrictions = 0\)", done), done
    assert "taken in all acknowledged writes" in done and "Searched the index by a " in done
    assert re.search(r"The index named \d+ rows", done) and re.search(r"Read \d+ rows by their keys", done)


def test_a_request_without_a_trace_leaves_none(notes):
    assert notes.execute("SELECT v FROM notes").get_query_trace() is None


@pytest.mark.embedded("the error comes with a trace")
def test_a_request_that_fails_has_a_trace(notes):
    future = notes.execute_async("SELECT nothing FROM notes", trace=True)
    with pytest.raises(InvalidRequest):
        future.result()
    if future._query_traces:
        assert activities(future.get_query_trace())[-1] == "Preparing statement"


@pytest.mark.embedded("roles are created without a trace in Cassandra, too")
def test_passwords_are_masked(session):
    rows = session.execute("SELECT session_id FROM system_traces.sessions")
    before = {row.session_id for row in rows}
    future = session.execute_async("CREATE ROLE nobody WITH PASSWORD = 'hush' AND nonsense = 1", trace=True)
    with pytest.raises(Exception):
        future.result()
    rows = session.execute("SELECT session_id, parameters FROM system_traces.sessions")
    made = [row for row in rows if row.session_id not in before]
    assert [row.parameters["query"] for row in made] == ["CREATE ROLE nobody WITH *******"]
    events = session.execute("SELECT activity FROM system_traces.events WHERE session_id = %s", (made[0].session_id,))
    assert events and not any("hush" in event.activity for event in events)


def test_an_unknown_trace(session):
    rows = session.execute("SELECT * FROM system_traces.sessions WHERE session_id = %s", (uuid.uuid4(),))
    assert list(rows) == []


@pytest.mark.skipif(not CQLSH.exists(), reason="cqlsh stands beside the other driver")
def test_cqlsh_shows_a_trace(server, notes):
    statement = f"TRACING ON; SELECT v FROM {notes.keyspace}.notes WHERE p = 1;"
    command = [CQLSH, *CQLSH_PATIENCE, server.host, str(server.cql_port), "-e", statement]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert "Tracing session: " in result.stdout and "Request complete" in result.stdout
    assert "Preparing statement" in result.stdout
