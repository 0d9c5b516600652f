"""Metrics in Prometheus' form, and the last hits for the page."""

from __future__ import annotations

import collections
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
RECENT_HITS = 50
SHOWN_CHARACTERS = 300


@dataclass(frozen=True)
class RecentHit:
    """A hit as the page shows it: the prompt that came next to the stored one."""

    at: float
    tenant: str
    user: str
    asked: str
    stored: str
    kind: str
    similarity: float
    prompt_id: str


class Metrics:
    """Counts of one cache."""

    def __init__(self) -> None:
        # The time at which each counter began doubles the text, and tells nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        prefix = "semantic_cache"
        self.hits = Counter(f"{prefix}_hits", "Answers from the cache.", ["kind"], registry=registry)
        self.misses = Counter(f"{prefix}_misses", "Look-ups without an answer.", ["reason"], registry=registry)
        self.bypassed = Counter(
            f"{prefix}_bypassed", "Requests that the cache left alone.", ["reason"], registry=registry
        )
        self.shared = Counter(
            f"{prefix}_shared", "Requests that waited for the answer of an equal one.", registry=registry
        )
        self.false_hits = Counter(f"{prefix}_false_hits", "Hits that users reported as false.", registry=registry)
        self.stored = Counter(f"{prefix}_stored", "Answers that were stored.", registry=registry)
        self.lost = Counter(f"{prefix}_lost", "Answers not stored while the database was down.", registry=registry)
        self.erased = Counter(f"{prefix}_invalidated", "Rows that invalidations deleted.", registry=registry)
        self.errors = Counter(f"{prefix}_errors", "Failures that requests passed by.", ["part"], registry=registry)
        self.tokens = Counter(f"{prefix}_tokens_saved", "Tokens that hits saved.", ["kind"], registry=registry)
        self.money = Counter(
            f"{prefix}_money_saved", "Price of these tokens, by --price-in and --price-out.", registry=registry
        )
        self.seconds = Counter(f"{prefix}_seconds_saved", "Time of the model that hits saved.", registry=registry)
        self.look_up = Histogram(
            f"{prefix}_look_up_seconds", "Time of look-ups.", ["result"], registry=registry, buckets=_SECONDS
        )
        self.model = Histogram(
            f"{prefix}_model_seconds",
            "Time of whole answers of the model.",
            registry=registry,
            buckets=(*_SECONDS, 10.0, 30.0),
        )
        self.up = Gauge(f"{prefix}_database_up", "Whether the database answers.", registry=registry)
        self.waiting = Gauge(f"{prefix}_waiting", "Answers that wait for the database.", registry=registry)
        self.recent: collections.deque[RecentHit] = collections.deque(maxlen=RECENT_HITS)

    def text(self) -> bytes:
        """All metrics in Prometheus' text form."""
        return generate_latest(self.registry)

    def forget(self, tenant: str | None, user: str | None) -> None:
        """Removes hits of a tenant (None: of all) and a user (None: of all) from those that the page shows."""
        left = [
            one
            for one in self.recent
            if (tenant is not None and one.tenant != tenant) or (user is not None and one.user != user)
        ]
        self.recent.clear()
        self.recent.extend(left)

    def overview(self) -> dict[str, object]:
        """What the page shows."""
        totals: dict[str, float] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name.endswith(("_total", "_up", "_waiting")):
                    name = sample.name.removeprefix("semantic_cache_").removesuffix("_total")
                    totals[name] = totals.get(name, 0) + sample.value
                    for value in sample.labels.values():
                        totals[f"{name}.{value}"] = totals.get(f"{name}.{value}", 0) + sample.value
        return {"totals": totals, "recent": [asdict(one) for one in reversed(self.recent)]}
