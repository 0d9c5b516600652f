"""The command line: `python -m annulus_rag_bench load | ask | serve | page | evaluate | bench ...`."""

import argparse
import sys

from pydantic import ValidationError

from .config import Settings
from .corpus import load_articles
from .embeddings import EmbeddingError, embeddings_of
from .pipeline.commands import add_commands
from .stores import STORES, StoreError, opened_store

STORE_HELP = "the store instead of RAG_STORE"
ARTICLES_HELP = "how many articles; all 10,000 by default"


def main() -> None:
    parser = argparse.ArgumentParser(prog="annulus_rag_bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run, text in (
        ("load", run_load, "make the tables, embed the articles and insert them"),
        ("evaluate", run_evaluate, "nDCG@5 of the judged questions on a store that is loaded"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--store", choices=list(STORES), help=STORE_HELP)
        command.set_defaults(run=run)
        if name == "load":
            command.add_argument("--articles", type=positive, help=ARTICLES_HELP)
    bench = commands.add_parser("bench", help="measure stores one after the other, and write a report")
    bench.add_argument("--stores", nargs="+", choices=list(STORES), default=list(STORES))
    bench.add_argument("--articles", type=positive, help=ARTICLES_HELP)
    bench.set_defaults(run=run_bench)
    measure = commands.add_parser("measure", help="measure one store, and print the result as JSON; a part of bench")
    measure.add_argument("store", choices=list(STORES))
    measure.add_argument("--articles", type=positive)
    measure.set_defaults(run=run_measure)
    add_commands(commands)
    options = parser.parse_args()
    try:
        options.run(options)
    except ValidationError as error:
        sys.exit("; ".join(problem["msg"] for problem in error.errors()))
    except (StoreError, EmbeddingError, ValueError) as error:
        sys.exit(str(error))


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of the environment, with the store of the command line."""
    settings = Settings()
    return settings.model_copy(update={"store": options.store}) if options.store is not None else settings


def run_load(options: argparse.Namespace) -> None:
    from .load import load

    settings = settings_of(options)
    with opened_store(settings) as store:
        count = load(store, load_articles(limit=options.articles), embeddings_of(settings), show_progress)
        print(f"{count} articles are in {store.title}")


def run_evaluate(options: argparse.Namespace) -> None:
    from .evaluate import evaluation

    settings = settings_of(options)
    with opened_store(settings) as store:
        print(evaluation(store, embeddings_of(settings)))


def run_bench(options: argparse.Namespace) -> None:
    from .bench import benchmark

    settings = Settings()
    files, results = benchmark(options.stores, options.articles, settings, embeddings_of(settings), show_progress)
    print(files[0].read_text())
    print("\n".join(f"written: {file}" for file in files), file=sys.stderr)
    failures = [f"{result.title} failed: {result.error}" for result in results if result.error is not None]
    if failures:
        sys.exit("\n".join(failures))


def run_measure(options: argparse.Namespace) -> None:
    from .bench import measure_here

    settings = Settings()
    print(measure_here(options.store, options.articles, settings, embeddings_of(settings)).model_dump_json())


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def show_progress(what: str, done: int, all: int) -> None:
    end = "\n" if done == all else ""
    print(f"\r{what}: {done} of {all}{' ' * 20}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
