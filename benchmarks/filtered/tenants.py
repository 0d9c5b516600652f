"""Measures a local index over tenants of very different sizes: memory of a tiny tenant, recall and
time of a search among a tenant's rows, before and after other tenants were written to heavily.

`--binary` names the `annulus` to measure. Writes Markdown to stdout.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=ROOT / "target/release/annulus")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tenants", type=int, default=100_000)
    parser.add_argument("--largest", type=int, default=10_000, help="rows of the largest tenant")
    return parser.parse_args()


OPTIONS = arguments()
# The helpers of the tests take the binary from this variable.
os.environ["ANNULUS_BINARY"] = str(OPTIONS.binary)
for folder in ("drivers", "cluster"):
    sys.path.append(str(ROOT / "tests" / folder))

from cassandra.concurrent import execute_concurrent  # noqa: E402
from cassandra.query import BatchStatement, BatchType  # noqa: E402
from clients import client_of_one  # noqa: E402
from server import Server, eventually  # noqa: E402

DIMENSIONS, CLUSTERS, K = 48, 1000, 10
ROWS_IN_A_BATCH, IN_FLIGHT = 20, 64
INDEXED_SECONDS = 3600
# Tenants are measured in classes by their number of rows.
CLASSES = [(1, 1), (2, 10), (11, 100), (101, 1000), (1001, 10_000)]
TENANTS_OF_A_CLASS = 50
QUERIES_OF_A_TENANT = 4
# The share of the rows that are written after the first measurement, all of other tenants.
LATER = 0.3


def sizes(tenants, rows, largest):
    """The numbers of rows of tenants, from the largest to one: Zipf-like, with the exponent that
    makes the sum."""
    ranks = numpy.arange(1, tenants + 1)
    low, high = 0.1, 3.0
    for _ in range(60):
        exponent = (low + high) / 2
        # The last tenant has one row.
        made = numpy.rint(1 + (largest - 1) * (ranks**-exponent - tenants**-exponent)).astype(int)
        low, high = (exponent, high) if made.sum() > rows else (low, exponent)
    return made, exponent


class Index:
    """A table of tenants with a local index, on a server of its own."""

    def __init__(self, server, session, name):
        self.server, self.session, self.name = server, session, name
        session.execute(f"CREATE TABLE tenants.{name} (tenant int, id int, v vector<float, {DIMENSIONS}>, PRIMARY KEY (tenant, id))")
        session.execute(f"CREATE CUSTOM INDEX {name}_v ON tenants.{name} ((tenant), v) USING 'vector_index' WITH OPTIONS = {{'similarity_function': 'euclidean'}}")
        self._insert = session.prepare(f"INSERT INTO tenants.{name} (tenant, id, v) VALUES (?, ?, ?)")
        self.rows = 0

    def insert(self, tenants, ids, vectors):
        """Writes rows, which lie tenant by tenant. Returns the seconds until they are indexed."""
        began = time.monotonic()
        wire = vectors.astype(">f4")
        edges = [0, *(numpy.flatnonzero(numpy.diff(tenants)) + 1), len(tenants)]
        parts = [
            (at, min(at + ROWS_IN_A_BATCH, last))
            for first, last in zip(edges, edges[1:])
            for at in range(first, last, ROWS_IN_A_BATCH)
        ]
        numpy.random.default_rng(5).shuffle(parts)
        statements = ((self._batch(tenants, ids, wire, *part), ()) for part in parts)
        execute_concurrent(self.session, statements, IN_FLIGHT, results_generator=False)
        self.rows += len(tenants)
        self.server.wait_for_index("tenants", f"{self.name}_v", self.rows, INDEXED_SECONDS)
        # Rows are found before the graph has them; it has them once the memory stays as it is.
        last = [None] * 4

        def is_still():
            last[:] = [*last[1:], self.memory()]
            return all(one == last[0] for one in last)

        eventually(is_still, INDEXED_SECONDS, every=0.5)
        return time.monotonic() - began

    def _batch(self, tenants, ids, wire, first, last):
        batch = BatchStatement(BatchType.UNLOGGED)
        for at in range(first, last):
            row = self._insert.bind((int(tenants[at]), int(ids[at])))
            # The vector as it is on the wire: the driver would make it of numbers one by one.
            row.values[2] = wire[at].tobytes()
            batch.add(row)
        return batch

    def memory(self):
        """Bytes by part of the index."""
        _, text = self.server.http("/metrics")
        found = re.findall(rf'^index_memory_bytes{{component="(\w+)",index_name="{self.name}_v".*}} (\S+)$', text, re.M)
        return {component: float(number) for component, number in found}


class Searches:
    """Searches over HTTP on one connection."""

    def __init__(self, index):
        self._path = f"/api/v1/indexes/tenants/{index.name}_v/ann"
        self._connection = http.client.HTTPConnection(index.server.host, index.server.http_port)

    def nearest(self, tenant, vector):
        """(ids, seconds)"""
        filter = {"restrictions": [{"type": "==", "lhs": "tenant", "rhs": int(tenant)}], "allow_filtering": False}
        body = json.dumps({"vector": vector, "limit": K, "filter": filter})
        began = time.perf_counter()
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        text = response.read()
        seconds = time.perf_counter() - began
        assert response.status == 200, text
        return json.loads(text)["primary_keys"]["id"], seconds


def measure(index, tenants, ids, vectors, probes, title):
    """Prints recall and times of searches by class of tenants."""
    searches = Searches(index)
    rng = numpy.random.default_rng(3)
    print(f"\n{title}\n\n| rows of the tenant | tenants | recall@{K} | median ms | P99 ms |\n| --- | --: | --: | --: | --: |")
    for (least, most), chosen in probes.items():
        hits = wanted = 0
        times = []
        for tenant in chosen:
            first, last = numpy.searchsorted(tenants, [tenant, tenant + 1])
            own = vectors[first:last]
            for _ in range(QUERIES_OF_A_TENANT):
                query = own[rng.integers(len(own))] + rng.normal(size=DIMENSIONS).astype(numpy.float32) * 0.3
                found, seconds = searches.nearest(tenant, query.tolist())
                true = ids[first:last][numpy.argsort(((own - query) ** 2).sum(axis=1))[:K]]
                assert len(found) == len(true), f"tenant {tenant} has {len(true)} rows and gets {len(found)}"
                hits, wanted = hits + len(set(found) & set(true.tolist())), wanted + len(true)
                times.append(seconds * 1000)
        p99 = sorted(times)[int(len(times) * 0.99)]
        print(f"| {least} to {most} | {len(chosen)} | {hits / wanted:.4f} | {statistics.median(times):.2f} | {p99:.2f} |", flush=True)


def tiny(server, session):
    """Prints what a partition of one row takes beside what a row of a large one does."""
    rows = min(OPTIONS.tenants, 100_000)
    ids, vectors = numpy.arange(rows), made(rows, 9)
    totals = []
    for name, tenants in (("alone", numpy.arange(rows)), ("together", numpy.arange(rows) // 1000)):
        index = Index(server, session, name)
        index.insert(tenants, ids, vectors)
        totals.append(index.memory())
        session.execute(f"DROP TABLE tenants.{name}")
    print(f"\n{rows} rows of index memory, bytes a row:\n\n| part | each its own tenant | 1,000 a tenant | difference |\n| --- | --: | --: | --: |")
    alone, together = totals
    for part in [*alone, "all"]:
        a, b = (sum(total.values()) if part == "all" else total[part] for total in (alone, together))
        print(f"| {part} | {a / rows:.1f} | {b / rows:.1f} | {(a - b) / rows:.1f} |", flush=True)


def made(rows, seed):
    """Vectors around centres, in random order."""
    rng = numpy.random.default_rng(seed)
    centres = numpy.random.default_rng(1).normal(size=(CLUSTERS, DIMENSIONS)).astype(numpy.float32)
    noise = rng.normal(size=(rows, DIMENSIONS)).astype(numpy.float32)
    return centres[rng.integers(CLUSTERS, size=rows)] + noise * 0.3


def main():
    count, exponent = sizes(OPTIONS.tenants, OPTIONS.rows, OPTIONS.largest)
    tenants = numpy.repeat(numpy.arange(OPTIONS.tenants), count)
    ids, vectors = numpy.arange(len(tenants)), made(len(tenants), 2)
    rng = numpy.random.default_rng(4)
    probes = {}
    for least, most in CLASSES:
        of_class = numpy.flatnonzero((count >= least) & (count <= most))
        if len(of_class) > 0:
            probes[least, most] = rng.choice(of_class, min(TENANTS_OF_A_CLASS, len(of_class)), replace=False)
    is_probe = numpy.isin(tenants, numpy.concatenate(list(probes.values())))
    later = ~is_probe & (rng.random(len(tenants)) < LATER)
    print(f"{len(tenants)} rows, {OPTIONS.tenants} tenants of {count.min()} to {count.max()} rows (exponent {exponent:.2f}), {DIMENSIONS} dimensions")
    with tempfile.TemporaryDirectory() as directory, Server(pathlib.Path(directory) / "data") as server:
        with client_of_one((server.host, server.cql_port)) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE tenants WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            tiny(server, session)
            index = Index(server, session, "all")
            seconds = index.insert(tenants[~later], ids[~later], vectors[~later])
            print(f"\n{index.rows} rows written and indexed in {seconds:.0f} s", flush=True)
            measure(index, tenants, ids, vectors, probes, "Before the ingest of others:")
            seconds = index.insert(tenants[later], ids[later], vectors[later])
            print(f"\n{later.sum()} rows of other tenants written and indexed in {seconds:.0f} s", flush=True)
            measure(index, tenants, ids, vectors, probes, "After it:")
            parts = index.memory()
            shown = ", ".join(f"{part} {number / index.rows:.1f}" for part, number in parts.items())
            print(f"\nIndex memory, bytes a row: {sum(parts.values()) / index.rows:.1f} ({shown})")


main()
