#!/usr/bin/env python3
"""Measures the cost of a write through a gateway: prepared INSERTs one after another, direct and
through the gateway, without and with an index.

Needs Java 17, Maven and the driver of tests/drivers. `--binary` names the `annulus` to measure.
Writes Markdown to stdout. The ways take turns, so that other work of the machine affects all of
them alike. The median counts.
"""

import argparse
import itertools
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=ROOT / "target/release/annulus")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--writes", type=int, default=10, help="writes of each way in a round")
    parser.add_argument("--dimensions", type=int, default=384)
    return parser.parse_args()


OPTIONS = arguments()
# The helpers of the tests take the binary from this variable.
os.environ["ANNULUS_BINARY"] = str(OPTIONS.binary)
for folder in ("cassandra", "drivers", "cluster"):
    sys.path.append(str(ROOT / "tests" / folder))

from cassandra.cluster import Cluster  # noqa: E402
from gateways import gateways_before  # noqa: E402
from ring import cassandra_ring  # noqa: E402

TABLE = "CREATE TABLE bench.{} (id int PRIMARY KEY, name text, v vector<float, {}>)"
PLAIN = "INSERT INTO bench.{} (id, name, v) VALUES (?, ?, ?)"


class Way:
    """A way to write: a session, a table and the size of a row's text."""

    FIRST_KEYS = itertools.count(0, 10_000_000)

    def __init__(self, name, session, table, text_bytes=20, condition=""):
        self.name = name
        self._session = session
        self._insert = session.prepare(PLAIN.format(table) + condition)
        self._text = "x" * text_bytes
        self._vector = [float(at) for at in range(OPTIONS.dimensions)]
        # Each way has keys of its own, so that every condition is met.
        self._number = next(Way.FIRST_KEYS)
        self.micros = []

    def round(self, count, counted=True):
        for _ in range(count):
            self._number += 1
            bound = self._insert.bind((self._number, self._text, self._vector))
            start = time.perf_counter_ns()
            self._session.execute(bound)
            taken = (time.perf_counter_ns() - start) / 1_000
            if counted:
                self.micros.append(taken)


def main():
    with cassandra_ring() as ring, tempfile.TemporaryDirectory() as directory:
        node = (ring.hosts[0], ring.port)
        [gateway] = gateways_before([node], [], pathlib.Path(directory))
        gateway.start()
        try:
            measure(node, gateway.address)
        finally:
            gateway.stop()


def measure(node, gateway):
    with (
        Cluster([node[0]], port=node[1], protocol_version=4) as direct,
        Cluster([gateway[0]], port=gateway[1], protocol_version=4) as through,
    ):
        direct, through = direct.connect(), through.connect()
        through.default_timeout = direct.default_timeout = 60
        through.execute("CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for table in ("a", "b", "indexed"):
            through.execute(TABLE.format(table, OPTIONS.dimensions))
        through.execute("CREATE CUSTOM INDEX ON bench.indexed (v) USING 'vector_index'")
        ways = [
            Way("direct", direct, "a"),
            Way("through, no index on the table", through, "b"),
            Way("through, index, one batch", through, "indexed"),
            Way("direct, 8 KiB more", direct, "a", 8 << 10),
            Way("through, index, 8 KiB more, log rows around", through, "indexed", 8 << 10),
            Way("direct, IF NOT EXISTS", direct, "a", condition=" IF NOT EXISTS"),
            Way("through, index, IF NOT EXISTS, log rows around", through, "indexed", condition=" IF NOT EXISTS"),
        ]
        for way in ways:
            way.round(300, counted=False)
        for _ in range(OPTIONS.rounds):
            for way in ways:
                way.round(OPTIONS.writes)
    print(f"{OPTIONS.rounds} rounds of {OPTIONS.writes} writes, {OPTIONS.dimensions} dimensions, one at a time\n")
    print("| write | P50, ms | P99, ms |\n| --- | --- | --- |")
    for way in ways:
        quantiles = statistics.quantiles(way.micros, n=100)
        print(f"| {way.name} | {quantiles[49] / 1_000:.2f} | {quantiles[98] / 1_000:.2f} |")


if __name__ == "__main__":
    main()
