"""The migration script: makes the tables, and fills them from the bundled films. It may run again at any time."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet

from .config import SAMPLE
from .database import FilmDatabase
from .embedding import EmbeddingCreator
from .models import Film

# The model of the embeddings in the bundled file.
BUNDLED_MODEL = "all-MiniLM-L6-v2"
BATCH = 500

Progress = Callable[[int, int], None]


def statements(text: str) -> Iterator[str]:
    """The statements of a CQL file, which has comments of whole lines and no semicolon within quotes."""
    code = re.sub(r"^\s*--.*$", "", text, flags=re.MULTILINE)
    yield from (statement for part in code.split(";") if (statement := part.strip()))


def migrate(database: FilmDatabase, embedder: EmbeddingCreator, progress: Progress, sample: Path = SAMPLE) -> int:
    """Makes the tables and loads what is missing. Returns the number of films.

    With another model than the bundled one all plots are embedded by it."""
    for statement in statements(database.settings.dialect.schema.read_text()):
        database.execute(statement)
    films = pyarrow.parquet.read_table(sample)
    if database.embedding_model() == embedder.name and database.count() == len(films):
        return len(films)
    done = 0
    for batch in films.to_batches(BATCH):
        rows = batch.to_pylist()
        vectors = [row["plot_embedding"] for row in rows]
        if embedder.name != BUNDLED_MODEL:
            vectors = embedder.embed([row["plot"] for row in rows]).tolist()
        database.insert((film_in(row), vector) for row, vector in zip(rows, vectors, strict=True))
        done += len(rows)
        progress(done, len(films))
    # Last, so that a load that was cut short begins again.
    database.set_embedding_model(embedder.name)
    return len(films)


def film_in(row: dict[str, str | int]) -> Film:
    """The film of a row of the bundled file."""
    released = date.fromisoformat(str(row["release_date"]))
    return Film(
        id=int(row["id"]),
        title=str(row["title"]),
        release_date=released,
        genre=str(row["genre"]),
        plot=str(row["plot"]),
    )


def sample_vectors(sample: Path = SAMPLE) -> np.ndarray:
    """The embeddings of the bundled file, one a row."""
    column = pyarrow.parquet.read_table(sample, columns=["plot_embedding"])["plot_embedding"]
    return np.stack(column.to_numpy()).astype(np.float32)
