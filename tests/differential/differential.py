"""Runs stories on a real Cassandra and on `annulus serve`, and prints what differs as a script.

    differential.py [--statements N] [--first-seed N] [--cassandra HOST:PORT] [--annulus HOST:PORT]

Without addresses it starts both. The exit code is 1 if there is a difference that is not meant
(meant.py)."""

import argparse
import collections
import contextlib
import pathlib
import signal
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("histories", "compat", "drivers", "cassandra")]

import compare  # noqa: E402
import stories  # noqa: E402
from meant import reason_for  # noqa: E402
from ring import cassandra_ring  # noqa: E402
from server import Server  # noqa: E402
from shrinking import shrunk  # noqa: E402
from sides import Side, ends_story, is_equal, is_read, is_refused, without_pages  # noqa: E402

STORY_LENGTH = 400
PAGES = "Cassandra's pages, put together, are not its own answer without pages; Annulus's are."
SHRUNK_MAX = 20
"""The number of differences that are shrunk; more of them are only printed."""


class Run:
    """Stories on two servers."""

    def __init__(self, cassandra, annulus, shrink):
        self.cassandra, self.annulus = Side(cassandra), Side(annulus)
        self.asked, self.refused = 0, 0
        self.meant, self.found = collections.Counter(), []
        self._shrinks_left = shrink

    def story(self, seed, length):
        """Runs a story up to its end, or to a difference after which the tables differ."""
        definitions, steps = stories.story(seed, length)
        self.begin()
        done = []
        for step in definitions + steps:
            theirs, ours = self.ask(step)
            self.asked += 1
            self.refused += is_refused(theirs)
            if is_equal(theirs, ours):
                done.append(step)
                continue
            reason = self.reason_for(step, theirs, ours)
            if reason:
                self.meant[reason] += 1
            else:
                self._report(seed, definitions, done, step, theirs, ours)
            if ends_story(step, theirs, ours) or not reason and not is_read(step):
                return
            done.append(step)
            if len(self.found) > 200:
                sys.exit("too many differences")

    def begin(self):
        for side in (self.cassandra, self.annulus):
            side.begin()

    def ask(self, step):
        """The answers of both: (Cassandra's, ours)."""
        theirs, ours = self.cassandra.ask(step), self.annulus.ask(step)
        return theirs.result(), ours.result()

    def reason_for(self, step, theirs, ours):
        """Why these different answers are meant to differ; None if they are not."""
        plain = without_pages(step)
        if is_read(step) and plain and compare.what_counts(self.ask(plain)[0]) != compare.what_counts(theirs):
            theirs, our_plain = self.ask(plain)
            if compare.what_counts(our_plain) == compare.what_counts(ours):
                if is_equal(theirs, ours) or reason_for(plain, theirs, ours):
                    return PAGES
        return reason_for(step, theirs, ours)

    def differs(self, steps, last):
        """Whether the last of these steps still differs, in a keyspace made anew."""
        self.begin()
        for step in steps:
            self.ask(step)
        theirs, ours = self.ask(last)
        return not is_equal(theirs, ours) and not self.reason_for(last, theirs, ours)

    def _report(self, seed, definitions, done, step, theirs, ours):
        before, note = [each for each in done if each not in definitions], ""
        if is_refused(theirs) and is_refused(ours):
            before = []  # Seldom of any meaning for a statement that is refused.
        elif self._shrinks_left > 0:
            self._shrinks_left -= 1
            before, note = shrunk(self, definitions, before, step)
        else:
            before, note = [], " (not shrunk)"
        script = "\n".join(f"{line};" if not line.startswith("@") else line for line in definitions + before + [step])
        self.found.append(seed)
        print(f"=== seed {seed}{note}\n{script}\n--- Cassandra\n{theirs}\n--- Annulus\n{ours}\n", flush=True)

    def summary(self):
        lines = [f"{self.asked} statements, {self.refused} of them refused; {len(self.found)} differences"]
        lines += [f"{sum(self.meant.values())} differences that are meant:"]
        lines += [f"{count:6} {reason}" for reason, count in self.meant.most_common()]
        return "\n".join(lines)


@contextlib.contextmanager
def servers(cassandra=None, annulus=None):
    """Yields the addresses of both servers, and starts those of which there is none."""
    with contextlib.ExitStack() as stack:
        if cassandra is None:
            ring = stack.enter_context(cassandra_ring())
            cassandra = f"{ring.hosts[0]}:{ring.port}"
        if annulus is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            server = stack.enter_context(Server(pathlib.Path(directory) / "data", "--durability", "buffered"))
            annulus = f"{server.host}:{server.cql_port}"
        yield cassandra, annulus


def main():
    parser = argparse.ArgumentParser(description="Compare Annulus with a real Cassandra.")
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=SHRUNK_MAX, help="differences to shrink")
    parser.add_argument("--cassandra", metavar="HOST:PORT", help="one that is already there")
    parser.add_argument("--annulus", metavar="HOST:PORT", help="one that is already there")
    options = parser.parse_args()
    with servers(options.cassandra, options.annulus) as (cassandra, annulus):
        run, seed, began = Run(cassandra, annulus, options.shrink), options.first_seed, time.monotonic()
        # A run that is stopped by Ctrl-C or SIGTERM tells what it has seen.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            while run.asked < options.statements:
                run.story(seed, min(STORY_LENGTH, options.statements - run.asked))
                seed += 1
        print(run.summary())
        print(f"seeds {options.first_seed} to {seed - 1}, {time.monotonic() - began:.0f} s")
    sys.exit(1 if run.found else 0)


if __name__ == "__main__":
    main()
