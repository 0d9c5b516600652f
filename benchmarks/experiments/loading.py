"""Prints the tables of `loading`: rows a second of `annulus import` and of cqlsh's COPY FROM, and the memory of an import.

Each time is that of a whole process, from its start to its end. Both sides have their own default settings.
"""

import argparse
import csv
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import pyarrow
import pyarrow.parquet

CQLSH = pathlib.Path(sys.executable).parent / "cqlsh"
KEYSPACE = "loading"
BODY_BYTES = 200
MEMORY_GOAL_MIB = 256
PARQUET_DIMENSIONS = 384
ROW_GROUP = 100_000


class Ended:
    """A process that has ended well: its time in seconds, its processor time, and its largest memory in MiB.

    The memory is the high-water mark that the system keeps, read a hundred times a second. (`ru_maxrss` would do, but it has
    that of this process, too, from before the program began.)"""

    def __init__(self, command, directory):
        self.mib = 0
        began = time.perf_counter()
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen([str(word) for word in command], cwd=directory, stdout=said, stderr=said)
            ended = 0
            while not ended:
                time.sleep(0.01)
                self.mib = max(self.mib, high_water(process.pid))
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            # The process is waited for already, which Popen must know.
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.perf_counter() - began
            said.seek(0)
            self.said = said.read().decode(errors="replace")
        if process.returncode != 0:
            raise SystemExit(f"{command[0]} ended with {process.returncode}: {self.said[-2000:]}")
        self.cpu_seconds = usage.ru_utime + usage.ru_stime


def high_water(pid):
    """The most memory that a process had at a time, mapped files included, in MiB; 0 if it has ended."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


class Loading:
    """The server, and a directory for files."""

    def __init__(self, annulus, cql, directory):
        self.annulus, self.cql, self.directory = pathlib.Path(annulus).resolve(), cql, directory

    def shell(self, *statements):
        command = [self.annulus, "shell", "--cql", self.cql, "--csv"]
        done = subprocess.run([*command, "-e", "; ".join(statements)], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def make_table(self, columns):
        self.shell(
            f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            f"DROP TABLE IF EXISTS {KEYSPACE}.t",
            f"CREATE TABLE {KEYSPACE}.t ({', '.join(f'{name} {kind}' for name, kind in columns.items())}, PRIMARY KEY (id))",
        )

    def by_import(self, file):
        command = [self.annulus, "import", file, "--table", f"{KEYSPACE}.t", "--cql", self.cql]
        return Ended(command, self.directory)

    def by_copy(self, file):
        host, port = self.cql.split(":")
        with open(file) as opened:
            names = opened.readline().strip()
        statement = f"COPY {KEYSPACE}.t ({names}) FROM '{file}' WITH HEADER = true"
        patience = ["--connect-timeout", "60", "--request-timeout", "60"]
        return Ended([CQLSH, *patience, host, port, "-e", statement], self.directory)

    def check(self, rows):
        """Checks that the table has all rows."""
        found = int(self.shell(f"SELECT count(*) FROM {KEYSPACE}.t")[-1])
        if found != rows:
            raise SystemExit(f"the table has {found} of {rows} rows")


def written(file, columns, rows, dimensions):
    """Writes a CSV file with the rows."""
    made = numpy.random.default_rng(7)
    with open(file, "w", newline="") as opened:
        out = csv.writer(opened)
        out.writerow(columns)
        for row in range(rows):
            cells = [row, int(made.integers(1950, 2026)), f"{made.random() * 100:.2f}", made.bytes(BODY_BYTES // 2).hex()]
            if dimensions:
                cells.append("[" + ", ".join(f"{element:.6f}" for element in made.normal(size=dimensions)) + "]")
            out.writerow(cells)


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def compare(loading, title, rows, rounds, dimensions):
    columns = {"id": "int", "year": "int", "price": "double", "body": "text"}
    if dimensions:
        columns["embedding"] = f"vector<float, {dimensions}>"
    file = loading.directory / "rows.csv"
    written(file, columns, rows, dimensions)
    sides = {"annulus import": loading.by_import, "cqlsh COPY FROM": loading.by_copy}
    ended = {name: [] for name in sides}
    for turn in range(rounds):
        # The sides begin in turns.
        for name in sorted(sides, reverse=turn % 2 == 1):
            loading.make_table(columns)
            ended[name].append(sides[name](file))
            loading.check(rows)
    ours, theirs = ended.values()
    ratios = [copy.seconds / own.seconds for own, copy in zip(ours, theirs, strict=True)]
    for name, of_side in ended.items():
        rates = spread([rows / one.seconds for one in of_side], ",.0f")
        cpu = spread([one.cpu_seconds for one in of_side], ".1f")
        ratio = spread(ratios, ".1f") if of_side is ours else ""
        print(f"| {title} | {name} | {rates} | {cpu} | {ratio} |", flush=True)
    file.unlink()


def parquet_of(file, mib):
    """Writes a Parquet file of at least that size, of numbers, texts and vectors that do not compress. Returns its rows."""
    made = numpy.random.default_rng(7)
    rows = 0
    schema = pyarrow.schema(
        {"id": pyarrow.int64(), "body": pyarrow.string(), "embedding": pyarrow.list_(pyarrow.float32(), PARQUET_DIMENSIONS)}
    )
    with pyarrow.parquet.ParquetWriter(file, schema, compression="snappy") as writer:
        while file.stat().st_size < mib << 20:
            vectors = made.normal(size=ROW_GROUP * PARQUET_DIMENSIONS).astype(numpy.float32)
            columns = [
                numpy.arange(rows, rows + ROW_GROUP),
                [made.bytes(BODY_BYTES // 2).hex() for _ in range(ROW_GROUP)],
                pyarrow.FixedSizeListArray.from_arrays(vectors, PARQUET_DIMENSIONS),
            ]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=ROW_GROUP)
            rows += ROW_GROUP
    return rows


def measure_memory(loading, mib):
    if shutil.disk_usage(loading.directory).free < 5 * mib << 20:
        raise SystemExit(f"{loading.directory} lacks the room for five times {mib} MiB: set DATA and TMPDIR to another disk")
    file = loading.directory / "rows.parquet"
    rows = parquet_of(file, mib)
    loading.make_table({"id": "bigint", "body": "text", "embedding": f"vector<float, {PARQUET_DIMENSIONS}>"})
    ended = loading.by_import(file)
    loading.check(rows)
    reached = "reached" if ended.mib <= MEMORY_GOAL_MIB else "missed"
    print(
        f"\nA Parquet file of {file.stat().st_size >> 20:,} MiB, {rows:,} rows x {PARQUET_DIMENSIONS}, row groups of "
        f"{ROW_GROUP:,}: {rows / ended.seconds:,.0f} rows a second, at most {ended.mib:.0f} MiB of memory "
        f"(goal {MEMORY_GOAL_MIB}: {reached})"
    )


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("annulus")
    flags.add_argument("cql")
    flags.add_argument("directory", type=pathlib.Path)
    for name in ["rows", "rounds", "dimensions", "parquet-mib"]:
        flags.add_argument(f"--{name}", type=int, required=True)
    given = flags.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory.resolve()) as directory:
        loading = Loading(given.annulus, given.cql, pathlib.Path(directory))
        print(f"{given.rows:,} rows, {given.rounds} rounds in turns: median (least to most)\n")
        print("| rows of | side | rows a second | processor seconds of the client | times COPY's rate |")
        print("| --- | --- | --: | --: | --: |")
        compare(loading, "numbers and a text", given.rows, given.rounds, 0)
        compare(loading, f"these and {given.dimensions} floats", given.rows, given.rounds, given.dimensions)
        if given.parquet_mib:
            measure_memory(loading, given.parquet_mib)


main()
