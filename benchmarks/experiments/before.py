"""Measures this program next to an earlier one, in turns: see `before`."""

import contextlib
import os
import sys
import tempfile
import time

from served import Measured, Times, queries, spread, texts
from unused import ANN, fill

ROWS, SEARCHES, READS, WRITES = 10_000, 400, 600, 300
ROUNDS = int(os.environ.get("ROUNDS", "15"))
IDLE_SECONDS = 8
READ = "SELECT id, n FROM texts WHERE id = ?"
WRITE = "INSERT INTO beside (id, n) VALUES (?, ?)"


def measure(server, turn, vectors):
    times = Times()
    with times.of("a vector search", server, SEARCHES):
        for vector in vectors:
            server.run(ANN, [vector])
    with times.of("a read of a row", server, READS):
        for number in range(READS):
            server.run(READ, [number * 7 % ROWS])
    with times.of("a write", server, WRITES):
        for number in range(WRITES):
            server.run(WRITE, [number, turn])
    return times


def idle_share(server):
    """The share of a core that a server takes without requests."""
    before = server.cpu()
    time.sleep(IDLE_SECONDS)
    return (server.cpu() - before) / IDLE_SECONDS


def main(before):
    _, bodies, vectors = texts(ROWS)
    rows = [(id, 0, body, vector.tolist()) for id, (body, vector) in enumerate(zip(bodies, vectors))]
    asked = [vector.tolist() for vector in queries()[1][:SEARCHES]]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [Measured(folder, "before", before), Measured(folder, "now")]
        for server in servers:
            stack.enter_context(server)
            fill(server, rows, False)
            measure(server, 0, asked)
        idle = [f"{idle_share(server):.2%}" for server in servers]
        rounds = []
        for turn in range(1, ROUNDS + 1):
            print(f"# round {turn} of {ROUNDS}", file=sys.stderr)
            order = servers if turn % 2 else servers[::-1]
            rounds.append({server.name: measure(server, turn, asked) for server in order})
    print("µs of the server's processor, and times those of before:\n")
    print("| | before | now | times | times by the clock |\n| --- | --: | --: | --: | --: |")
    for what in rounds[0]["now"].number:
        cells = [spread([one[name].micros(what) for one in rounds], 0) for name in ("before", "now")]
        for clock in ("cpu", "wall"):
            cells.append(spread([one["now"].micros(what, clock) / one["before"].micros(what, clock) for one in rounds]))
        print(f"| {what} | {' | '.join(cells)} |")
    print(f"| idle, share of a core | {' | '.join(idle)} | | |")


if __name__ == "__main__":
    main(*sys.argv[1:])
