"""Records stories anew from a real Cassandra: record_stories.py [CASSANDRA ANNULUS]

Without addresses (HOST:PORT) it starts both. What the long run has to prove by other questions is
left out: the test of the recorded stories has no Cassandra to ask."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("histories", "compat", "drivers", "cassandra")]

import recording  # noqa: E402
import stories  # noqa: E402
from differential import servers  # noqa: E402
from running import Run  # noqa: E402
from sides import KEYSPACE, ends_story, is_equal, without_pages  # noqa: E402

STORIES = 24
STEPS_EACH = 170
# Seeds that no run begins with.
FIRST_SEED = 1_000_000


def recorded(run, seed):
    """The steps of a story with Cassandra's answers."""
    definitions, steps = stories.story(seed, STEPS_EACH)
    run.begin()
    told = []
    for step in definitions + steps:
        theirs, ours = run.ask(step)
        if not is_equal(theirs, ours):
            reason, witness = run.reason_for(step, theirs, ours, [earlier for earlier, _ in told])
            if reason is None:
                sys.exit(f"seed {seed}: a difference that is not meant\n{step}\n--- Cassandra\n{theirs}\n--- Annulus\n{ours}")
            if witness == "pages":
                step = without_pages(step)
                theirs, ours = run.ask(step)
                witness = None if is_equal(theirs, ours) else run.reason_for(step, theirs, ours, [earlier for earlier, _ in told])[1]
            if witness:
                continue
        told.append((step, theirs))
        if ends_story(step, theirs, ours):
            break
    return told


def main():
    with servers(*sys.argv[1:3]) as addresses:
        run = Run(*addresses, KEYSPACE)
        recording.write([recorded(run, seed) for seed in range(FIRST_SEED, FIRST_SEED + STORIES)])
    print(f"{sum(map(len, recording.read()))} statements in {recording.PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
