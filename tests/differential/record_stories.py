"""Records stories anew from a real Cassandra: record_stories.py [CASSANDRA ANNULUS]

Without addresses (HOST:PORT) it starts both. What the long run has to prove by other questions is
left out: the test of the recorded stories has no Cassandra to ask."""

import concurrent.futures
import os
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("histories", "compat", "drivers", "cassandra")]

import recording  # noqa: E402
import stories  # noqa: E402
from differential import WORKERS, servers  # noqa: E402
from running import Run  # noqa: E402
from sides import KEYSPACE, ends_story, has_fault, is_equal, is_read, without_pages  # noqa: E402

STORIES = 24
STEPS_EACH = 170
# Seeds that no run begins with.
FIRST_SEED = 1_000_000


def recorded(run, seed):
    """The steps of a story with Cassandra's answers, up to its end or to a difference that has no reason."""
    definitions, steps = stories.story(seed, STEPS_EACH)
    run.begin()
    told = []
    for step in definitions + steps:
        theirs, ours = run.ask(step)
        if not is_equal(theirs, ours):
            before = [earlier for earlier, _ in told]
            reason, witness = run.reason_for(step, theirs, ours, before)
            if reason is None and is_read(step) and has_fault(theirs):
                continue
            if reason is None:
                # The long run finds out whether it is chance, and the story goes up to here.
                print(f"seed {seed} ends at\n{step}\n--- Cassandra\n{theirs}\n--- Annulus\n{ours}\n", flush=True)
                break
            if witness == "pages":
                step = without_pages(step)
                theirs, ours = run.ask(step)
                witness = None if is_equal(theirs, ours) else run.reason_for(step, theirs, ours, before)[1]
            if witness:
                continue
        told.append((step, theirs))
        if ends_story(step, theirs, ours):
            break
    return told


# The run of a worker's process.
_run = None


def _begin(cassandra, annulus):
    global _run
    _run = Run(cassandra, annulus, f"{KEYSPACE}_{os.getpid()}")


def _recorded(seed):
    return recorded(_run, seed)


def main():
    seeds = range(FIRST_SEED, FIRST_SEED + STORIES)
    with servers(*sys.argv[1:3]) as addresses:
        pool = concurrent.futures.ProcessPoolExecutor(WORKERS, initializer=_begin, initargs=addresses)
        with pool:
            recording.write(list(pool.map(_recorded, seeds)))
    print(f"{sum(map(len, recording.read()))} statements in {recording.PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
