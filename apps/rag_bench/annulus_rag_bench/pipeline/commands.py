"""The commands of the pipeline: `ask`, `serve` and `page`."""

import argparse
import os
import sys
import textwrap
from datetime import date
from typing import TYPE_CHECKING

from ..config import APPLICATION, Settings
from ..stores import STORES
from .answer import Answer, Outcome, Question, Source

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

WIDTH, BODY_LINES = 96, 3
SERVICE_PORT, PAGE_PORT = 8091, 8502


def add_commands(subparsers: "Subparsers") -> None:
    """Adds the commands. Each has a function `run` of the options in its defaults."""
    ask = subparsers.add_parser("ask", help="answer a question from the articles, with citations")
    ask.add_argument("question")
    ask.add_argument("--limit", type=int, default=5, help="how many articles are read")
    ask.add_argument("--from", dest="first", type=day, metavar="YYYY-MM-DD", help="articles from this day on")
    ask.add_argument("--until", dest="last", type=day, metavar="YYYY-MM-DD", help="articles up to this day")
    ask.add_argument("--hybrid", action="store_true", help="search by words as well")
    ask.set_defaults(run=run_ask)
    service = subparsers.add_parser("serve", help="the same as a service over HTTP, with metrics")
    service.add_argument("--host", default="127.0.0.1")
    service.add_argument("--port", type=int, default=SERVICE_PORT, help="0 for a free one")
    service.set_defaults(run=run_serve)
    page = subparsers.add_parser("page", help="the same as a page in the browser")
    page.add_argument("--port", type=int, default=PAGE_PORT)
    page.set_defaults(run=run_page)
    for command in (ask, service, page):
        command.add_argument("--store", choices=list(STORES), help="the store instead of RAG_STORE")


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no day: write it as 1999-12-31") from error


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of the environment, with the store of the command line."""
    if options.store is not None:
        # In the environment, as the page is a process of its own.
        os.environ["RAG_STORE"] = options.store
    return Settings()


# What the commands need is imported when they run: LangGraph alone takes a second.
def run_ask(options: argparse.Namespace) -> None:
    from .pipeline import Pipeline

    question = Question.between(options.question, options.limit, options.first, options.last, options.hybrid)
    pipeline = Pipeline.of(settings_of(options))
    try:
        # What is wrong is said before the model is loaded.
        pipeline.store_for(question)
        pipeline.check()
        print("Loading the model that embeds questions ...", file=sys.stderr, flush=True)
        pipeline.warm()
        answer = pipeline.answer(question)
    finally:
        pipeline.close()
    print("\n".join(lines_of(answer)))
    if answer.outcome is Outcome.NO_ANSWER:
        sys.exit(answer.error)


def lines_of(answer: Answer) -> list[str]:
    """An answer with its sources and times, in lines."""
    lines = [textwrap.fill(answer.text, WIDTH)] if answer.text else []
    lines += answer.notes
    for source in answer.sources:
        lines += lines_of_source(source)
    times = [f"{step} {seconds * 1_000:.1f} ms" for step, seconds in answer.seconds.items()]
    return [*lines, "", f"{answer.store}, {answer.model}: {', '.join(times)}"]


def lines_of_source(source: Source) -> list[str]:
    number = "[-]" if source.number is None else f"[{source.number}]"
    head = f"{number} {source.title} · {source.publication_date:%Y-%m-%d} · distance {source.distance:.3f}"
    use = "cited" if source.cited else "left out: it does not help" if source.number is None else "read"
    body = textwrap.fill(source.body, WIDTH, initial_indent="    ", subsequent_indent="    ", max_lines=BODY_LINES)
    return ["", f"{head} · {use}", f"    {source.url}", body]


def run_serve(options: argparse.Namespace) -> None:
    from annulus_embedder.openai_form import serve

    from .service import service_of

    serve(service_of(settings_of(options)), options.host, options.port)


def run_page(options: argparse.Namespace) -> None:
    """Becomes the page's process. Streamlit reads `.streamlit/config.toml` in the folder where it starts."""
    settings_of(options)
    os.chdir(APPLICATION)
    page = "annulus_rag_bench/pipeline/page.py"
    command = [sys.executable, "-m", "streamlit", "run", page, "--server.port", str(options.port)]
    folders = [str(APPLICATION), str(APPLICATION.parent / "embedder"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    os.execv(sys.executable, command)
