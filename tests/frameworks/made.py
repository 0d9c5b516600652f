"""Made rows with vectors and metadata, and the true nearest of them."""

import numpy

DIMENSIONS = 16


class Made:
    """`count` vectors; row `i` has the metadata `metadata(i)`."""

    def __init__(self, count, seed=1):
        self.vectors = numpy.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype("f4")

    @staticmethod
    def metadata(i):
        return {"colour": ["red", "green", "blue"][i % 3], "year": 2000 + i % 7, "draft": i % 2 == 0}

    def matching(self, **wanted):
        """The numbers of the rows that have this metadata."""
        return [i for i in range(len(self.vectors)) if wanted.items() <= self.metadata(i).items()]

    def nearest(self, vector, numbers, n):
        """`n` of the numbered rows in the order of the cosine, the nearest first."""
        vector = numpy.asarray(vector, "f4")
        cosines = {
            i: float(self.vectors[i] @ vector / numpy.linalg.norm(self.vectors[i]) / numpy.linalg.norm(vector))
            for i in numbers
        }
        return sorted(cosines, key=cosines.get, reverse=True)[:n]

    def query(self, seed):
        return numpy.random.default_rng(seed).standard_normal(DIMENSIONS).astype("f4").tolist()
