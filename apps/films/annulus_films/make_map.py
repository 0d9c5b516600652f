"""Makes the map of films: two coordinates for each embedding, so that films that are alike are near each other.

    pip install scikit-learn==1.9.1 && python -m annulus_films.make_map

It takes about two minutes, once: the page reads the result, map.npz. By t-SNE (van der Maaten and Hinton, 2008), which
keeps neighbours, from a start by PCA, which keeps the large picture. It prints how many of a film's ten nearest films
by cosine are among the ten nearest on the map, next to the same for PCA alone.
"""

import pathlib

import numpy as np
from numpy.typing import NDArray

from .migrate import sample_vectors

MAP = pathlib.Path(__file__).with_name("map.npz")
COMPONENTS, PERPLEXITY, SEED, NEIGHBOURS = 50, 30, 7, 10
# Coordinates are kept as 16-bit integers, from -RANGE to RANGE.
RANGE = 32_000

Points = NDArray[np.float32]


def main() -> None:
    from sklearn.manifold import TSNE

    vectors = sample_vectors()
    components = principal(vectors, COMPONENTS)
    start = components[:, :2] / components[:, 0].std() * 1e-4
    points = TSNE(perplexity=PERPLEXITY, init=start, random_state=SEED, n_jobs=1).fit_transform(components)
    scaled = np.rint(points / np.abs(points).max() * RANGE).astype(np.int16)
    np.savez_compressed(MAP, points=scaled)
    print(f"neighbours kept: PCA {kept(vectors, components[:, :2]):.3f}, t-SNE {kept(vectors, scaled):.3f}")


def principal(vectors: Points, count: int) -> Points:
    """The first principal components of vectors."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ axes[:, ::-1][:, :count], np.float32)


def kept(vectors: Points, points: NDArray[np.generic]) -> float:
    """The share of the nearest films by cosine that are the nearest on a map, too."""
    places = points.astype(np.float32)
    found = 0
    for at in range(0, len(vectors), 100):
        near = np.argsort(-(vectors @ vectors[at]), kind="stable")[1 : NEIGHBOURS + 1]
        distances = ((places - places[at]) ** 2).sum(axis=1)
        distances[at] = np.inf
        found += len(set(near.tolist()) & set(np.argsort(distances, kind="stable")[:NEIGHBOURS].tolist()))
    return found / (len(range(0, len(vectors), 100)) * NEIGHBOURS)


if __name__ == "__main__":
    main()
