"""The board of Grafana: its form, and, where Prometheus is here, that each panel shows something of a real service."""

from __future__ import annotations

import json
import pathlib
import re
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from annulus_rag_bench.pipeline.metrics import Metrics
from conftest import ROOT
from pages import APPLICATION, asked, running_service
from server import Server, eventually
from serving import free_port

sys.path.append(str(ROOT / "tests/monitoring"))

from files import filled_in, metrics_of, panels  # noqa: E402
from programs import prometheus  # noqa: E402

BOARD = APPLICATION / "grafana.json"
QUESTIONS = [
    "Which film has two robots that fall in love?",
    "How do I prune roses in spring?",
    "",
    "astronauts on Mars",
]


def queries() -> list[tuple[str, str]]:
    """The panel and the expression of each query."""
    return [(panel["title"], target["expr"]) for panel in panels(BOARD) for target in panel.get("targets", [])]


def test_panels_are_whole_and_do_not_overlap() -> None:
    shown = [panel for panel in panels(BOARD) if panel["type"] != "row"]
    assert len(shown) >= 10
    taken: set[tuple[int, int]] = set()
    for panel in panels(BOARD):
        place = panel["gridPos"]
        columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in columns for y in rows}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    for panel in shown:
        assert panel["title"] and panel["description"].endswith(".") and panel["targets"], panel
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    identities = [panel["id"] for panel in panels(BOARD)]
    assert len(set(identities)) == len(identities)


def test_panels_read_each_metric_that_the_service_has_and_no_other() -> None:
    has = set(re.findall(r"^# TYPE (rag_\w+)", Metrics().text().decode(), re.MULTILINE))
    read = {metric for _, expression in queries() for metric in metrics_of(filled_in(expression))}
    # What is left of an expression is a quantile, or the name of a label in `by`.
    read = {re.sub(r"_(bucket|sum|count)$", "", metric) for metric in read if metric.startswith("rag_")}
    assert read == has


def test_labels_in_the_board_are_those_of_the_metrics() -> None:
    text = Metrics().text().decode()
    for name in ("outcome", "part", "step", "use"):
        assert f'{name}="' in text
        assert any(f"({name})" in expression or f", {name})" in expression for _, expression in queries())


@pytest.fixture
def scraped(server: Server, tmp_path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """A service, and a Prometheus that scrapes it each second."""
    with running_service(server.cql_port, tmp_path / "service.log") as url:
        target = urllib.parse.urlsplit(url).netloc
        settings = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "rag", "static_configs": [{"targets": [target]}]}],
        }
        path = tmp_path / "prometheus.yml"
        path.write_text(yaml.safe_dump(settings))
        with prometheus(path, tmp_path, free_port()) as address:
            yield url, address


def values(address: str, expression: str) -> list[float]:
    """The values of the series that a query returns now."""
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"{address}/api/v1/query?{query}", timeout=30) as response:
        found: list[dict[str, Any]] = json.load(response)["data"]["result"]
    numbers = [float(series["value"][1]) for series in found]
    return [number for number in numbers if number == number]


def test_every_panel_shows_something_of_a_service_that_is_asked(scraped: tuple[str, str]) -> None:
    service, address = scraped

    def all_show_something() -> bool:
        for question in QUESTIONS:
            asked(service, "ask", {"question": question})
        return all(values(address, filled_in(expression)) for _, expression in queries())

    assert eventually(all_show_something, seconds=60, every=0.2)
    outcomes = values(address, "sum by (outcome) (rag_questions_total)")
    assert len(outcomes) == 3 and sum(outcomes) >= len(QUESTIONS) - 1
