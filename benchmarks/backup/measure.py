"""Measures backups of a server that runs: see `run`, which starts it."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time
from statistics import median

from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args

ROW_BYTES = 64 * 1024
# Point reads that are due in a second, and the most that are under way.
READS, AT_ONCE = 500, 64


def fill(address, mebibytes):
    """Writes rows that don't compress."""
    host, port = address.rsplit(":", 1)
    source = random.Random(1)
    with Cluster([host], port=int(port)) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE copied WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE copied.blobs (id int PRIMARY KEY, data blob)")
        insert = session.prepare("INSERT INTO copied.blobs (id, data) VALUES (?, ?)")
        rows = ((number, source.randbytes(ROW_BYTES)) for number in range(mebibytes * 1024 * 1024 // ROW_BYTES))
        execute_concurrent_with_args(session, insert, rows, concurrency=32, results_generator=False)


def size(folder):
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


class Measured:
    def __init__(self, arguments):
        self.arguments, self.number = arguments, 0

    def location(self):
        """A directory without a backup, so that all is sent."""
        self.number += 1
        return pathlib.Path(self.arguments.to) / f"backup-{self.number}"

    def back_up(self, compression="none"):
        """Makes a backup of all. Returns its bytes and seconds."""
        target = self.location()
        words = ["backup", "--location", f"file://{target}", "--compression", compression, "--http", self.arguments.http, "--json"]
        began = time.monotonic()
        subprocess.run([self.arguments.program, *words], check=True, stdout=subprocess.PIPE)
        seconds = time.monotonic() - began
        listed = subprocess.run(
            [self.arguments.program, "backup", "list", "--location", f"file://{target}", "--json"], check=True, stdout=subprocess.PIPE
        )
        shutil.rmtree(target)
        return json.loads(listed.stdout)[0]["bytes"], seconds

    def copy(self):
        """Copies the files of the rows and of the indexes, and waits for the disk. Returns bytes and seconds."""
        target = pathlib.Path(self.arguments.to) / "raw"
        target.mkdir()
        folders = [folder for name in ("db", "indexes") if (folder := pathlib.Path(self.arguments.data_dir) / name).exists()]
        began = time.monotonic()
        subprocess.run(["cp", "-a", *folders, target], check=True)
        subprocess.run(["sync", "-f", target], check=True)
        seconds = time.monotonic() - began
        copied = size(target)
        shutil.rmtree(target)
        return copied, seconds

    def read(self):
        """P99 of point reads in milliseconds."""
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            words = ["bench", "read-rows", "--cql", self.arguments.cql, "--data", self.arguments.data, "-k", 1, "-c", AT_ONCE]
            words += ["--rate", READS, "--seconds", self.arguments.seconds, "--warm-up", 1, "--json", file.name]
            subprocess.run([self.arguments.program, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
            records = [json.loads(line) for line in open(file.name)]
        [record] = [record for record in records if record["type"] == "measurement"]
        return record["latency_ms"]["p99"]

    @contextlib.contextmanager
    def backing_up(self):
        """Makes one backup after the other for as long as this lasts."""
        stop, sent, begun = threading.Event(), [], threading.Event()

        def work():
            while not stop.is_set():
                begun.set()
                sent.append(self.back_up())

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        try:
            yield sent
        finally:
            stop.set()
            thread.join()


def written(pid):
    """Bytes that a process has handed to the operating system to be written."""
    with open(f"/proc/{pid}/io") as file:
        return int(dict(line.split(": ") for line in file.read().splitlines())["wchar"])


@contextlib.contextmanager
def watched(pid, series, file):
    """Adds a point for each fifth of a second to the chart of bytes over time."""
    stop, first, began = threading.Event(), written(pid), time.monotonic()
    labels = {"type": "point", "chart": "Bytes written in a backup", "x_label": "seconds", "y_label": "MiB"}

    def work():
        with open(file, "a") as out:
            while not stop.wait(0.2):
                point = {"series": series, "x": time.monotonic() - began, "y": (written(pid) - first) / 2**20}
                out.write(json.dumps(labels | point) + "\n")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def in_turns(rounds, ways):
    """Runs each way once in a round, every second round in reverse. Returns the results of each, in the order of rounds."""
    results = {name: [] for name in ways}
    for number in range(rounds):
        for name in sorted(ways, reverse=number % 2 == 1):
            results[name].append(ways[name]())
    return results


def spread(values, digits=2):
    return f"{median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def rates(results):
    return [bytes_ / 2**20 / seconds for bytes_, seconds in results]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("program", "cql", "http", "pid", "data", "data-dir", "to", "json"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    fill(arguments.cql, arguments.mib)
    measured = Measured(arguments)

    def beside():
        with measured.backing_up() as sent:
            p99 = measured.read()
        return p99, sent

    reads = in_turns(arguments.rounds, {"alone": measured.read, "beside": beside})
    alone, during = reads["alone"], [p99 for p99, _ in reads["beside"]]
    sent = [one for _, of_round in reads["beside"] for one in of_round]
    idle = in_turns(arguments.rounds, {"a backup": measured.back_up, "cp": measured.copy, "zstd": lambda: measured.back_up("zstd")})
    with watched(arguments.pid, "idle", arguments.json):
        measured.back_up()
    with watched(arguments.pid, "beside point reads", arguments.json), measured.backing_up():
        measured.read()

    print(f"{arguments.mib} MiB that don't compress, {READS} point reads a second, {arguments.rounds} rounds in turns\n")
    print("| point reads | P99, ms | by alone |")
    print("| --- | --: | --: |")
    print(f"| alone | {spread(alone)} | |")
    print(f"| beside a backup | {spread(during)} | {spread([a / b for a, b in zip(during, alone, strict=True)])} |")
    raw = rates(idle["cp"])
    print("\n| copying | MiB a second | by `cp` |")
    print("| --- | --: | --: |")
    print(f"| `cp` and `sync` | {spread(raw, 0)} | |")
    for name, words in (("a backup", "a backup of an idle server"), ("zstd", "the same, compressed by zstd")):
        of_way = rates(idle[name])
        print(f"| {words} | {spread(of_way, 0)} | {spread([a / b for a, b in zip(of_way, raw, strict=True)])} |")
    print(f"| a backup beside point reads | {spread(rates(sent), 0)} | |")
    print(f"\n{os.cpu_count()} cores. The chart of the bytes over time is drawn of {arguments.json}.")


main()
