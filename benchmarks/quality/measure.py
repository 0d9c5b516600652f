"""Measures on `annulus serve` how well searches find known items: nDCG@10 of words, of vectors and of
both in one statement, by CQL, and prints a table.

    measure.py RECORDS

make_queries.py tells of the queries, of which each has one relevant document. A difference of two
searches has a confidence interval of 95 % from 2,000 samples of the queries.

How much a word counts next to a vector is each collection's own. So `expression` and `weighted RRF`
have the weight, out of WORD_WEIGHTS and RRF_WEIGHTS, that is best for queries that they are not
measured with: every second query of a collection gets the weight that is best for the others.
"""

import collections
import functools
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "text"))
from make_queries import QUERIES, films, ndcg, texts  # noqa: E402
from served import Measured  # noqa: E402

RRF = "ORDER BY RRF(ANN(v, ?), BM25(body, ?)) LIMIT 10"
SEARCHES = {
    "words": ("ORDER BY BM25(body, ?) LIMIT 10", "w"),
    "vectors": ("ORDER BY v ANN OF ? LIMIT 10", "v"),
    "hybrid": (RRF, "vw"),
    "hybrid, rank_constant 10": (RRF + " WITH hybrid_options = {'rank_constant': 10}", "vw"),
    "hybrid, rank_constant 1": (RRF + " WITH hybrid_options = {'rank_constant': 1}", "vw"),
}
WORD_WEIGHTS, RRF_WEIGHTS = (0.01, 0.03, 0.1, 0.3), (0.1, 0.3, 0.5, 0.7, 0.9)
WEIGHTED = {
    "weighted RRF": {
        weight: RRF + f" WITH hybrid_options = {{'weights': [{1 - weight:.1f}, {weight}]}}" for weight in RRF_WEIGHTS
    },
    "expression": {
        weight: f"ORDER BY ANN_SCORE(v, ?) + {weight} * BM25_SCORE(body, ?) LIMIT 10" for weight in WORD_WEIGHTS
    },
}
SAMPLES = 2_000


def fill(server, collection):
    name = collection.name
    server.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, body text, v vector<float, 384>)")
    rows = zip(range(len(collection.bodies)), collection.bodies, (vector.tolist() for vector in collection.vectors))
    server.run_many(f"INSERT INTO {name} (id, body, v) VALUES (?, ?, ?)", rows)
    server.make_index(f"{name}_v", f"{name} (v)", "vector_index", "{'similarity_function': 'cosine'}")
    server.make_index(f"{name}_body", f"{name} (body)", "fulltext_index", "{'analyzer': 'english'}")


def gains_of(server, collection, asked, text, takes):
    """The nDCG@10 of each query with a search."""
    gains = []
    for row in asked:
        values = {"w": row["text"], "v": row["embedding"]}
        answer = server.run(f"SELECT id FROM {collection.name} {text}", [values[part] for part in takes])
        gains.append(ndcg([id for (id,) in answer], row["document"]))
    return gains


def chosen(gains):
    """The gain of each query with the weight that is best for the other half, and both weights. `gains` are those of all
    queries by weight."""
    of_half = []
    for half in (0, 1):
        others = {weight: np.mean(of[1 - half :: 2]) for weight, of in gains.items()}
        of_half.append(max(others, key=others.get))
    number = len(gains[of_half[0]])
    return [gains[of_half[place % 2]][place] for place in range(number)], of_half


def difference(a, b):
    """The mean of what `a` gains over `b`, and its interval."""
    gained = np.subtract(a, b)
    rng = np.random.default_rng(50)
    means = gained[rng.integers(0, len(gained), (SAMPLES, len(gained)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{gained.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def main(records):
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(QUERIES).to_pylist()
    gains = collections.defaultdict(lambda: collections.defaultdict(list))
    weights = []
    with tempfile.TemporaryDirectory() as folder, Measured(folder, "quality") as server:
        for collection in (films(), texts()):
            fill(server, collection)
            asked = [row for row in rows if row["collection"] == collection.name]
            all_gains = functools.partial(gains_of, server, collection, asked)
            of_searches = {search: all_gains(text, takes) for search, (text, takes) in SEARCHES.items()}
            for search, texts_of in WEIGHTED.items():
                by_weight = {weight: all_gains(text, "vw") for weight, text in texts_of.items()}
                of_searches[search], of_half = chosen(by_weight)
                weights.append(f"{search}, {collection.name}: {of_half[0]} and {of_half[1]}")
            for search, of in of_searches.items():
                for row, gain in zip(asked, of):
                    for group in (f"{row['collection']}, {row['kind']}", row["collection"], row["kind"], "all"):
                        gains[group][search].append(gain)
    groups = sorted(gains, key=lambda group: ("," not in group, group != "all", group))
    searches = list(gains["all"])
    print(f"| nDCG@10 | queries | {' | '.join(searches)} |\n| --- | --: |{' --: |' * len(searches)}")
    with open(records, "a") as file:
        for group in groups:
            means = {search: float(np.mean(of)) for search, of in gains[group].items()}
            count = len(gains[group]["words"])
            print(f"| {group} | {count} | {' | '.join(f'{mean:.3f}' for mean in means.values())} |")
            print(json.dumps({"type": "ndcg", "group": group, "queries": count, **means}), file=file)
    print(f"\nWeights of words, of every second query and of the others: {'; '.join(weights)}.\n")
    for search in [name for name in searches if name not in ("words", "vectors")]:
        both = ", ".join(f"{difference(gains['all'][search], gains['all'][part])} over {part}" for part in ("words", "vectors"))
        print(f"- {search}, all queries: {both}")


if __name__ == "__main__":
    main(*sys.argv[1:])
