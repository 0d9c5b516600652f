"""The command line: `python -m annulus_films [find QUERY | migrate | evaluate]`."""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator

from pydantic import ValidationError

from .config import Settings
from .database import DatabaseError, FilmDatabase
from .embedding import EmbeddingError, creator
from .migrate import migrate
from .models import Match, Wish
from .recommender import Recommender

WIDTH = 96


def main() -> None:
    arguments = argparse.ArgumentParser(prog="annulus_films", description=__doc__)
    commands = arguments.add_subparsers(dest="command", required=True)
    find = commands.add_parser("find", help="find films by a sentence, or by sentences from the terminal")
    find.add_argument("query", nargs="?", help="what the film should be about")
    find.add_argument("--limit", type=int, default=5)
    find.add_argument("--year-from", type=int)
    find.add_argument("--year-to", type=int)
    find.add_argument("--genre")
    find.add_argument("--vectors-only", action="store_true", help="rank by vectors alone, not by words as well")
    commands.add_parser("migrate", help="make the tables, and load the films")
    commands.add_parser("evaluate", help="nDCG@5 of the judged queries, by vectors and by both")
    options = arguments.parse_args()
    try:
        run(options)
    except ValidationError as error:
        sys.exit("; ".join(problem["msg"] for problem in error.errors()))
    except (DatabaseError, EmbeddingError) as error:
        sys.exit(str(error))


def run(options: argparse.Namespace) -> None:
    settings = Settings()
    with FilmDatabase(settings) as database:
        print("Loading the model that embeds sentences ...", file=sys.stderr, flush=True)
        embedder = creator(settings)
        films = migrate(database, embedder, show_progress)
        if options.command == "migrate":
            print(f"{films} films are in recommend.movies")
            return
        recommender = Recommender(database, embedder)
        if options.command == "evaluate":
            from .evaluate import report

            print(report(recommender))
            return
        for sentence in [options.query] if options.query is not None else prompts():
            wish = Wish(
                sentence=sentence,
                limit=options.limit,
                year_from=options.year_from,
                year_to=options.year_to,
                genre=options.genre,
                hybrid=not options.vectors_only,
            )
            for match in recommender.recommend(wish):
                show(match)


def prompts() -> Iterator[str]:
    """Sentences typed by the user, until an empty line or the end of the input."""
    try:
        while sentence := input("A film about: ").strip():
            yield sentence
    except EOFError:
        pass


def show_progress(done: int, all: int) -> None:
    end = "\n" if done == all else ""
    print(f"\rLoading films into recommend.movies: {done} of {all}", end=end, file=sys.stderr, flush=True)


def show(match: Match) -> None:
    film = match.film
    print(f"\n{film.title} ({film.release_date.year}) · {film.genre} · cosine {match.cosine:.3f}{words_of(match)}")
    print(textwrap.fill(film.plot, WIDTH, initial_indent="  ", subsequent_indent="  ", max_lines=3))


def words_of(match: Match) -> str:
    words = dict.fromkeys(re.findall(r"<b>(.*?)</b>", match.highlight or ""))
    return f" · words: {', '.join(words)}" if words else ""


if __name__ == "__main__":
    main()
