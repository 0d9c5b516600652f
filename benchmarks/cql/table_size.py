#!/usr/bin/env python3
"""Shows that scans and pages cost as much in a large table as in a small one: table_size.py [ROWS ...]

ANNULUS_BINARY names the program to measure (target/release/annulus). One server has a table of each size, 20,000, 100,000
and 500,000 rows by default, which are asked in turns. A round scans each table as often as makes the rows of the largest
one, and asks for the first and for the last page of each. Writes Markdown to stdout: medians of the rounds, and the ratios
to the smallest table with the least and the most."""

import os
import pathlib
import struct
import sys
import tempfile
import time
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("ANNULUS_BINARY", str(ROOT / "target/release/annulus"))
sys.path.append(str(ROOT / "tests" / "drivers"))

from cassandra.cluster import Cluster  # noqa: E402
from cassandra.concurrent import execute_concurrent  # noqa: E402

from server import Server  # noqa: E402
from wire import EXECUTE, ONE, PAGE_SIZE, PREPARE, ROWS, SKIP_METADATA, Wire, long_string, value  # noqa: E402

SIZES = (20_000, 100_000, 500_000)
ROUNDS = int(os.environ.get("ROUNDS", "5"))
# What drivers ask for by default.
PAGE_ROWS = 5_000
PARTITION_ROWS = 100
TEXT = "x" * 100
# The first and the last page are each asked for so often in a round.
PAGES = 20
PAGING_STATE, HAS_MORE_PAGES, NO_METADATA = 0x08, 0x02, 0x04


def fill(server, sizes):
    with Cluster([server.host], port=server.cql_port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE sizes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for size in sizes:
            session.execute(f"CREATE TABLE sizes.t{size} (p int, c int, v text, PRIMARY KEY (p, c))")
            inserts = f"INSERT INTO sizes.t{size} (p, c, v) VALUES (?, ?, ?); " * PARTITION_ROWS
            batch = session.prepare(f"BEGIN UNLOGGED BATCH {inserts} APPLY BATCH")
            partitions = (
                (batch, [part for c in range(PARTITION_ROWS) for part in (p, c, TEXT)])
                for p in range(size // PARTITION_ROWS)
            )
            execute_concurrent(session, partitions, concurrency=16, results_generator=False)


class Table:
    """A table, read page by page without a driver, whose own work would hide the server's."""

    def __init__(self, wire, size):
        self.wire, self.size = wire, size
        prepared = wire.ask(PREPARE, long_string(f"SELECT p, c, v FROM sizes.t{size}"))
        assert prepared.error is None, prepared.error
        (length,) = struct.unpack_from(">H", prepared.body, 4)
        self.id = prepared.body[4 : 6 + length]
        self.last_state = None  # with which the last page begins

    def page(self, state):
        """(The number of rows of a page, the state with which the next one begins, seconds)."""
        flags = SKIP_METADATA | PAGE_SIZE | (PAGING_STATE if state else 0)
        request = self.id + struct.pack(">HBi", ONE, flags, PAGE_ROWS) + (value(state) if state else b"")
        began = time.perf_counter()
        answer = self.wire.ask(EXECUTE, request)
        seconds = time.perf_counter() - began
        assert answer.kind == ROWS
        flags, _ = struct.unpack_from(">ii", answer.body, 4)
        assert flags & NO_METADATA
        at, following = 12, None
        if flags & HAS_MORE_PAGES:
            (length,) = struct.unpack_from(">i", answer.body, at)
            following = answer.body[at + 4 : at + 4 + length]
            at += 4 + length
        (rows,) = struct.unpack_from(">i", answer.body, at)
        return rows, following, seconds

    def scan(self):
        """Seconds of a scan of the whole table."""
        rows, state, seconds = self.page(None)
        while state:
            self.last_state = state
            more, state, took = self.page(state)
            rows, seconds = rows + more, seconds + took
        assert rows == self.size, (rows, self.size)
        return seconds


def processor_seconds(server):
    fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(server, tables):
    """By table: rows a second, processor µs of a row, ms of the first and of the last page."""
    largest = max(table.size for table in tables)
    seconds, processor = [0.0] * len(tables), [0.0] * len(tables)
    scans = [largest // table.size for table in tables]
    # Each table's scans are spread over the round.
    for _, number in sorted(((turn + 0.5) / times, number) for number, times in enumerate(scans) for turn in range(times)):
        before = processor_seconds(server)
        seconds[number] += tables[number].scan()
        processor[number] += processor_seconds(server) - before
    first, last = [[] for _ in tables], [[] for _ in tables]
    for _ in range(PAGES):
        for number, table in enumerate(tables):
            first[number].append(table.page(None)[2])
            rows, following, took = table.page(table.last_state)
            assert (rows, following) == (PAGE_ROWS, None)
            last[number].append(took)
    return [
        (
            scans[number] * table.size / seconds[number],
            processor[number] / (scans[number] * table.size) * 1e6,
            median(first[number]) * 1e3,
            median(last[number]) * 1e3,
        )
        for number, table in enumerate(tables)
    ]


def ratio(rounds, number, figure):
    ratios = [of_tables[number][figure] / of_tables[0][figure] for of_tables in rounds]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    sizes = sorted(int(size) for size in sys.argv[1:]) or SIZES
    for size in sizes:
        # So that the last page is as long as the first.
        if size % PAGE_ROWS or size < 2 * PAGE_ROWS or sizes[-1] % size:
            sys.exit(f"{size}: take multiples of {PAGE_ROWS}, from {2 * PAGE_ROWS}, that divide the largest")
    with tempfile.TemporaryDirectory() as directory, Server(pathlib.Path(directory) / "data", "--log", "warn") as server:
        fill(server, sizes)
        with Wire(server) as wire:
            tables = [Table(wire, size) for size in sizes]
            rounds = [measured(server, tables) for _ in range(ROUNDS + 1)][1:]  # one warms up
    print("| rows | scan, rows/s | ratio | µs a row | ratio | first page, ms | ratio | last page, ms | ratio |")
    print("| --: " * 9 + "|")
    for number, size in enumerate(sizes):
        cells = [f"{size:,}"]
        for figure, form in enumerate((",.0f", ".2f", ".2f", ".2f")):
            middle = median(of_tables[number][figure] for of_tables in rounds)
            cells += [format(middle, form), ratio(rounds, number, figure)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
