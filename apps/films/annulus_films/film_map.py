"""The map of films: where each film is, as make_map.py computed it."""

import pathlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

MAP = pathlib.Path(__file__).with_name("map.npz")


class FilmMap:
    """Two coordinates for each bundled film, -1 to 1. Films that are near each other have plots that are alike."""

    def __init__(self, path: pathlib.Path = MAP) -> None:
        with np.load(path) as file:
            points = file["points"].astype(np.float32)
        self.points: NDArray[np.float32] = points / np.abs(points).max()

    def __len__(self) -> int:
        return len(self.points)

    def places(self, ids: Iterable[int]) -> dict[int, tuple[float, float]]:
        """The places of films. Those that are not bundled have none."""
        known = (id for id in ids if 1 <= id <= len(self))
        return {id: (float(self.points[id - 1, 0]), float(self.points[id - 1, 1])) for id in known}
