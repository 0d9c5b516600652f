"""Tests repair on a ring: writes that went round the gateways are found and mended, by jobs that
share no node."""

import datetime
import itertools

import pytest
from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.metadata import Murmur3Token
from clients import client_of_all
from server import eventually

# The number of rows. A table of up to 10,000 rows would be compared in one piece.
ROWS = 11_000
INSERT = "INSERT INTO points (id, v) VALUES (?, ?)"


@pytest.fixture(scope="module")
def through(gateways):
    with client_of_all([gateway.address for gateway in gateways], ConsistencyLevel.ALL) as cluster:
        yield cluster.connect()


@pytest.fixture(scope="module")
def direct(nodes):
    """A session whose writes pass no gateway."""
    with client_of_all(nodes, ConsistencyLevel.ALL) as cluster:
        yield cluster.connect()


@pytest.fixture(params=[1, 3], ids=lambda replicas: f"{replicas} replicas")
def points(request, through, direct, nodes, store):
    """A session that goes round the gateways, and a table that is indexed as it is."""
    if request.param > len(nodes):
        pytest.skip("needs as many nodes: NODES=3")
    through.execute("DROP KEYSPACE IF EXISTS repaired")
    through.execute(
        f"CREATE KEYSPACE repaired WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': {request.param}}}"
    )
    through.execute("CREATE TABLE repaired.points (id int PRIMARY KEY, v vector<float, 2>)")
    direct.execute("USE repaired")
    insert = direct.prepare(INSERT)
    rows = ((number, [float(number), 1.0]) for number in range(ROWS))
    execute_concurrent_with_args(direct, insert, rows, concurrency=32)
    through.execute("CREATE CUSTOM INDEX near ON repaired.points (v) USING 'vector_index'")
    eventually(lambda: store.serves("repaired", "near", ROWS), seconds=120)
    yield direct
    through.execute("DROP KEYSPACE repaired")


def test_what_went_round_the_gateways_is_mended(points, store):
    insert = points.prepare(INSERT)
    for number in range(5):
        points.execute(insert, (ROWS + number, [1.0, 1.0]))
        points.execute(insert, (100 + number, [2.0, -1.0]))
        points.execute("UPDATE points SET v = [3, -1] WHERE id = %s", (200 + number,))
        points.execute("DELETE FROM points WHERE id = %s", (300 + number,))
        points.execute("UPDATE points SET v = null WHERE id = %s", (400 + number,))
    found = store.repair("repaired", "near")["counters"]
    assert (found["rows_added"], found["rows_mended"], found["rows_removed"], found["rows_left"]) == (5, 10, 10, 0)
    assert store.serves("repaired", "near", ROWS - 5)

    again = store.repair("repaired", "near")["counters"]
    # Five rows were added and five removed. Rows without a vector are read like others.
    assert again["rows_compared"] == ROWS
    assert not any(again[count] for count in ("ranges_differed", "rows_added", "rows_mended", "rows_removed", "rows_left"))


def test_ranges_beside_each_other_share_no_node(points, store, through):
    replicas = through.cluster.metadata.token_map.get_replicas
    for parallel in (0, 1):
        task = store.repair("repaired", "near", "--parallel", str(parallel))
        parts = [part for part in store.task_tree(task["id"])["children"] if part["kind"] == "repair"]
        assert len(parts) == task["counters"]["ranges_compared"] >= 16
        beside = 0
        for one, other in itertools.combinations(map(spent, parts), 2):
            if one["from"] < other["to"] and other["from"] < one["to"]:
                beside += 1
                nodes = [set(replicas("repaired", Murmur3Token(part["token"]))) for part in (one, other)]
                assert nodes[0].isdisjoint(nodes[1])
        sets = {frozenset(replicas("repaired", Murmur3Token(spent(part)["token"]))) for part in parts}
        # All ranges have the same nodes, or each range has one of several sets.
        assert (beside > 0) == (len(sets) > 1 and parallel == 0), (beside, sets)


def spent(part):
    """The times between which a range was compared, and a token of the range."""
    return {
        "from": datetime.datetime.fromisoformat(part["start_time"]),
        "to": datetime.datetime.fromisoformat(part["end_time"]),
        "token": int(part["token_range"]["end"]),
    }
