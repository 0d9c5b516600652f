"""Measures what a text index that nobody searches costs: vector searches and writes on `annulus
serve` with one and without one, two servers in turns, and prints a table.

    unused.py RECORDS

Both have a table `texts` with a vector index, and a table `beside` with another; on one server
`texts` has a text index, too. BEFORE names a program of an earlier commit, which is a third server
without a text index. ROWS and ROUNDS make it smaller. Writes are 32 at a time; their processor time
includes what the server does in SETTLE_SECONDS after the last one.
"""

import contextlib
import json
import os
import sys
import tempfile
import time

from served import Measured, Times, queries, spread, texts

ROWS = int(os.environ.get("ROWS", "20000"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
SEARCHES, WRITES, IN_FLIGHT = 400, 2_000, 32
SETTLE_SECONDS = 1

ANN = "SELECT id FROM texts ORDER BY v ANN OF ? LIMIT 10"
TABLE = "CREATE TABLE {} (id int PRIMARY KEY, n int, body text, v vector<float, 384>)"
INSERT = "INSERT INTO {} (id, n, body, v) VALUES (?, ?, ?, ?)"
UPDATE = "UPDATE texts SET n = ? WHERE id = ?"
SEARCH, BESIDE, NUMBER, ALL = (
    "a vector search",
    "a write of a table beside it",
    "a write of a column without an index",
    "a write of a row, text and vector",
)


def fill(server, rows, has_text_index):
    for table in ("texts", "beside"):
        server.execute(TABLE.format(table))
        server.make_index(f"{table}_v", f"{table} (v)", "vector_index", "{'similarity_function': 'cosine'}")
    server.run_many(INSERT.format("texts"), rows)
    if has_text_index:
        server.make_index("texts_body", "texts (body)", "fulltext_index", "{'analyzer': 'english'}")
    time.sleep(SETTLE_SECONDS)


def writes(turn, rows):
    """Rows with new values: the texts and vectors of others."""
    first = turn * WRITES % len(rows)
    chosen = [rows[(first + place) % len(rows)] for place in range(WRITES)]
    others = chosen[1:] + chosen[:1]
    return [(id, turn, body, vector) for (id, *_), (_, _, body, vector) in zip(chosen, others)]


def measure(server, turn, rows, vectors):
    times = Times()
    with times.of(SEARCH, server, SEARCHES):
        for vector in vectors:
            server.run(ANN, [vector])
    new = writes(turn, rows)
    for what, text, values in (
        (BESIDE, INSERT.format("beside"), new),
        (NUMBER, UPDATE, [(turn, id) for id, *_ in new]),
        (ALL, INSERT.format("texts"), new),
    ):
        cpu = server.cpu()
        with times.of(what, server, WRITES):
            server.run_many(text, values, IN_FLIGHT)
        time.sleep(SETTLE_SECONDS)
        times.cpu[what] = server.cpu() - cpu
    return times


def main(records):
    _, bodies, vectors = texts(ROWS)
    rows = [(id, 0, body, vector.tolist()) for id, (body, vector) in enumerate(zip(bodies, vectors))]
    asked = [vector.tolist() for vector in queries()[1][:SEARCHES]]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [Measured(folder, "without"), Measured(folder, "with")]
        if os.environ.get("BEFORE"):
            servers.append(Measured(folder, "before", os.environ["BEFORE"]))
        for server in servers:
            stack.enter_context(server)
            fill(server, rows, server.name == "with")
            measure(server, 0, rows, asked)
        rounds = []
        for turn in range(ROUNDS):
            print(f"# round {turn + 1} of {ROUNDS}", file=sys.stderr)
            order = servers[turn % len(servers) :] + servers[: turn % len(servers)]
            rounds.append({server.name: measure(server, turn + 1, rows, asked) for server in order})
        names = [server.name for server in servers]
    print(f"{ROWS:,} x 384; µs of the server's processor, and times those without the index:\n")
    others = names[1:]
    print(f"| | {' | '.join(names)} | {' | '.join(f'{name}, times (by the clock)' for name in others)} |")
    print(f"| --- |{' --: |' * (len(names) + len(others))}")
    with open(records, "a") as file:
        for what in (SEARCH, BESIDE, NUMBER, ALL):
            cells = [spread([one[name].micros(what) for one in rounds], 0) for name in names]
            for name in others:
                both = {
                    clock: [one[name].micros(what, clock) / one["without"].micros(what, clock) for one in rounds]
                    for clock in ("cpu", "wall")
                }
                cells.append(f"{spread(both['cpu'])}, {spread(both['wall'])}")
                print(json.dumps({"type": "ratio", "what": what, "of": name, **both}), file=file)
            print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
