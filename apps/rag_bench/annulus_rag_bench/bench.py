"""The benchmark: each store is measured in a process of its own, one after the other, and all come into one report."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .article import FoundArticle
from .config import Settings
from .embeddings import Embeddings
from .exact import ExactSearch
from .measure import Measurement, Quality, Task, measure, quality
from .questions import DEPTH
from .report import report, write_report
from .stores import Query, StoreError, store_class
from .task import benchmark_task

# A store that takes longer has failed.
STORE_SECONDS = 3_600

Progress = Callable[[str, int, int], None]


def benchmark(
    names: Sequence[str], count: int | None, settings: Settings, embeddings: Embeddings, progress: Progress
) -> tuple[list[Path], list[Measurement]]:
    """Measures stores, and writes the report. Returns its files, and the results."""
    for name in names:
        store_class(name)
    # All vectors are on the disk before a store is measured.
    task = benchmark_task(count, embeddings, progress)
    results = []
    for number, name in enumerate(names):
        progress(f"Measuring {name}", number, len(names))
        results.append(in_a_process(name, count, settings))
    progress("Measured", len(names), len(names))
    tables = report(results, len(task.articles), exact_quality(task), embeddings.name)
    return write_report(tables, settings.directory), results


def in_a_process(name: str, count: int | None, settings: Settings) -> Measurement:
    """Measures a store in a process of its own, so that no store finds memory or threads of another."""
    directory = settings.directory / "bench" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "annulus_rag_bench", "measure", name]
    if count is not None:
        command += ["--articles", str(count)]
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=STORE_SECONDS)
        if ended.returncode == 0:
            return Measurement.model_validate_json(ended.stdout.splitlines()[-1])
        error = f"the process that measures it ended with {ended.returncode}"
    except subprocess.TimeoutExpired:
        error = f"not measured within {STORE_SECONDS} s"
    return failed(name, error)


def measure_here(name: str, count: int | None, settings: Settings, embeddings: Embeddings) -> Measurement:
    """Measures a store in this process, in an empty directory."""
    task = benchmark_task(count, embeddings, lambda what, done, all: None)
    own = settings.model_copy(update={"own_servers": True})
    try:
        return measure(name, task, settings.directory / "bench" / name / "store", own)
    except StoreError as error:
        return failed(name, str(error))


def failed(name: str, error: str) -> Measurement:
    kind = store_class(name)
    return Measurement(name=name, title=kind.title, durability=kind.durability, index=kind.index, error=error)


def exact_quality(task: Task) -> Quality:
    """nDCG of exact search: what a store reaches by vectors if it misses nothing."""
    exact = ExactSearch(task.articles, task.vectors)

    def find(query: Query) -> list[FoundArticle]:
        nearest = exact.nearest(query, DEPTH)
        found = [task.articles[at] for at in nearest]
        return [FoundArticle(a.url, a.title, a.body, a.publication_date, 0.0) for a in found]

    return quality(task, find)
