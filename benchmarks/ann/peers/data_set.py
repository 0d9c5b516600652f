"""Reads a data set that `bench-ann` keeps: see `contender/src/data_set.rs`."""

import json
from pathlib import Path

import numpy as np

NEIGHBOURS = 100


class DataSet:
    def __init__(self, folder: Path):
        about = json.loads((folder / "description.json").read_text())
        self.dimensions = about["dimensions"]
        self.cosine = about["metric"] == "cosine"
        self.kinds = [kind["queries"] for kind in about["kinds"]]
        self.base = self._floats(folder / "base.f32")
        self.queries = self._floats(folder / "queries.f32")
        self.neighbours = np.memmap(folder / "neighbours.u32", dtype="<u4", mode="r").reshape(-1, NEIGHBOURS)

    def _floats(self, path: Path) -> np.ndarray:
        return np.memmap(path, dtype="<f4", mode="r").reshape(-1, self.dimensions)

    def picked(self, pick: dict, most: int | None) -> list[np.ndarray]:
        """The rows of the picked queries of each kind, evenly thinned out to `most` each."""
        rows, start = [], 0
        for count in self.kinds:
            chosen = np.arange(start + pick["first"], start + count, pick["step"])
            if most is not None and len(chosen) > most:
                chosen = chosen[np.linspace(0, len(chosen) - 1, most).astype(int)]
            rows.append(chosen)
            start += count
        return rows
