"""Tests real texts on a cluster: they are found as on one machine, and while parts of the cluster
die.

The tests build on each other's table. The last one proves that index and table are equal after all
of them.
"""

import contextlib
import os
import signal

import pytest
from conftest import NODES
from load import Load
from server import eventually

QUERIES = 200
RECALL_MIN = 0.97

# The first number of the rows that the load writes.
LOAD_FIRST = 10_000_000


def test_recall_is_that_of_one_machine(table, one_machine, texts, measured):
    queries = texts.queries[:QUERIES]
    through, on_one = table.recall(queries), one_machine.recall(queries)
    measured.append(
        f"recall@10 of {QUERIES} queries among {len(texts.ids)} texts: {through:.4f} through gateways, {on_one:.4f} on one machine"
    )
    assert through >= RECALL_MIN
    # Each build makes another graph, as rows come in another order.
    assert abs(through - on_one) <= 0.01


def test_inserts_updates_and_deletes_are_seen(table, texts, stores):
    new, changed, deleted, emptied = LOAD_FIRST - 1, texts.ids[1], texts.ids[2], texts.ids[3]
    [here, there] = texts.queries[-2:]

    table.put(new, "a new one", here)
    table.update(changed, there)
    for store in stores:
        eventually(lambda: store.nearest(table.KEYSPACE, table.INDEX, here.tolist(), 1) == {"id": [new]})
        eventually(lambda: store.nearest(table.KEYSPACE, table.INDEX, there.tolist(), 1) == {"id": [changed]})
    assert table.nearest(here, 1) == [new]
    assert table.nearest(there, 1) == [changed]

    for number, vector in ((deleted, texts.vectors[2]), (emptied, texts.vectors[3]), (new, here)):
        assert number in table.nearest(vector, 3)
    table.delete(deleted)
    table.update(emptied, None)
    table.delete(new)
    # The row is not found even before the index has heard of its deletion, as it is read and is not
    # there.
    assert deleted not in table.nearest(texts.vectors[2], 3)
    # A row without a vector goes once the index has heard of it, as the query does not read the
    # vector.
    eventually(lambda: emptied not in table.nearest(texts.vectors[3], 3))
    for store in stores:
        table.is_equal_in(store)
    # The texts get back their former vectors.
    table.insert([1, 2, 3])
    for store in stores:
        table.is_equal_in(store)


@contextlib.contextmanager
def under_load(table, texts):
    """Writes and reads rows, with searches beside them. `goes_on()` waits for some more of both,
    and checks that none has failed."""
    queries = texts.queries
    first = max([LOAD_FIRST, *table.rows]) + 1

    def write(step):
        number = first + step
        table.put(number, f"text {step}", queries[step % len(queries)])
        assert table.text(number) == f"text {step}"
        if step % 3 == 0:
            table.update(number, queries[(step + 1) % len(queries)])
        if step % 5 == 0:
            table.delete(number)

    def search(step):
        # Some of the neighbours may have been deleted a moment ago.
        assert len(table.nearest(queries[step % len(queries)], 20)) >= 10

    with Load(write) as writes, Load(search) as searches:

        def goes_on():
            writes.goes_on()
            searches.goes_on()

        goes_on()
        yield goes_on
        goes_on()


def test_a_store_is_killed_and_restarted(table, texts, stores):
    killed = stores[1]
    with under_load(table, texts) as goes_on:
        killed.kill()
        goes_on()
        killed.start()
    table.is_equal_in(killed)
    # The index came back from its snapshot and the log.
    assert killed.metric("index_scans_total") == 0


def test_the_other_store_is_killed_and_restarted(table, texts, stores):
    with under_load(table, texts) as goes_on:
        stores[0].kill()
        goes_on()
        stores[0].start()
    table.is_equal_in(stores[0])


def is_up(session, gateway):
    hosts = session.cluster.metadata.all_hosts()
    return [host.is_up for host in hosts if host.endpoint.address == gateway.host] == [True]


@pytest.mark.skipif(NODES < 2, reason="needs two gateways: NODES=3")
def test_a_gateway_is_killed_and_restarted(table, texts, session, gateways):
    for gateway in gateways:
        with under_load(table, texts) as goes_on:
            gateway.kill()
            eventually(lambda: not is_up(session, gateway), seconds=60)
            goes_on()
            gateway.start()
            eventually(lambda: is_up(session, gateway), seconds=60)


@pytest.mark.skipif(NODES < 3, reason="needs a quorum without the node: NODES=3")
@pytest.mark.parametrize("node", [1, 2], ids=["behind a gateway", "without a gateway"])
def test_a_node_is_killed_and_restarted(node, table, texts, session, gateways, ring):
    with under_load(table, texts) as goes_on:
        os.kill(ring.pid(node), signal.SIGKILL)
        if node < len(gateways):
            eventually(lambda: not is_up(session, gateways[node]), seconds=60)
        goes_on()
        ring.up()
        for gateway in gateways:
            eventually(lambda: is_up(session, gateway), seconds=60)


def test_index_and_table_are_equal(table, stores, measured):
    for number, store in enumerate(stores, 1):
        table.is_equal_in(store)
        found = store.repair(table.KEYSPACE, table.INDEX, "--intensity", "0")["counters"]
        measured.append(f"repair of store {number}: {found}")
        assert found["rows_compared"] == len(table.rows)
        assert not any(found[count] for count in ("rows_added", "rows_mended", "rows_removed", "rows_left")), found
