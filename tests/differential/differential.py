"""Runs stories on a real Cassandra and on `annulus serve`, and prints what differs as scripts.

    differential.py [--statements N] [--first-seed N] [--workers N] [--shrink N] [--meant FILE]
                    [--cassandra HOST:PORT] [--annulus HOST:PORT]

Without addresses it starts both. Each worker is a process that runs whole stories in a keyspace of
its own. The exit code is 1 if there is a difference that is not meant (meant.py)."""

import argparse
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("histories", "compat", "drivers", "cassandra")]

from ring import cassandra_ring  # noqa: E402
from running import Run  # noqa: E402
from server import Server  # noqa: E402

STORY_LENGTH = 400
WORKERS = 4
"""Stories at once. More than processors, since a story often waits for a server."""
SHRUNK_MAX = 20
"""The number of differences that are shrunk; more of them are only printed."""
FOUND_MAX = 200
# Cassandra syncs and flushes the tables of its schema at each change of it, which takes most of a story's time.
# A server that lives for one run needs neither.
UNSAFE_SCHEMA = "-Dcassandra.test.flush_local_schema_changes=false -Dcassandra.unsafesystem=true"


@contextlib.contextmanager
def servers(cassandra=None, annulus=None):
    """Yields the addresses of both servers, and starts those of which there is none."""
    with contextlib.ExitStack() as stack:
        if cassandra is None:
            ring = stack.enter_context(cassandra_ring(java_options=UNSAFE_SCHEMA))
            cassandra = f"{ring.hosts[0]}:{ring.port}"
        if annulus is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            server = stack.enter_context(Server(pathlib.Path(directory) / "data", "--durability", "buffered"))
            annulus = f"{server.host}:{server.cql_port}"
        yield cassandra, annulus


# The run of a worker's process.
_run = None


def _begin(cassandra, annulus):
    global _run
    # The process that started the workers ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _run = Run(cassandra, annulus, f"differential_{os.getpid()}")


def _story(seed):
    return _run.story(seed, STORY_LENGTH)


def _shrunk(difference):
    return _run.shrunk(difference)


class Totals:
    """What the stories of all workers came to."""

    def __init__(self):
        self.asked, self.refused, self.stories = 0, 0, 0
        # Of the stories alone, without what is made small after them.
        self.seconds = None
        self.meant, self.found = collections.Counter(), []

    def add(self, told):
        self.asked += told.asked
        self.refused += told.refused
        self.stories += 1
        self.meant.update(reason for reason, _ in told.meant)
        self.found += told.found

    def summary(self):
        lines = [f"{self.asked} statements, {self.refused} of them refused; {len(self.found)} differences"]
        lines += [f"{sum(self.meant.values())} differences that are meant:"]
        lines += [f"{count:6} {reason}" for reason, count in self.meant.most_common()]
        return "\n".join(lines)


def _run_stories(pool, seeds, options, totals):
    """Runs stories until there are as many statements."""
    workers, statements = options.workers, options.statements
    running = set()
    while running or totals.asked < statements:
        while len(running) < workers and totals.asked < statements and len(totals.found) < FOUND_MAX:
            running.add(pool.submit(_story, next(seeds)))
        if not running:
            return
        ended, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for each in ended:
            told = each.result()
            totals.add(told)
            for difference in told.found:
                print(f"{difference}\n", flush=True)
            if options.meant:
                options.meant.writelines(f"# {reason}\n{difference}\n\n" for reason, difference in told.meant)


def _options():
    parser = argparse.ArgumentParser(description="Compare Annulus with a real Cassandra.")
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=WORKERS, help="stories at once")
    parser.add_argument("--shrink", type=int, default=SHRUNK_MAX, help="differences to shrink")
    parser.add_argument("--meant", type=argparse.FileType("w"), metavar="FILE", help="write differences that are meant")
    parser.add_argument("--cassandra", metavar="HOST:PORT", help="one that is already there")
    parser.add_argument("--annulus", metavar="HOST:PORT", help="one that is already there")
    return parser.parse_args()


def main():
    options = _options()
    totals, began = Totals(), time.monotonic()
    # A run that is stopped by Ctrl-C or SIGTERM tells what it has seen.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with servers(options.cassandra, options.annulus) as addresses:
        pool = concurrent.futures.ProcessPoolExecutor(options.workers, initializer=_begin, initargs=addresses)
        with pool, contextlib.suppress(KeyboardInterrupt):
            seeds = iter(range(options.first_seed, sys.maxsize))
            _run_stories(pool, seeds, options, totals)
            totals.seconds = time.monotonic() - began
            for text in pool.map(_shrunk, totals.found[: options.shrink]):
                print(f"{text}\n", flush=True)
    print(totals.summary())
    seconds = totals.seconds or time.monotonic() - began
    print(f"{totals.stories} stories from seed {options.first_seed}, {seconds:.0f} s")
    sys.exit(1 if totals.found else 0)


if __name__ == "__main__":
    main()
