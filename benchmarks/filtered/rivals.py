"""Filtered searches of Annulus' engine, of Qdrant (edge) and of zvec in turns.

Of each rival the narrowest search that reaches the recall wanted counts; Annulus has its default
width. Times are processor time. Those of the rivals include the call from Python and their look-up
of what the filter admits; Annulus' engine is given the ids.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import qdrant_edge as qdrant
import zvec

K = 10
QUERIES = 100
RECALL = 0.98
PERCENT = [100, 50, 20, 10, 5, 2, 1, 0.1]
WIDTHS = [16, 32, 64, 128, 256, 512, 1024, 2048]
LINKS, BUILD_WIDTH = 16, 128
BATCH = 500


class Qdrant:
    name = "qdrant-edge"

    def __init__(self, folder: str, base: np.ndarray, column: np.ndarray, cosine: bool):
        hnsw = qdrant.HnswIndexConfig(m=LINKS, ef_construct=BUILD_WIDTH, full_scan_threshold=10_000)
        distance = qdrant.Distance.Cosine if cosine else qdrant.Distance.Euclid
        config = qdrant.EdgeConfig(
            vectors=qdrant.EdgeVectorParams(size=base.shape[1], distance=distance),
            hnsw_config=hnsw,
            # One segment, which is searched by its graph.
            optimizers=qdrant.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1_000),
            max_search_threads=1,
        )
        Path(folder).mkdir()
        self._shard = qdrant.EdgeShard.create(folder, config)
        self._shard.update(qdrant.UpdateOperation.create_field_index("c", qdrant.PayloadSchemaType.Integer))
        for first in range(0, len(base), BATCH):
            points = [
                qdrant.Point(first + row, vector.tolist(), {"c": int(column[first + row])})
                for row, vector in enumerate(base[first : first + BATCH])
            ]
            self._shard.update(qdrant.UpdateOperation.upsert_points(points))
        self._shard.optimize()

    def search(self, query: list[float], below: int | None, width: int) -> list[int]:
        condition = None
        if below is not None:
            of_column = qdrant.FieldCondition("c", range=qdrant.RangeFloat(lt=below))
            condition = qdrant.Filter(must=[of_column])
        request = qdrant.QueryRequest(
            K,
            query=qdrant.Query.Nearest(query),
            filter=condition,
            params=qdrant.SearchParams(hnsw_ef=width),
        )
        return [point.id for point in self._shard.query(request)]


class Zvec:
    name = "zvec"

    def __init__(self, folder: str, base: np.ndarray, column: np.ndarray, cosine: bool):
        zvec.init(query_threads=1, log_level=zvec.LogLevel.ERROR)
        metric = zvec.MetricType.COSINE if cosine else zvec.MetricType.L2
        graph = zvec.HnswIndexParam(metric_type=metric, m=LINKS, ef_construction=BUILD_WIDTH)
        values = zvec.InvertIndexParam(enable_range_optimization=True)
        schema = zvec.CollectionSchema(
            name="items",
            fields=zvec.FieldSchema("c", zvec.DataType.INT64, index_param=values),
            vectors=zvec.VectorSchema("v", zvec.DataType.VECTOR_FP32, base.shape[1], index_param=graph),
        )
        self._items = zvec.create_and_open(path=folder, schema=schema)
        for first in range(0, len(base), BATCH):
            self._items.insert([
                zvec.Doc(id=str(first + row), vectors={"v": vector.tolist()}, fields={"c": int(column[first + row])})
                for row, vector in enumerate(base[first : first + BATCH])
            ])
        self._items.optimize()

    def search(self, query: list[float], below: int | None, width: int) -> list[int]:
        condition = None if below is None else f"c < {below}"
        search = zvec.Query(field_name="v", vector=query, param=zvec.HnswQueryParam(ef=width))
        found = self._items.query(search, topk=K, filter=condition, output_fields=[])
        return [int(item.id) for item in found]


def measured(rival, queries, truth, below: int | None, width: int) -> tuple[float, float]:
    """The recall, and the processor seconds of a search."""
    start = time.process_time()
    found = [rival.search(query, below, width) for query in queries]
    seconds = (time.process_time() - start) / len(queries)
    hits = sum(len(set(ids) & set(true)) for ids, true in zip(found, truth))
    return hits / sum(map(len, truth)), seconds


def nearest(base: np.ndarray, queries: np.ndarray, ids: np.ndarray, cosine: bool) -> list[list[int]]:
    rows = base[ids].astype(np.float64)
    if cosine:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    answers = []
    for query in queries.astype(np.float64):
        distances = -(rows @ query) if cosine else ((rows - query) ** 2).sum(axis=1)
        answers.append(ids[np.argsort(distances, kind="stable")[:K]].tolist())
    return answers


def ours(program: str, cache: str, dataset: str, column: Path, results: Path) -> dict[float, dict]:
    share = ",".join(str(percent) for percent in PERCENT if percent < 100)
    command = [program, "--cache", cache, "filtered", "-d", dataset, "--independent", "--rounds", "1"]
    command += ["--queries", str(QUERIES), "--selectivities", share, "--column", column, "--json", results]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {record["percent"]: record for record in json.loads(results.read_text())}


def main(program: str, cache: str, dataset: str, rounds: int, work: Path) -> None:
    annulus = [ours(program, cache, dataset, work / "column", work / "json")]
    folder = Path(cache) / dataset
    about = json.loads((folder / "description.json").read_text())
    cosine = about["metric"] == "cosine"
    base = np.fromfile(folder / "base.f32", dtype="<f4").reshape(-1, about["dimensions"])
    queries = np.fromfile(folder / "queries.f32", dtype="<f4").reshape(-1, about["dimensions"])
    # The queries that `bench-ann` takes.
    queries = queries[np.arange(QUERIES) * len(queries) // QUERIES]
    lists = [query.tolist() for query in queries]
    column = np.fromfile(work / "column", dtype="<u4")
    below = {percent: max(1, round(len(base) * percent / 100)) for percent in PERCENT}
    truth = {percent: nearest(base, queries, np.flatnonzero(column < below[percent]), cosine) for percent in PERCENT}
    below[100] = None
    rivals = [kind(str(work / kind.name), base, column, cosine) for kind in (Qdrant, Zvec)]
    widths = {}
    for rival in rivals:
        for percent in PERCENT:
            for width in WIDTHS:
                recall, _ = measured(rival, lists, truth[percent], below[percent], width)
                widths[rival.name, percent] = width, recall
                if recall >= RECALL:
                    break
    times = {key: [] for key in widths}
    for turn in range(rounds):
        if turn > 0:
            annulus.append(ours(program, cache, dataset, work / "column", work / "json"))
        for rival in rivals:
            for percent in PERCENT:
                width, _ = widths[rival.name, percent]
                times[rival.name, percent].append(measured(rival, lists, truth[percent], below[percent], width)[1])
    print(f"{dataset}, k = {K}\n")
    print("| % | annulus: recall | queries/s CPU |" + "".join(f" {r.name}: width | recall | queries/s CPU | annulus, times |" for r in rivals))
    print("| --: | --: | --: |" + " --: | --: | --: | --: |" * len(rivals))
    for percent in PERCENT:
        own = [turn[percent] for turn in annulus]
        cells = [f"{percent}", f"{own[0]['recall']:.4f}", f"{statistics.median(turn['qps'] for turn in own):.0f}"]
        for rival in rivals:
            width, recall = widths[rival.name, percent]
            seconds = times[rival.name, percent]
            ratios = [turn["qps"] * taken for turn, taken in zip(own, seconds)]
            cells += [f"{width}", f"{recall:.4f}", f"{1 / statistics.median(seconds):.0f}"]
            cells += [f"**{statistics.median(ratios):.1f}** ({min(ratios):.1f} to {max(ratios):.1f})"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    _, program, cache, dataset, rounds = sys.argv
    with tempfile.TemporaryDirectory(prefix="annulus-filtered-") as work:
        main(program, cache, dataset, int(rounds), Path(work))
