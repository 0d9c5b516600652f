"""Tests that a text index equals its table after a stop, which needs no scan, and after a kill."""

import json
import random

import pytest
from cases import IN_FULL, KINDS, by_cql, by_http, cases, none
from clients import client_of_one
from films import FORMS
from living import Living, Writer
from server import Server
from service import Service

STEPS = 300


class Restarted:
    """A server of our own, whose session is opened again after each start."""

    def __init__(self, directory):
        self.server = Server(directory / "data", "--durability", "buffered")
        self.service = Service(self.server)
        self._cluster = self.session = None

    def start(self):
        self.server.start()
        self._cluster = client_of_one((self.server.host, self.server.cql_port))
        self.session = self._cluster.connect()
        return self.session

    def end(self, how):
        self._cluster.shutdown()
        return how()

    def scans(self):
        """The number of scans of tables since the start."""
        _, metrics = self.server.http("/metrics")
        return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith("index_scans_total"))


@pytest.fixture
def restarted(tmp_path):
    restarted = Restarted(tmp_path)
    restarted.start()
    yield restarted
    if restarted.server.is_running:
        assert restarted.end(restarted.server.stop) == 0, restarted.server.log()


def is_equal(restarted, living):
    """Compares what searches find with brute force."""
    living.settle()
    living.wait(restarted.service.wait)
    rng = random.Random(STEPS)
    for form in FORMS:
        for kind in KINDS if IN_FULL else rng.sample(KINDS, 3):
            none(by_cql(restarted.session, kind, cases(living, form, each=1)))
    none(by_http(restarted.service, living, rng.choice(FORMS), each=1))


def made(restarted):
    restarted.session.execute(
        "CREATE KEYSPACE again WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    living = Living("again", "films", seed=5)
    living.create(restarted.session)
    change(restarted, living, "first")
    return living


def change(restarted, living, seed):
    writer = Writer(living, restarted.session, seed, range(living.partitions))
    for _ in range(STEPS):
        writer.step()


def test_a_stop_leaves_an_index_that_needs_no_scan(restarted):
    living = made(restarted)
    is_equal(restarted, living)
    for seed in ("second", "third"):
        assert restarted.end(restarted.server.stop) == 0, restarted.server.log()
        restarted.start()
        is_equal(restarted, living)
        assert restarted.scans() == 0, "an index was built again"
        change(restarted, living, seed)
        is_equal(restarted, living)


def test_a_kill_leaves_an_index_that_equals_its_table(restarted):
    living = made(restarted)
    # A stop saves the indexes, a kill does not.
    assert restarted.end(restarted.server.stop) == 0, restarted.server.log()
    restarted.start()
    for seed in ("second", "third"):
        change(restarted, living, seed)
        restarted.end(restarted.server.kill)
        restarted.start()
        is_equal(restarted, living)
        assert restarted.scans() == 0, "an index was built again"


def test_a_repair_finds_an_index_equal(restarted):
    living = made(restarted)
    living.settle()
    living.wait(restarted.service.wait)
    index = FORMS[0].words_index(living)
    status, text = restarted.server.http(f"/api/v1/indexes/again/{index}/repair", {})
    assert status in (200, 202), text
    task = repaired(restarted, text)
    assert task["state"] == "done", task
    assert not any(task["counters"].get(name) for name in ("rows_added", "rows_mended", "rows_removed", "rows_left")), task
    is_equal(restarted, living)


def repaired(restarted, text):
    """The task of a repair once it has ended."""
    task = json.loads(text)["id"]
    status, text = restarted.server.http(f"/api/v1/tasks/{task}/wait?timeout=60")
    assert status == 200, text
    return json.loads(text)
