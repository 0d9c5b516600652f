"""Measures thresholds on the labelled pairs, and prints the tables of `pairs_result.md`.

A threshold is chosen by the half "tune" alone. It is judged by the half "test", next to the default
of redisvl's SemanticCache on the same embeddings. That default is read from the source of the
installed wheel (requirements-redisvl.txt); neither redisvl nor Redis runs.

    python apps/semantic_cache/pairs/measure.py
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import math
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from annulus_embedder.model import Embedder
from annulus_semantic_cache.differences import RULES, difference

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "annulus_semantic_cache" / "pairs"
FILES = ("written.jsonl", "made.jsonl")
SHOWN = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99)
TRIED = tuple(round(0.5 + 0.005 * step, 3) for step in range(100))
# The most false hits, of different pairs, that a threshold may have on the half "tune".
LIMITS = (0.01, 0.02, 0.03, 0.05, 0.1)
RECOMMENDED_LIMIT = 0.02
NORMAL_95 = 1.96

Numbers = npt.NDArray[np.float32]
Choice = npt.NDArray[np.bool_]


class Rates(NamedTuple):
    """Which part of the pairs with each label is a hit."""

    hits: float
    false_hits: float


class Pairs:
    """The pairs of both files with the cosine of each, and which of them a rule makes a miss."""

    def __init__(self) -> None:
        self.rows = [
            json.loads(line)
            for name in FILES
            for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()
        ]
        embedder = Embedder()
        first = embedder.embed([row["a"] for row in self.rows])
        second = embedder.embed([row["b"] for row in self.rows])
        self.cosine: Numbers = (first * second).sum(axis=1)
        self.ruled_out = self.where(difference(row["b"], row["a"], RULES) is not None for row in self.rows)
        self.same = self.where(row["same"] for row in self.rows)
        self.tune = self.where(row["split"] == "tune" for row in self.rows)
        self.written = self.where(not row["kind"].startswith("made_") for row in self.rows)

    @staticmethod
    def where(values: Iterable[bool]) -> Choice:
        return np.array(list(values), dtype=np.bool_)

    def hit(self, threshold: float, rules: bool) -> Choice:
        """Which pairs are hits."""
        near = self.cosine >= threshold
        return near & ~self.ruled_out if rules else near

    def rates(self, threshold: float, rules: bool, chosen: Choice) -> Rates:
        hit = self.hit(threshold, rules)
        return Rates(float(hit[chosen & self.same].mean()), float(hit[chosen & ~self.same].mean()))

    def recommended(self, limit: float, rules: bool) -> float:
        """The lowest threshold from which on the half "tune" has at most `limit` false hits."""
        fitting = [one for one in TRIED if self.rates(one, rules, self.tune).false_hits <= limit]
        return min(fitting, default=1.0)


class Default(NamedTuple):
    """The threshold of another cache."""

    name: str
    distance: float

    @property
    def cosine(self) -> float:
        """The distance of Redis for COSINE is 1 - cosine, which goes from 0 to 2."""
        return 1 - self.distance


def redisvl_default() -> Default:
    """The default of `distance_threshold` in the installed redisvl."""
    package = importlib.util.find_spec("redisvl")
    if package is None or package.origin is None:
        raise SystemExit("redisvl is missing: pip install --no-deps -r apps/semantic_cache/pairs/requirements-redisvl.txt")
    source = pathlib.Path(package.origin).parent / "extensions" / "cache" / "llm" / "semantic.py"
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for argument, default in zip(arguments, node.args.defaults, strict=True):
                if argument.arg == "distance_threshold":
                    version = importlib.metadata.version("redisvl")
                    return Default(f"redisvl {version}", float(ast.literal_eval(default)))
    raise SystemExit(f"{source} has no default of distance_threshold")


def interval(rate: float, count: int) -> str:
    """The rate in percent with its 95 % interval (Wilson)."""
    square = NORMAL_95**2 / count
    middle = (rate + square / 2) / (1 + square)
    spread = NORMAL_95 * math.sqrt(rate * (1 - rate) / count + square / (4 * count)) / (1 + square)
    return f"{100 * rate:.1f} ({100 * (middle - spread):.1f} to {100 * (middle + spread):.1f})"


def print_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    titles = list(head)
    for cells in (titles, ["---"] * len(titles), *rows):
        print("| " + " | ".join(cells) + " |")
    print()


def print_sweep(pairs: Pairs) -> None:
    def cells(threshold: float) -> list[str]:
        rates = [rate for rules in (False, True) for rate in pairs.rates(threshold, rules, pairs.tune)]
        return [f"{threshold:.2f}", f"{(1 + threshold) / 2:.3f}", *(f"{100 * rate:.1f}" for rate in rates)]

    head = ["cosine", "score", "hits", "false hits", "hits, with rules", "false hits, with rules"]
    print_table(head, map(cells, SHOWN))


def print_limits(pairs: Pairs) -> None:
    def cells(limit: float) -> list[str]:
        line = [f"{100 * limit:.0f}"]
        for rules in (False, True):
            threshold = pairs.recommended(limit, rules)
            rates = pairs.rates(threshold, rules, ~pairs.tune)
            line += [f"{threshold:.3f}", f"{100 * rates.hits:.1f}", f"{100 * rates.false_hits:.1f}"]
        return line

    head = ["most false hits", "threshold", "hits", "false hits"]
    print_table([*head, *(f"{title}, with rules" for title in head[1:])], map(cells, LIMITS))


def print_comparison(pairs: Pairs, ways: list[tuple[str, float, bool]]) -> None:
    def cells(way: tuple[str, float, bool], chosen: Choice) -> list[str]:
        name, threshold, rules = way
        rates = pairs.rates(threshold, rules, chosen)
        counts = (int((chosen & pairs.same).sum()), int((chosen & ~pairs.same).sum()))
        return [
            name,
            f"{threshold:.3f}",
            f"{1 - threshold:.3f}",
            *(interval(rate, count) for rate, count in zip(rates, counts, strict=True)),
        ]

    for title, chosen in (("all", ~pairs.tune), ("written", ~pairs.tune & pairs.written)):
        print(f"Pairs of the half `test`, {title}: {chosen.sum()}\n")
        print_table(
            ["cache", "cosine", "distance, 0 to 2", "hits", "false hits"], (cells(way, chosen) for way in ways)
        )


def print_kinds(pairs: Pairs, ways: list[tuple[str, float, bool]]) -> None:
    kinds = sorted({(not row["same"], row["kind"]) for row in pairs.rows})

    def cells(different: bool, kind: str) -> list[str]:
        chosen = ~pairs.tune & pairs.where(row["kind"] == kind and row["same"] != different for row in pairs.rows)
        rates = [pairs.hit(threshold, rules)[chosen].mean() for _name, threshold, rules in ways]
        label = "different" if different else "same"
        return [kind, label, str(chosen.sum()), *(f"{100 * rate:.0f}" for rate in rates)]

    print_table(["kind", "label", "pairs", *(way[0] for way in ways)], (cells(*kind) for kind in kinds))


def main() -> None:
    pairs = Pairs()
    other = redisvl_default()
    print(f"{other.name}: distance_threshold = {other.distance}, so cosine >= {other.cosine:.3f}\n")
    print_sweep(pairs)
    print_limits(pairs)
    recommended = pairs.recommended(RECOMMENDED_LIMIT, rules=True)
    ways = [
        (other.name, other.cosine, False),
        ("without rules", recommended, False),
        ("with rules", recommended, True),
    ]
    print_comparison(pairs, ways)
    print_kinds(pairs, ways)


if __name__ == "__main__":
    main()
