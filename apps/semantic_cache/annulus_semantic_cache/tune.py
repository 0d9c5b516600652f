"""The experiment that finds a threshold: hit rate and false-hit rate of labelled pairs.

A pair is two prompts and whether one answer serves both. The hit rate of a threshold is the share of
such pairs that it takes for the same; the false-hit rate is the share of the other pairs that it takes
for the same. The threshold is chosen on one half of the pairs, and its rates are those of the other.
"""

from __future__ import annotations

import html
import json
import pathlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from annulus_semantic_cache.differences import difference
from annulus_semantic_cache.embeddings import Embeddings

PAIRS = pathlib.Path(__file__).parent / "pairs"
SPLITS = ("tune", "test")
# Thresholds as cosines, 0.500 to 1.000.
STEPS = [round(0.5 + step * 0.005, 3) for step in range(101)]
TEXTS_AT_ONCE = 256


@dataclass(frozen=True)
class Pair:
    """Two prompts, and whether one answer serves both."""

    a: str
    b: str
    same: bool
    kind: str
    split: str


@dataclass(frozen=True)
class Judged:
    """A pair with the cosine of its prompts, and the rule that parts them, if one does."""

    pair: Pair
    cosine: float
    rule: str | None

    def hits(self, threshold: float, with_rules: bool) -> bool:
        """Whether the pair is a hit at a threshold, which is a cosine."""
        return self.cosine >= threshold and not (with_rules and self.rule)


@dataclass(frozen=True)
class Rates:
    """Rates at a threshold. `wrong` is the share of hits that are false."""

    threshold: float
    hit: float
    false_hit: float
    wrong: float
    hits: int
    false_hits: int


def read_pairs(paths: Iterable[pathlib.Path]) -> list[Pair]:
    """Pairs of files of JSON lines: `{"a", "b", "same", "kind", "split"}`.

    Raises ValueError that names the file and line of what is no pair."""
    pairs = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if line.strip():
                try:
                    pairs.append(_pair(json.loads(line)))
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(f"{path.name}:{number}: {error!r}: a pair is {_FORM}") from None
    for split in SPLITS:
        for same in (True, False):
            if not any(pair.split == split and pair.same == same for pair in pairs):
                what = "the same" if same else "different"
                raise ValueError(f"no pair of the split {split!r} is {what}: a threshold can't be measured without")
    return pairs


_FORM = '{"a": "...", "b": "...", "same": true, "kind": "...", "split": "tune" or "test"}'


def _pair(value: dict[str, object]) -> Pair:
    a, b, same, split = value["a"], value["b"], value["same"], value.get("split", "tune")
    if not isinstance(a, str) or not isinstance(b, str) or not a.strip() or not b.strip():
        raise ValueError("a and b are texts")
    if not isinstance(same, bool) or not isinstance(split, str) or split not in SPLITS:
        raise ValueError("same is true or false, split is tune or test")
    return Pair(a, b, same, str(value.get("kind", "")), split)


async def judge(pairs: Sequence[Pair], embeddings: Embeddings, rules: Sequence[str]) -> list[Judged]:
    """The cosine of each pair, and the rule that parts it."""
    texts = sorted({text for pair in pairs for text in (pair.a, pair.b)})
    vectors: dict[str, Sequence[float]] = {}
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        some = texts[start : start + TEXTS_AT_ONCE]
        embedded = await embeddings.embed(some)
        vectors.update(zip(some, (one.vector for one in embedded), strict=True))
    return [Judged(pair, cosine(vectors[pair.a], vectors[pair.b]), difference(pair.a, pair.b, rules)) for pair in pairs]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of two vectors."""
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5
    return dot / lengths if lengths else 0.0


def rates(judged: Iterable[Judged], threshold: float, with_rules: bool) -> Rates:
    """The rates at a threshold, which is a cosine."""
    same, different, hits, false_hits = 0, 0, 0, 0
    for one in judged:
        hit = one.hits(threshold, with_rules)
        same += one.pair.same
        different += not one.pair.same
        hits += hit and one.pair.same
        false_hits += hit and not one.pair.same
    taken = hits + false_hits
    return Rates(
        threshold,
        hits / same if same else 0.0,
        false_hits / different if different else 0.0,
        false_hits / taken if taken else 0.0,
        hits,
        false_hits,
    )


def recommended(judged: Sequence[Judged], false_hits_max: float, with_rules: bool) -> Rates:
    """The lowest threshold whose false-hit rate, and that of all above it, is within the bound.

    Where none is, it is the highest one, 1.0: the cache then takes equal meanings of equal vectors only."""
    best = rates(judged, STEPS[-1], with_rules)
    for step in reversed(STEPS):
        at = rates(judged, step, with_rules)
        if at.false_hit > false_hits_max:
            break
        best = at
    return best


def of_split(judged: Iterable[Judged], split: str) -> list[Judged]:
    """The pairs of one half."""
    return [one for one in judged if one.pair.split == split]


def table(rows: Iterable[tuple[str, Rates]]) -> str:
    """A table of rates in Markdown, on both scales."""
    lines = [
        "| | cosine | score | distance | hit rate | false-hit rate | of all hits false |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {at.threshold:.3f} | {(1 + at.threshold) / 2:.4f} | {1 - at.threshold:.3f} | {at.hit:.1%} "
        f"| {at.false_hit:.1%} | {at.wrong:.1%} |"
        for name, at in rows
    ]
    return "\n".join(lines)


def kinds(judged: Sequence[Judged], threshold: float, with_rules: bool) -> str:
    """Hits by the kind of pair, in Markdown."""
    lines = ["| kind of pair | one answer serves both | pairs | taken for the same |", "| --- | --- | --- | --- |"]
    for kind, same in sorted({(one.pair.kind, one.pair.same) for one in judged}, key=lambda key: (not key[1], key[0])):
        some = [one for one in judged if (one.pair.kind, one.pair.same) == (kind, same)]
        taken = sum(one.hits(threshold, with_rules) for one in some)
        lines.append(f"| {kind} | {'yes' if same else 'no'} | {len(some)} | {taken / len(some):.1%} |")
    return "\n".join(lines)


_WIDTH, _HEIGHT, _LEFT, _TOP = 720, 400, 60, 30
_COLOURS = {"hit": "#2563eb", "false": "#dc2626"}


def chart(judged: Sequence[Judged], marks: Sequence[tuple[str, float]]) -> str:
    """The rates over the threshold as SVG: lines with rules, dashed ones without. `marks`: names of thresholds."""
    right, bottom = _WIDTH - 20, _HEIGHT - 50

    def x(threshold: float) -> float:
        return _LEFT + (threshold - STEPS[0]) / (STEPS[-1] - STEPS[0]) * (right - _LEFT)

    def y(rate: float) -> float:
        return bottom - rate * (bottom - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        "<style>text{fill:#1f2937}.grid{stroke:#d1d5db}.mark{stroke:#6b7280;stroke-dasharray:2 3}",
        "@media(prefers-color-scheme:dark){text{fill:#e5e7eb}.grid{stroke:#4b5563}.back{fill:#111827}}</style>",
        f'<rect class="back" width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for tenth in range(0, 11, 2):
        at = y(tenth / 10)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tenth * 10} %</text>')
        threshold = 0.5 + tenth * 0.05
        label = f"{threshold:.1f} ({(1 + threshold) / 2:.2f})"
        parts.append(f'<text x="{x(threshold):.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text x="{(_LEFT + right) / 2}" y="{bottom + 38}" text-anchor="middle">threshold: cosine (score)</text>'
    )
    for with_rules in (True, False):
        curve = [rates(judged, step, with_rules) for step in STEPS]
        for name, values in (("hit", [at.hit for at in curve]), ("false", [at.false_hit for at in curve])):
            points = " ".join(f"{x(at.threshold):.1f},{y(value):.1f}" for at, value in zip(curve, values, strict=True))
            dashes = "" if with_rules else ' stroke-dasharray="5 4" stroke-opacity="0.6"'
            parts.append(
                f'<polyline fill="none" stroke="{_COLOURS[name]}" stroke-width="2"{dashes} points="{points}"/>'
            )
    for place, (name, threshold) in enumerate(marks):
        at = x(max(threshold, STEPS[0]))
        parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text x="{at - 4:.1f}" y="{_TOP + 14 + 15 * place}" text-anchor="end">{html.escape(name)}</text>'
        )
    parts.append(f'<text x="{_LEFT + 8}" y="18" style="fill:{_COLOURS["hit"]}">hit rate</text>')
    parts.append(f'<text x="{_LEFT + 70}" y="18" style="fill:{_COLOURS["false"]}">false-hit rate</text>')
    parts.append(f'<text x="{_LEFT + 170}" y="18">dashed: without the rules of differences</text></svg>')
    return "\n".join(parts) + "\n"
