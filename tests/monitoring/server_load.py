"""Load for dashboards: statements and searches of all kinds on one server, from threads that go on until they are ended."""

import contextlib
import json
import random
import subprocess
import threading
import time

from clients import client_of_one
from process import BINARY
from server import eventually

ROWS, DIMENSIONS, THREADS = 3000, 16, 3
PAUSE_SECONDS = 0.02
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
WORDS = "tea cocoa spade garden lamp river stone bread winter letter violin lantern".split()


class LoadedServer:
    """Tables with indexes on a server, and what is done to them."""

    KEYSPACE = "shop"

    def __init__(self, server, session):
        self.server, self.session = server, session
        self._ended, self._failures, self._threads = threading.Event(), [], []

    def make_tables(self):
        """A table with rows, an index on its vectors and one on its words, both serving."""
        execute = self.session.execute
        execute(f"CREATE KEYSPACE shop WITH replication = {REPLICATION}")
        execute(f"CREATE TABLE shop.things (id int PRIMARY KEY, name text, price int, v vector<float, {DIMENSIONS}>)")
        execute("CREATE CUSTOM INDEX near ON shop.things (v, price) USING 'vector_index'")
        execute("CREATE CUSTOM INDEX words ON shop.things (name) USING 'fulltext_index'")
        prepared = self.session.prepare
        self._insert = prepared("INSERT INTO shop.things (id, name, price, v) VALUES (?, ?, ?, ?)")
        self._update = prepared("UPDATE shop.things SET price = ?, v = ? WHERE id = ?")
        self._delete = prepared("DELETE FROM shop.things WHERE id = ?")
        self._select = prepared("SELECT * FROM shop.things WHERE id = ?")
        self._vector = prepared("SELECT id FROM shop.things ORDER BY v ANN OF ? LIMIT 10")
        self._words = prepared("SELECT id FROM shop.things ORDER BY BM25(name, ?) LIMIT 10")
        self._both = prepared("SELECT id FROM shop.things ORDER BY RRF(ANN(v, ?), BM25(name, ?)) LIMIT 10")
        draw = random.Random(1)
        for number in range(ROWS):
            execute(self._insert, self._row(draw, number))
        # A guardrail warns of a batch over so many partitions.
        changes = "".join(f"UPDATE shop.things SET price = 2 WHERE id = {number}; " for number in range(12))
        execute(f"BEGIN UNLOGGED BATCH {changes}APPLY BATCH")
        for index in ("near", "words"):
            self.server.wait_for_index(self.KEYSPACE, index, ROWS, 120)

    def _row(self, draw, number):
        return number, " ".join(draw.choices(WORDS, k=6)), draw.randrange(100), vector(draw)

    @contextlib.contextmanager
    def going_on(self):
        """The load runs within the block."""
        self._threads = [threading.Thread(target=self._work, args=(seed,), daemon=True) for seed in range(THREADS)]
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join(30)
        assert self._failures == []

    def _work(self, seed):
        draw, deadline = random.Random(seed), time.monotonic() + 600
        try:
            while not self._ended.wait(PAUSE_SECONDS) and time.monotonic() < deadline:
                self._one_of_each(draw)
        except Exception as error:
            self._failures.append(error)

    def _one_of_each(self, draw):
        execute = self.session.execute
        number = draw.randrange(ROWS)
        execute(self._select, (number,))
        execute(self._update, (draw.randrange(100), vector(draw), number))
        execute(self._delete, (number,))
        execute(self._insert, self._row(draw, number))
        execute(f"BEGIN BATCH UPDATE shop.things SET price = 1 WHERE id = {number}; APPLY BATCH")
        execute(self._vector, (vector(draw),))
        execute(self._words, (draw.choice(WORDS),))
        execute(self._both, (vector(draw), draw.choice(WORDS)))
        with contextlib.suppress(Exception):
            execute("SELECT no_such_column FROM shop.things")
        self.server.http("/api/v1/indexes/shop/near/ann", {"vector": vector(draw), "limit": 5})


def vector(draw):
    return [draw.gauss(0, 1) for _ in range(DIMENSIONS)]


def annulus(*arguments):
    """The JSON that a command of the operator prints. It must succeed."""
    command = [BINARY, *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def care_for(server, folder):
    """Does an operator's work: a check, a repair, a backup and a drill."""
    service = ["--http", f"http://{server.host}:{server.http_port}"]
    annulus("check", "shop.near", *service)
    annulus("repair", "shop.near", *service)
    backup = ["--location", f"file://{folder / 'backups'}", *service]
    annulus("backup", *backup, "--retention", "3", "--interval", "1d")
    annulus("backup", "drill", *backup)


@contextlib.contextmanager
def loaded_server(server):
    """Load on a server within the block."""
    with client_of_one((server.host, server.cql_port)) as cluster:
        load = LoadedServer(server, cluster.connect())
        load.make_tables()
        with load.going_on():
            yield load


@contextlib.contextmanager
def loaded_gateway(gateway, store):
    """Writes and searches through a gateway within the block."""
    ended = threading.Event()
    with client_of_one(gateway.address) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE far WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}")
        session.execute("CREATE TABLE far.things (id int PRIMARY KEY, v vector<float, 3>)")
        session.execute("CREATE CUSTOM INDEX near ON far.things (v) USING 'vector_index'")
        insert = session.prepare("INSERT INTO far.things (id, v) VALUES (?, ?)")
        for number in range(50):
            session.execute(insert, (number, [number, 1, 0]))
        eventually(lambda: store.serves("far", "near", 50), seconds=120)

        def work():
            number = 0
            while not ended.wait(PAUSE_SECONDS) and number < 30_000:
                session.execute(insert, (number % 50, [number % 7, 1, 0]))
                session.execute(f"SELECT id FROM far.things ORDER BY v ANN OF [{number % 7}, 1, 0] LIMIT 3")
                number += 1

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(30)
