"""Records stories anew from a real Cassandra: record_stories.py [HOST:PORT]

Without an address it starts a Cassandra of its own."""

import contextlib
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("histories", "compat", "drivers", "cassandra")]

import compare  # noqa: E402
import recording  # noqa: E402
import stories  # noqa: E402
from ring import cassandra_ring  # noqa: E402
from sides import Side, is_read, without_pages  # noqa: E402

STORIES = 24
STEPS_EACH = 170
# Seeds that no run begins with.
FIRST_SEED = 1_000_000


def recorded(side, seed):
    """The steps of a story with Cassandra's answers."""
    definitions, steps = stories.story(seed, STEPS_EACH)
    side.begin()
    return [_asked(side, step) for step in definitions + steps]


def _asked(side, step):
    answer, plain = side.ask(step).result(), without_pages(step)
    if is_read(step) and plain:
        # Of some reads Cassandra's pages do not add up to its answer: see differential.PAGES.
        whole = side.ask(plain).result()
        if compare.what_counts(whole) != compare.what_counts(answer):
            step, answer = plain, whole
    return step, answer


def main():
    with contextlib.ExitStack() as stack:
        if len(sys.argv) > 1:
            address = sys.argv[1]
        else:
            ring = stack.enter_context(cassandra_ring())
            address = f"{ring.hosts[0]}:{ring.port}"
        side = Side(address)
        recording.write([recorded(side, seed) for seed in range(FIRST_SEED, FIRST_SEED + STORIES)])
    print(f"{sum(map(len, recording.read()))} statements in {recording.PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
