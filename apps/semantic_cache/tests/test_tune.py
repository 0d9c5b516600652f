"""The experiment that finds a threshold."""

from __future__ import annotations

import json
import pathlib
import xml.etree.ElementTree

import pytest

from annulus_semantic_cache import tune
from annulus_semantic_cache.command import main


def judged(*rows: tuple[bool, float, str | None]) -> list[tune.Judged]:
    return [tune.Judged(tune.Pair("a", "b", same, "kind", "tune"), cosine, rule) for same, cosine, rule in rows]


def test_rates_are_shares_of_the_pairs_of_each_label() -> None:
    some = judged(
        (True, 0.9, None), (True, 0.7, None), (False, 0.95, "numbers"), (False, 0.92, None), (False, 0.2, None)
    )
    assert tune.rates(some, 0.8, with_rules=True) == tune.Rates(0.8, 1 / 2, 1 / 3, 1 / 2, 1, 1)
    assert tune.rates(some, 0.8, with_rules=False) == tune.Rates(0.8, 1 / 2, 2 / 3, 2 / 3, 1, 2)


def test_the_lowest_threshold_within_the_bound_is_recommended() -> None:
    some = judged((True, 0.9, None), (True, 0.7, None), (False, 0.8, None), (False, 0.6, None))
    assert tune.recommended(some, 0.0, with_rules=True).threshold == 0.805
    assert tune.recommended(some, 0.5, with_rules=True).threshold == 0.605
    assert tune.recommended(some, 1.0, with_rules=True).threshold == 0.5
    assert tune.recommended(judged((True, 1.0, None), (False, 1.0, None)), 0.0, with_rules=True).threshold == 1.0


def test_the_pairs_that_ship_give_the_default_threshold(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    chart = tmp_path / "chart.svg"
    assert main(["tune", "--compare", "other cache=0.1", "--chart", str(chart)]) == 0
    printed = capsys.readouterr().out
    assert "Take --threshold 0.885 (--scale score: 0.9425)" in printed
    assert "| other cache | 0.900 | 0.9500 | 0.100 |" in printed
    root = xml.etree.ElementTree.fromstring(chart.read_text())
    assert len(root.findall("{*}polyline")) == 4


def test_files_that_are_no_pairs_are_named_by_line(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.jsonl"
    good = {"a": "x", "b": "y", "same": True, "kind": "k", "split": "tune"}
    for bad in (
        "{",
        "[]",
        json.dumps(good | {"same": 1}),
        json.dumps(good | {"a": ""}),
        json.dumps(good | {"split": "x"}),
    ):
        file.write_text(json.dumps(good) + "\n" + bad + "\n")
        assert main(["tune", str(file)]) == 1
        assert "mine.jsonl:2" in capsys.readouterr().err
    file.write_text(json.dumps(good) + "\n")
    assert main(["tune", str(file)]) == 1
    assert "no pair of the split 'tune' is different" in capsys.readouterr().err
    assert main(["tune", str(tmp_path / "none.jsonl")]) == 1
    assert main(["tune", "--compare", "x=3"]) == 1
