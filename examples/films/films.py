"""Finds films by a sentence: embeds it offline and asks Annulus for the nearest plots.

Start the server with the sample first (`make run`), then `make films QUERY="..."`. Without a query
it reads sentences from the terminal.
"""

import argparse
import pathlib
import sys
import textwrap

from cassandra.cluster import Cluster, NoHostAvailable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "apps/embedder"))
from annulus_embedder.model import Embedder  # noqa: E402 (from the folder above)

NEAREST = """
    SELECT title, release_date, genre, plot, similarity_cosine(plot_embedding, ?) AS similarity
    FROM samples.movies ORDER BY plot_embedding ANN OF ? LIMIT ?
"""


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("query", nargs="?", help="what the film should be about")
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=9042)
    arguments.add_argument("--limit", type=int, default=5)
    options = arguments.parse_args()

    cluster = Cluster([options.host], port=options.port)
    try:
        session = cluster.connect()
    except NoHostAvailable:
        sys.exit(f"No server at {options.host}:{options.port}. Start one with: make run")
    try:
        nearest = session.prepare(NEAREST)
        print("Loading the model that embeds sentences ...", file=sys.stderr, flush=True)
        embedder = Embedder()
        sentences = [options.query] if options.query else prompts()
        for sentence in sentences:
            vector = embedder.embed([sentence])[0].tolist()
            for film in session.execute(nearest, (vector, vector, options.limit)):
                show(film)
    finally:
        cluster.shutdown()


def prompts():
    """Yields sentences typed by the user, until an empty line or the end of the input."""
    try:
        while sentence := input("A film about: ").strip():
            yield sentence
    except EOFError:
        pass


def show(film):
    print(f"\n{film.title} ({film.release_date.date().year}) · {film.genre} · {film.similarity:.3f}")
    print(textwrap.fill(film.plot, 96, initial_indent="  ", subsequent_indent="  ", max_lines=3))


if __name__ == "__main__":
    main()
