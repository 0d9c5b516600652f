"""The labelled pairs of prompts: their number, balance and halves."""

from __future__ import annotations

import json
import pathlib
import runpy
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "annulus_semantic_cache" / "pairs"
FILES = ("written.jsonl", "later.jsonl", "made.jsonl")
KINDS_OF_SAME = {"paraphrase", "word_order", "typo", "politeness", "shorthand", "synonym", "filler"}
KINDS_OF_DIFFERENT = {
    "negation", "entity", "number", "unit", "version", "direction", "scope", "aspect", "unrelated",
}  # fmt: skip
FURTHEST_FROM_HALF = 0.05


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def plain(prompt: str) -> str:
    """The prompt without what makes no other prompt: case and spaces."""
    return " ".join(prompt.lower().split())


ALL = {name: read(name) for name in FILES}
WRITTEN = ALL["written.jsonl"] + ALL["later.jsonl"]
EVERY_PAIR = [pair for pairs in ALL.values() for pair in pairs]


def test_there_are_enough_pairs() -> None:
    assert len(ALL["written.jsonl"]) >= 700
    assert len(ALL["made.jsonl"]) >= 330


@pytest.mark.parametrize("name", FILES)
def test_each_pair_has_the_five_fields(name: str) -> None:
    for pair in ALL[name]:
        assert list(pair) == ["a", "b", "same", "kind", "split"]
        assert isinstance(pair["same"], bool)
        assert pair["split"] in ("tune", "test")
        assert pair["a"] == pair["a"].strip() != ""
        assert pair["b"] == pair["b"].strip() != ""


def test_no_prompt_is_in_two_pairs() -> None:
    prompts = Counter(plain(pair[side]) for pair in EVERY_PAIR for side in ("a", "b"))
    assert [prompt for prompt, count in prompts.items() if count > 1] == []


def test_the_halves_share_no_prompt() -> None:
    halves = [
        {plain(pair[side]) for pair in EVERY_PAIR if pair["split"] == split for side in ("a", "b")}
        for split in ("tune", "test")
    ]
    assert halves[0].isdisjoint(halves[1])


@pytest.mark.parametrize("name", FILES)
def test_the_halves_have_each_kind_in_equal_parts(name: str) -> None:
    counts = Counter((pair["kind"], pair["same"], pair["split"]) for pair in ALL[name])
    for kind, same in {(pair["kind"], pair["same"]) for pair in ALL[name]}:
        assert abs(counts[kind, same, "tune"] - counts[kind, same, "test"]) <= 1, kind


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("split", ["tune", "test"])
def test_about_half_of_the_pairs_are_the_same(name: str, split: str) -> None:
    labels = [pair["same"] for pair in ALL[name] if pair["split"] == split]
    assert abs(sum(labels) / len(labels) - 0.5) <= FURTHEST_FROM_HALF


def test_the_kind_of_a_written_pair_fits_its_label() -> None:
    for pair in WRITTEN:
        allowed = KINDS_OF_SAME if pair["same"] else KINDS_OF_DIFFERENT
        assert pair["kind"] in allowed | {"other_language"}, pair


def test_made_pairs_are_marked() -> None:
    assert all(pair["kind"].startswith("made_") for pair in ALL["made.jsonl"])


def test_most_different_pairs_are_near_misses() -> None:
    different = [pair for pair in WRITTEN if not pair["same"]]
    unrelated = [pair for pair in different if pair["kind"] == "unrelated"]
    assert len(unrelated) <= len(different) // 10


def test_about_one_pair_in_twelve_is_in_another_language() -> None:
    others = sum(pair["kind"] == "other_language" for pair in WRITTEN)
    assert 0.07 <= others / len(WRITTEN) <= 0.1


def test_the_made_pairs_are_those_that_the_rule_makes() -> None:
    program = FOLDER.parents[1] / "pairs" / "make_pairs.py"
    done = subprocess.run([sys.executable, program, "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_default_of_another_cache_is_read_from_its_source() -> None:
    program = runpy.run_path(str(FOLDER.parents[1] / "pairs" / "redisvl_default.py"))
    source = "class SemanticCache:\n    def __init__(self, name: str, distance_threshold: float = 0.1) -> None: ...\n"
    assert program["default_of"](source, "distance_threshold") == 0.1
    assert program["default_of"](source, "ttl") is None
    assert program["default_of"](source, "name") is None
