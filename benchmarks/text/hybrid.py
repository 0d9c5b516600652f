"""Measures a hybrid search beside its parts, by CQL on `annulus serve` with the 50,000 texts, in
turns of BLOCK queries, and prints a table.

    hybrid.py RECORDS

ROWS, QUERIES and ROUNDS make it smaller. The client sends one statement at a time; times are the
server's processor time, and by the clock. The sum of the parts is taken within a round. A single
search for nothing but the key is answered by its index, without a look at the rows, and a hybrid one
reads them; so there are parts that return the texts, too, and thus read the rows.
"""

import json
import os
import sys
import tempfile

import documents
from served import Measured, Times, queries, spread, texts

ROWS = int(os.environ.get("ROWS", "50000"))
QUERIES = int(os.environ.get("QUERIES", "400"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
BLOCK = 20

ANN = "SELECT {} FROM texts ORDER BY v ANN OF ? LIMIT {}"
WORDS = "SELECT {} FROM texts ORDER BY BM25(body, ?) LIMIT {}"
HYBRID = "SELECT {} FROM texts ORDER BY RRF(ANN(v, ?), BM25(body, ?)) LIMIT 10"
OF_10 = HYBRID + " WITH hybrid_options = {{'candidates': 10}}"
KEY, ROW = "id", "id, body"
STATEMENTS = {
    "vector, 10": (ANN.format(KEY, 10), "v"),
    "words, 10": (WORDS.format(KEY, 10), "w"),
    "vector, 100": (ANN.format(KEY, 100), "v"),
    "words, 100": (WORDS.format(KEY, 100), "w"),
    "hybrid of 10 candidates": (OF_10.format(KEY), "vw"),
    "hybrid of 100 candidates": (HYBRID.format(KEY), "vw"),
    "rows by vector, 10": (ANN.format(ROW, 10), "v"),
    "rows by words, 10": (WORDS.format(ROW, 10), "w"),
    "rows by vector, 100": (ANN.format(ROW, 100), "v"),
    "rows by words, 100": (WORDS.format(ROW, 100), "w"),
    "rows by hybrid of 10 candidates": (OF_10.format(ROW), "vw"),
    "rows by hybrid of 100 candidates": (HYBRID.format(ROW), "vw"),
}
RATIOS = {
    f"{rows}hybrid of {candidates} candidates / both parts, {limit}": (
        f"{rows}hybrid of {candidates} candidates",
        (f"{rows}vector, {limit}", f"{rows}words, {limit}"),
    )
    for rows in ("", "rows by ")
    for candidates, limit in ((100, 100), (10, 10), (100, 10))
}


def fill(server):
    topics, bodies, vectors = texts(ROWS)
    server.execute("CREATE TABLE texts (id int PRIMARY KEY, topic text, body text, v vector<float, 384>)")
    rows = zip(range(len(bodies)), topics, bodies, (vector.tolist() for vector in vectors))
    server.run_many("INSERT INTO texts (id, topic, body, v) VALUES (?, ?, ?, ?)", rows)
    server.make_index("texts_v", "texts (v)", "vector_index", "{'similarity_function': 'cosine'}")
    server.make_index("texts_body", "texts (body)", "fulltext_index", "{'analyzer': 'english'}")


def asked():
    """Queries of two and more words, as (vector, words). No word is an operator of the language."""
    bodies, vectors = queries()
    words = [" ".join(documents.words_of(body)) for body in bodies]
    # The two kinds come one after the other in the file.
    step = max(1, len(words) // QUERIES)
    return [{"v": vectors[at].tolist(), "w": words[at]} for at in range(0, len(words), step)][:QUERIES]


def measure(server, all_queries):
    times = Times()
    for first in range(0, len(all_queries), BLOCK):
        block = all_queries[first : first + BLOCK]
        for name, (text, takes) in STATEMENTS.items():
            with times.of(name, server, len(block)):
                for query in block:
                    server.run(text, [query[part] for part in takes])
    return times


def main(records):
    all_queries = asked()
    with tempfile.TemporaryDirectory() as folder, Measured(folder, "hybrid") as server:
        fill(server)
        measure(server, all_queries)
        rounds = []
        for turn in range(ROUNDS):
            print(f"# round {turn + 1} of {ROUNDS}", file=sys.stderr)
            rounds.append(measure(server, all_queries))
    print(f"{ROWS:,} texts, {len(all_queries)} queries, µs:\n\n| | the server's processor | by the clock |\n| --- | --: | --: |")
    with open(records, "a") as file:
        for name in STATEMENTS:
            both = {clock: [one.micros(name, clock) for one in rounds] for clock in ("cpu", "wall")}
            print(f"| {name} | {spread(both['cpu'], 0)} | {spread(both['wall'], 0)} |")
            print(json.dumps({"type": "statement", "name": name, **both}), file=file)
        for name, (whole, parts) in RATIOS.items():
            both = {
                clock: [one.micros(whole, clock) / sum(one.micros(part, clock) for part in parts) for one in rounds]
                for clock in ("cpu", "wall")
            }
            print(f"| **{name}** | {spread(both['cpu'])} | {spread(both['wall'])} |")
            print(json.dumps({"type": "ratio", "name": name, **both}), file=file)


if __name__ == "__main__":
    main(*sys.argv[1:])
