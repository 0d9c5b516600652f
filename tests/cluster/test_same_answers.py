"""Tests that a gateway's answers are byte for byte those of the node behind it.

The statements are those of tests/compat, more than a thousand. Each is sent as it stands there, and
then in the other form: text is prepared and executed, and a prepared statement is sent as text with
its values. SELECTs are also read in pages. All go straight to the node and then through the
gateway, in a keyspace made anew each time. The frames of the responses are compared, headers
included.

The bytes of paging states and the ids of traces are left out, as they differ between two runs on
the same node (`frames.comparable`). `now()` is in statements, but in no answer. The tables that
tell of nodes and of indexes have tests of their own, as the gateway answers otherwise than the node
on purpose.
"""

import pytest
from cassandra.cluster import Cluster
from cassandra.protocol import ErrorMessage

import replay
import script
from frames import OPCODE_AT, RESULT, FrameClient, comparable

STATEMENTS_MIN = 1400
PAGE_ROWS = 2
PAGES_MAX = 1000

# The settings of connections by name of the area. Areas that are not named have the plain ones.
PLAIN = {}
CONNECTIONS = {
    "prepared": {"compression": "lz4"},
    "collections": {"compression": "snappy"},
    "not_exists": {"traced": True},
}

# The statements that drivers send when they connect, for tables that a gateway leaves as they are.
QUESTIONS_OF_DRIVERS = [
    *(
        f"SELECT * FROM system_schema.{table}"
        for table in ("keyspaces", "tables", "columns", "types", "functions", "aggregates", "views", "triggers")
    ),
    "SELECT * FROM system_virtual_schema.keyspaces",
    "SELECT * FROM system_virtual_schema.tables",
    "SELECT * FROM system_virtual_schema.columns",
    "SELECT cluster_name, data_center, rack, tokens, partitioner, release_version, schema_version FROM system.local",
]


@pytest.fixture(scope="module", autouse=True)
def an_index_elsewhere(gateways):
    """Makes a vector index on a table that no statement names. While there is an index, a gateway
    looks at every statement more closely."""
    with Cluster([gateways[0].host], port=gateways[0].cql_port) as cluster:
        session = cluster.connect()
        session.default_timeout = 60
        session.execute("DROP KEYSPACE IF EXISTS beside")
        session.execute(
            "CREATE KEYSPACE beside WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute("CREATE TABLE beside.indexed_beside (k int PRIMARY KEY, v vector<float, 2>)")
        session.execute("CREATE CUSTOM INDEX ON beside.indexed_beside (v) USING 'vector_index'")
        yield
        session.execute("DROP KEYSPACE beside")


def in_the_other_form(client, step):
    """Sends a step's text as a prepared statement, or its prepared statement as text. SELECTs are
    also read in pages."""
    replay.wait(step)
    prepared = client.prepare(step.statement)
    if isinstance(prepared, ErrorMessage):
        client.query(step.statement)
        return
    is_text = not (step.directive("prepare") or step.directive("bind"))
    values = [replay.evaluate(python) for python in step.directive("send") + step.directive("bind")]
    for bound in [replay.encoded(prepared, each) for each in values] or [[]]:
        if prepared.column_metadata:
            in_pages(lambda **paging: client.query(step.statement, bound, **paging))
            in_pages(lambda **paging: client.execute(prepared, bound, **paging))
        elif is_text:
            client.execute(prepared, bound)
        else:
            client.query(step.statement, bound)


def in_pages(ask):
    """Reads all rows: in one page, then in small ones."""
    ask()
    state = None
    for _ in range(PAGES_MAX):
        state = getattr(ask(page_size=PAGE_ROWS, paging_state=state), "paging_state", None)
        if state is None:
            return
    raise AssertionError(f"more than {PAGES_MAX} pages")


def drop_leftovers(address):
    """Drops keyspaces that an earlier run left behind."""
    with FrameClient(address) as client:
        for [name] in client.query("SELECT keyspace_name FROM system_schema.keyspaces").parsed_rows:
            if name.startswith(b"compat_"):
                client.query(f"DROP KEYSPACE {name.decode()}")


def prepare_all(address, area):
    """Has a node prepare an area's statements, so that not only the second of two runs finds them
    prepared.

    TRUNCATE and changes of the schema stay prepared whatever becomes of the table, and a node warns
    of USE only when it prepares a statement that it did not know."""
    with FrameClient(address) as client:
        replay.begin(client, area)
        for step in script.read_statements(area):
            client.prepare(step.statement)


def ask_all(address, area):
    """The rendered answers to an area's steps, and the frames of all responses."""
    with FrameClient(address, **CONNECTIONS.get(area, PLAIN)) as client:
        drop_leftovers(address)
        answers = replay.replay(client, area)
        drop_leftovers(address)
        replay.begin(client, area)
        for step in script.read_statements(area):
            in_the_other_form(client, step)
        return answers, [comparable(client.plain(frame)) for frame in client.frames]


@pytest.mark.parametrize("area", [area for area in script.areas() if area not in script.WITH_LOGIN])
def test_answers_are_byte_for_byte_those_of_the_node(gateway, area):
    prepare_all(gateway.node, area)
    answers_direct, direct = ask_all(gateway.node, area)
    answers_through, through = ask_all(gateway.address, area)

    assert answers_through == answers_direct
    # Each step has at least one answer in each form, so the comparison is not empty.
    assert len(direct) >= 2 * len(answers_direct)
    different = [pair for pair in zip(direct, through, strict=True) if pair[0] != pair[1]]
    assert not different, f"{len(different)} of {len(direct)}: {different[:2]}"


def test_they_are_many():
    assert sum(len(script.read_statements(area)) for area in script.areas()) >= STATEMENTS_MIN


@pytest.mark.parametrize("compression", [None, "lz4", "snappy"])
def test_what_drivers_read_first_is_the_nodes(gateway, compression):
    frames = []
    for address in (gateway.node, gateway.address):
        with FrameClient(address, compression=compression) as client:
            client.frames.clear()
            for question in QUESTIONS_OF_DRIVERS:
                in_the_other_form(client, script.Step([question]))
            assert all(frame[OPCODE_AT] == RESULT for frame in client.frames)
            frames.append([comparable(client.plain(frame)) for frame in client.frames])
    assert len(frames[0]) > 4 * len(QUESTIONS_OF_DRIVERS)
    assert frames[0] == frames[1]


def test_a_page_is_continued_on_the_other_side(gateway):
    """A paging state from the node also works through a gateway, and the other way round."""
    question = "SELECT table_name FROM system_schema.tables"
    with FrameClient(gateway.node) as direct, FrameClient(gateway.address) as through:
        in_one = [row for row in direct.query(question).parsed_rows]
        for clients in ((direct, through), (through, direct)):
            state, rows = None, []
            for number in range(len(in_one) + 1):
                page = clients[number % 2].query(question, page_size=7, paging_state=state)
                rows += page.parsed_rows
                state = page.paging_state
                if state is None:
                    break
            assert rows == in_one and len(rows) > 2 * 7
