"""The benchmark: exact search, times, what is chosen, the report, and the command in its quick form."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from annulus_rag_bench.article import Article
from annulus_rag_bench.exact import ExactSearch
from annulus_rag_bench.footprint import disk_bytes, memory_bytes
from annulus_rag_bench.measure import Measurement, Quality, Searches, in_a_decade, searches
from annulus_rag_bench.questions import judged_questions
from annulus_rag_bench.report import markdown, page, report, write_report
from annulus_rag_bench.stores import STORES, Query
from annulus_rag_bench.task import chosen_places, first_sentences
from conftest import BINARY, ROOT

APPLICATION = ROOT / "apps/rag_bench"


def few(count: int) -> list[Article]:
    first = datetime(1950, 1, 1, tzinfo=UTC)
    return [Article(f"url{at}", "", f"Text {at}.", first + timedelta(days=at)) for at in range(count)]


def test_recall_counts_the_true_nearest_and_any_of_equal_ones() -> None:
    vectors = np.array([[1, 0], [1, 0], [0.8, 0.6], [0, 1]], np.float32)
    exact = ExactSearch(few(4), vectors)
    query = Query("x", np.array([1, 0], np.float32))
    assert exact.nearest(query, 3) == [0, 1, 2]
    assert exact.recall(query, ["url0", "url1"], 2) == 1
    assert exact.recall(query, ["url1"], 1) == 1
    assert exact.recall(query, ["url0", "url3"], 2) == 0.5
    assert exact.recall(query, [], 2) == 0
    later = Query("x", query.vector, published_from=few(4)[2].publication_date)
    assert exact.nearest(later, 3) == [2, 3]
    assert exact.recall(later, ["url2", "url3"], 5) == 1
    assert exact.recall(later, ["url2", "url0"], 5) == 0.5
    until = Query("x", query.vector, published_until=datetime(1940, 1, 1, tzinfo=UTC))
    assert exact.recall(until, [], 5) == 1


def test_quantiles_are_in_milliseconds() -> None:
    found = searches([0.001 * at for at in range(1, 101)])
    assert (found.count, found.p50_ms) == (100, pytest.approx(50.5)) and 99 <= found.p99_ms <= 100
    assert searches([]).count == 0


def test_a_decade_has_its_first_and_its_last_day() -> None:
    query = in_a_decade(Query("x", np.zeros(2, np.float32)), 1950)
    assert query.published_from == datetime(1950, 1, 1, tzinfo=UTC)
    assert query.published_until == datetime(1959, 12, 31, tzinfo=UTC)


def test_a_quick_look_has_the_right_answers_among_its_articles() -> None:
    articles = few(100)
    question = judged_questions()[0].model_copy(update={"relevant": {"url97": 3, "url5": 1}})
    chosen = chosen_places(articles, [question], 10)
    assert len(chosen) == 10 == len(set(chosen)) and {5, 97} <= set(chosen) and chosen == sorted(chosen)
    assert max(np.diff(chosen)) < 25
    assert chosen_places(articles, [question], 1) == [5]
    assert chosen_places(articles, [question], 1000) == list(range(100))


def test_first_sentences_end_at_their_end() -> None:
    long = Article(
        "u", "", "A film of the year 1950 that was directed by John Ford. It stars others.", few(1)[0].publication_date
    )
    assert first_sentences([*few(3), long], 5) == ["A film of the year 1950 that was directed by John Ford."]


def test_disk_and_memory_are_those_of_files_and_processes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(b"x" * 1_000_000)
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(1 << 30)
    assert 1_000_000 <= disk_bytes(tmp_path) < 2_000_000
    assert memory_bytes([os.getpid()]) > 10_000_000


def measured(**others: object) -> Measurement:
    times = Searches(count=9, p50_ms=1.25, p99_ms=9.5, recall=0.9876)
    quality = Quality(all=0.5, dated=0.625, undated=0.375)
    values = dict(
        name="x", title="Store | X", version="1", durability="`sync` <b>", index="i", articles=10, inserted=9,
        insert_seconds=3.0, searchable_seconds=0.5, written=1, write_seconds=0.5, while_writing=times, plain=times,
        dated=times, vectors_quality=quality, disk_bytes=3 << 20, memory_bytes=None, sizes_note="files",
    )  # fmt: skip
    return Measurement(**(values | others))


def test_the_report_has_a_row_a_store_and_says_what_failed(tmp_path: pathlib.Path) -> None:
    failed = Measurement(name="y", title="Y", durability="d", index="i", error="no <port>")
    tables = report([measured(), failed], 10, Quality(all=0.75, dated=0.7, undated=0.8), "a model")
    text = markdown(tables)
    assert "| Y | no <port> |" in text
    assert "| Store \\| X | 3 | 0.50 | 2 | 0.00 |" in text
    assert "| Store \\| X | 1.2 | 9.5 | 1.2 | 9.5 | – | – | 1.2 | 9.5 |" in text
    assert "| Store \\| X | 0.988 | 0.988 | 0.500 | 0.625 | – | – |" in text
    assert "| exact search | 1.000 | 1.000 | 0.750 | 0.700 | – | – |" in text
    assert "| Store \\| X | 3 | – | files |" in text
    assert text.count("| Y |") == 3
    whole = page(tables)
    assert "<code>sync</code> &lt;b&gt;" in whole and "no &lt;port&gt;" in whole and "<b>" not in whole
    files = write_report(tables, tmp_path / "new")
    assert [file.read_text() for file in files] == [text, whole]


def command(tmp_path: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(APPLICATION), str(APPLICATION.parent / "embedder")])
    variables = {**os.environ, "PYTHONPATH": path, "RAG_DIRECTORY": str(tmp_path), "ANNULUS_BINARY": str(BINARY)}
    whole = [sys.executable, "-m", "annulus_rag_bench", *arguments]
    return subprocess.run(whole, env=variables, capture_output=True, text=True, timeout=600, check=False)


def test_a_quick_look_measures_stores_one_after_the_other(tmp_path: pathlib.Path) -> None:
    done = command(tmp_path, "bench", "--articles", "120", "--stores", "qdrant", "annulus")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "report.md").read_text()
    assert text.strip() in done.stdout and (tmp_path / "report.html").exists()
    assert text.count("| Qdrant |") == text.count("| Annulus |") == 6
    recalls = [
        line.split(" | ")[1] for line in text.split("## Answers")[1].splitlines() if line.startswith("| Annulus")
    ]
    assert float(recalls[0]) > 0.9
    assert "Measuring qdrant: 0 of 2" in done.stderr and "Traceback" not in done.stderr


def test_a_store_that_fails_is_in_the_report(tmp_path: pathlib.Path) -> None:
    (tmp_path / "none").mkdir()
    path = os.pathsep.join([str(APPLICATION), str(APPLICATION.parent / "embedder")])
    variables = {
        **os.environ,
        "PYTHONPATH": path,
        "RAG_DIRECTORY": str(tmp_path),
        "ANNULUS_BINARY": str(tmp_path / "no"),
    }
    whole = [sys.executable, "-m", "annulus_rag_bench", "bench", "--articles", "120", "--stores", "annulus"]
    done = subprocess.run(whole, env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1 and "Annulus failed: " in done.stderr and "does not start" in done.stderr
    assert "## Not measured" in (tmp_path / "report.md").read_text()


def test_a_store_is_loaded_and_evaluated(tmp_path: pathlib.Path) -> None:
    missing = command(tmp_path, "evaluate", "--store", "qdrant")
    assert missing.returncode == 1
    assert missing.stderr.strip().endswith("Load them with: python -m annulus_rag_bench load --store qdrant")
    loaded = command(tmp_path, "load", "--store", "qdrant", "--articles", "60")
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout == "60 articles are in Qdrant\n"
    scores = command(tmp_path, "evaluate", "--store", "qdrant")
    assert scores.returncode == 0, scores.stderr
    lines = scores.stdout.splitlines()
    assert lines[0] == f"nDCG@5 of {len(judged_questions())} questions on Qdrant"
    assert lines[1].split() == ["vectors", "hybrid"] and lines[2].startswith("all")
    assert all(0 <= float(cell) < 0.5 for cell in lines[2].split()[-2:])


@pytest.mark.parametrize(
    "arguments", [["bench", "--articles", "0"], ["bench", "--stores", "x"], ["load", "--store", "x"]]
)
def test_a_bad_argument_is_refused(tmp_path: pathlib.Path, arguments: list[str]) -> None:
    done = command(tmp_path, *arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_every_store_says_what_it_is() -> None:
    from annulus_rag_bench.stores import store_class

    for name in STORES:
        kind = store_class(name)
        assert kind.name == name
        assert all(text.endswith(".") for text in (kind.durability, kind.index))


def test_the_result_of_a_store_goes_through_json() -> None:
    assert Measurement.model_validate(json.loads(measured().model_dump_json())) == measured()
