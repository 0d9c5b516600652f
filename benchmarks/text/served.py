"""Servers for measurements, a client of each, and the processor time that each took."""

import contextlib
import os
import pathlib
import statistics
import sys
import time
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "drivers"))
os.environ.setdefault("ANNULUS_BINARY", str(ROOT / os.environ.get("ANNULUS", "target/release/annulus")))

import process  # noqa: E402
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile  # noqa: E402
from cassandra.concurrent import execute_concurrent_with_args  # noqa: E402
from cassandra.query import tuple_factory  # noqa: E402
from server import Server, eventually  # noqa: E402

KEYSPACE = "bench"
DATA = ROOT / "benchmarks/ann/data"
INDEX_SECONDS_MAX = 600
CONCURRENCY = 64
ALL_CPUS = os.sched_getaffinity(0)
SERVER_CPUS, CLIENT_CPUS = (
    {int(cpu) for cpu in os.environ.get(name, default).split(",")}
    for name, default in (("SERVER_CPUS", "1"), ("CLIENT_CPUS", "0"))
)


class Measured:
    """A server on cores of its own, with a session in an empty keyspace."""

    def __init__(self, folder, name, binary=None):
        self.name = name
        with unittest.mock.patch.object(process, "BINARY", pathlib.Path(binary or process.BINARY)):
            self.server = Server(pathlib.Path(folder) / name, "--log", "warn")
        self.statements = {}

    def __enter__(self):
        # What is started has the cores of who starts it.
        os.sched_setaffinity(0, SERVER_CPUS & ALL_CPUS or ALL_CPUS)
        self.server.start()
        os.sched_setaffinity(0, CLIENT_CPUS & ALL_CPUS or ALL_CPUS)
        profile = ExecutionProfile(request_timeout=120, row_factory=tuple_factory)
        self._cluster = Cluster(
            [self.server.host],
            port=self.server.cql_port,
            protocol_version=4,
            compression=False,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        )
        self.session = self._cluster.connect()
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        self.session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")
        self.session.set_keyspace(KEYSPACE)
        return self

    def __exit__(self, *failure):
        self._cluster.shutdown()
        self.server.stop()

    def execute(self, text):
        return self.session.execute(text)

    def run(self, text, values):
        """Executes a statement that is prepared once."""
        if text not in self.statements:
            self.statements[text] = self.session.prepare(text)
        return self.session.execute(self.statements[text], values)

    def run_many(self, text, rows, concurrency=CONCURRENCY):
        if text not in self.statements:
            self.statements[text] = self.session.prepare(text)
        results = execute_concurrent_with_args(
            self.session, self.statements[text], rows, concurrency=concurrency, results_generator=True
        )
        for success, error in results:
            if not success:
                raise error

    def make_index(self, name, on, kind, options):
        self.execute(f"CREATE CUSTOM INDEX {name} ON {on} USING '{kind}' WITH OPTIONS = {options}")
        serves = lambda: self.server.index_status(KEYSPACE, name)["status"] == "SERVING"  # noqa: E731
        eventually(serves, INDEX_SECONDS_MAX, every=0.1)

    def cpu(self):
        """Processor seconds of all threads: each one's nanoseconds are the first of `schedstat`."""
        ran = 0
        for task in pathlib.Path(f"/proc/{self.server.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ran += int((task / "schedstat").read_text().split()[0])
        return ran / 1e9


class Times:
    """Seconds of the server's processor and of the clock, by what was done."""

    def __init__(self):
        self.cpu, self.wall, self.number = {}, {}, {}

    @contextlib.contextmanager
    def of(self, what, server, number):
        cpu, wall = server.cpu(), time.perf_counter()
        yield
        for times, seconds in ((self.cpu, server.cpu() - cpu), (self.wall, time.perf_counter() - wall)):
            times[what] = times.get(what, 0) + seconds
        self.number[what] = self.number.get(what, 0) + number

    def micros(self, what, clock="cpu"):
        return getattr(self, clock)[what] / self.number[what] * 1e6


def spread(values, digits=2):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def texts(rows=None):
    """The dictionary senses: topics, texts, vectors."""
    import numpy as np
    import pyarrow.parquet as parquet

    table = parquet.read_table(DATA / "texts50k_base.parquet").slice(0, rows)
    vectors = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return table["topic"].to_pylist(), table["text"].to_pylist(), vectors.astype(np.float32).reshape(len(table), -1)


def queries():
    """The held-out texts: texts, vectors."""
    import numpy as np
    import pyarrow.parquet as parquet

    table = parquet.read_table(DATA / "texts50k_queries.parquet", columns=["text", "embedding"])
    vectors = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return table["text"].to_pylist(), vectors.astype(np.float32).reshape(len(table), -1)
