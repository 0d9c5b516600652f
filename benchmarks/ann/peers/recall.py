"""Builds an index of hnswlib and searches it, for `bench-ann recall`. A line of JSON on standard
input says what to do, a line on standard output how long it took.

    {"base": PATH, "ids": PATH, "queries": PATH, "found": PATH, "dimensions": 96, "space": "l2",
     "m": 16, "ef_construction": 128, "searches": [[64, 10], [128, 10]]}

Vectors are raw little-endian f32, ids u32. The ids found by each search, k for each query, go one
after the other to `found`; 4294967295 stands where nothing was found. Times are processor time.
"""

import importlib.metadata
import json
import sys
import time

import hnswlib
import numpy as np

NOTHING = 0xFFFFFFFF


def search(index: hnswlib.Index, queries: np.ndarray, k: int) -> np.ndarray:
    try:
        return index.knn_query(queries, k=k, num_threads=1)[0]
    except RuntimeError:
        # A search of them all fails if one of them finds fewer than k.
        return np.stack([as_many_as_found(index, query, k) for query in queries])


def as_many_as_found(index: hnswlib.Index, query: np.ndarray, k: int) -> np.ndarray:
    found = np.full(k, NOTHING, dtype=np.uint64)
    few, many, count = 0, k + 1, k
    while many - few > 1:
        try:
            found[:count] = index.knn_query(query, k=count, num_threads=1)[0][0]
            few = count
        except RuntimeError:
            many = count
        count = (few + many) // 2
    return found


def main() -> None:
    job = json.loads(sys.stdin.readline())
    floats = lambda name: np.fromfile(job[name], dtype="<f4").reshape(-1, job["dimensions"])
    base, queries = floats("base"), floats("queries")
    ids = np.fromfile(job["ids"], dtype="<u4")
    index = hnswlib.Index(space=job["space"], dim=job["dimensions"])
    index.init_index(max_elements=len(base), M=job["m"], ef_construction=job["ef_construction"])
    start = time.process_time()
    index.add_items(base, ids, num_threads=1)
    build = time.process_time() - start
    times = []
    with open(job["found"], "wb") as out:
        for ef, k in job["searches"]:
            index.set_ef(max(ef, k))
            start = time.process_time()
            found = search(index, queries, k)
            times.append(time.process_time() - start)
            out.write(found.astype("<u4").tobytes())
    version = importlib.metadata.version("hnswlib")
    print(json.dumps({"build": build, "searches": times, "version": version}))


if __name__ == "__main__":
    main()
