"""The report of the benchmark: tables with a row a store, as Markdown and as one page of HTML."""

import html
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from .measure import LIMIT, WRITE_BATCH, WRITE_EVERY_SECONDS, Measurement, Quality, Searches
from .questions import DEPTH

MIB = 1 << 20
NONE = "–"


@dataclass(frozen=True)
class Table:
    """A table with its heading and what is said about it."""

    heading: str
    about: str
    columns: list[str]
    rows: list[list[str]]


def report(results: Sequence[Measurement], articles: int, exact: Quality, model: str) -> list[Table]:
    """The tables of a benchmark."""
    measured = [result for result in results if result.error is None]
    written = f"{WRITE_BATCH / WRITE_EVERY_SECONDS:.0f} articles a second"
    tables = [
        Table(
            "What was measured",
            setting(articles, model),
            ["store", "version", "index"],
            [[result.title, result.version, result.index] for result in results],
        ),
        Table(
            "When an insert returns",
            "Each store has its defaults.",
            ["store", "on the disk"],
            [[result.title, result.durability] for result in results],
        ),
        Table(
            "Inserts",
            f"Then a tenth of the articles comes in while questions are answered, {written} at most. Times until "
            "what was inserted is found by the index.",
            ["store", "articles a second", "s until found", "written a second, with questions", "s until found"],
            rows(measured, inserts),
        ),
        Table(
            "Questions",
            f"ms, one after the other, the {LIMIT} nearest. With dates: each question is about ten years.",
            ["store", *(f"{kind} {part}" for kind in KINDS for part in ("P50", "P99"))],
            rows(measured, latencies),
        ),
        Table(
            "Answers",
            f"Recall@{LIMIT} is the share of the true {LIMIT} nearest, by numpy on the same vectors. nDCG@{DEPTH} is "
            "that of the judged questions, with their dates (questions.md). A difference of a few hundredths means "
            "nothing.",
            ["store", "recall", "recall, dates", "nDCG", "nDCG, dated questions", "nDCG, hybrid", "hybrid, dated"],
            rows(measured, answers) + [["exact search", "1.000", "1.000", *two(exact), NONE, NONE]],
        ),
        Table("Sizes", "MiB.", ["store", "disk", "memory", "of"], rows(measured, sizes)),
    ]
    failed = [[result.title, result.error] for result in results if result.error is not None]
    if failed:
        tables.insert(0, Table("Not measured", "These stores failed.", ["store", "error"], failed))
    return tables


KINDS = ["quiet", "with dates", "hybrid", "while written"]


def setting(articles: int, model: str) -> str:
    """The machine and the corpus in a few sentences."""
    memory = psutil.virtual_memory().total / (1 << 30)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return (
        f"{today}: {articles} articles, embedded by {model} (title and body, the same for each store), 384 floats. "
        f"One store at a time, one client in one thread, {psutil.cpu_count()} cores, {memory:.0f} GiB, Python "
        f"{platform.python_version()}. ClickHouse and Qdrant run in the client's process, the others over a socket."
    )


def inserts(result: Measurement) -> list[str]:
    return [
        f"{result.inserted / result.insert_seconds:.0f}",
        f"{result.searchable_seconds:.2f}",
        f"{result.written / result.write_seconds:.0f}",
        f"{result.caught_up_seconds:.2f}",
    ]


def latencies(result: Measurement) -> list[str]:
    def both(searches: Searches | None) -> list[str]:
        return [NONE, NONE] if searches is None else [f"{searches.p50_ms:.1f}", f"{searches.p99_ms:.1f}"]

    kinds = (result.plain, result.dated, result.hybrid, result.while_writing)
    return [part for searches in kinds for part in both(searches)]


def answers(result: Measurement) -> list[str]:
    recalls = [searches.recall if searches is not None else None for searches in (result.plain, result.dated)]
    return [
        *(NONE if recall is None else f"{recall:.3f}" for recall in recalls),
        *two(result.vectors_quality),
        *two(result.hybrid_quality),
    ]


def two(quality: Quality | None) -> list[str]:
    return [NONE, NONE] if quality is None else [f"{quality.all:.3f}", f"{quality.dated:.3f}"]


def sizes(result: Measurement) -> list[str]:
    memory = NONE if result.memory_bytes is None else f"{result.memory_bytes / MIB:.0f}"
    return [f"{result.disk_bytes / MIB:.0f}", memory, result.sizes_note]


def rows(results: Sequence[Measurement], cells: Callable[[Measurement], list[str]]) -> list[list[str]]:
    return [[result.title, *cells(result)] for result in results]


def markdown(tables: Sequence[Table]) -> str:
    """The tables as Markdown."""
    lines = ["# Retrieval over several stores"]
    for table in tables:
        lines += ["", f"## {table.heading}", "", table.about, ""]
        lines += [line(table.columns), line(["---"] * len(table.columns)), *map(line, table.rows)]
    return "\n".join(lines) + "\n"


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .6rem }
tr { border-bottom: 1px solid #ccc } @media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }"""


def page(tables: Sequence[Table]) -> str:
    """The tables as a page that needs nothing else."""
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Retrieval over several stores</title>'
    parts = [head, f"<style>{STYLE}</style><h1>Retrieval over several stores</h1>"]
    for table in tables:
        parts.append(f"<h2>{html.escape(table.heading)}</h2><p>{html.escape(table.about)}</p><table><tr>")
        parts += [f"<th>{html.escape(column)}</th>" for column in table.columns]
        parts += ["</tr><tr>" + "".join(f"<td>{cell_of(cell)}</td>" for cell in row) + "</tr>" for row in table.rows]
        parts.append("</table>")
    return "".join(parts) + "</html>\n"


def cell_of(text: str) -> str:
    """A cell, with code between backticks."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))


def write_report(tables: Sequence[Table], directory: Path) -> list[Path]:
    """Writes both forms, and returns their files."""
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / "report.md", directory / "report.html"]
    for file, text in zip(files, (markdown(tables), page(tables)), strict=True):
        file.write_text(text)
    return files
