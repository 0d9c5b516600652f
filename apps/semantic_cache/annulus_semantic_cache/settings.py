"""Settings: each is a flag of the commands, a variable of the environment, and a field here."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, cast

Dialect = Literal["annulus", "scylla", "cassandra"]
DIALECTS: tuple[Dialect, ...] = ("annulus", "scylla", "cassandra")
Scale = Literal["cosine", "score"]
SCALES: tuple[Scale, ...] = ("cosine", "score")

LOCAL = "local"
BUNDLED_MODEL = "all-MiniLM-L6-v2"
# The rules that `differences.py` and `near_copies.py` have.
ALL_RULES = ("numbers", "negation", "opposites", "asked", "names", "signs", "swapped", "replaced", "added")

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds_of(text: str) -> float:
    """Seconds of a duration such as `90`, `15m`, `24h` or `7d`.

    Raises ValueError for any other text."""
    parts = _DURATION.fullmatch(text.strip().lower())
    if parts is None:
        raise ValueError(f"{text!r} is no duration: write seconds, or a number with s, m, h, d or w, such as 24h")
    return float(parts[1]) * _SECONDS[parts[2]]


def _list_of(text: str) -> tuple[str, ...]:
    return tuple(part for part in (part.strip() for part in text.split(",")) if part)


def _setting(default: Any, about: str, kind: Any = str, choices: Sequence[str] | None = None) -> Any:
    return field(default=default, metadata={"about": about, "kind": kind, "choices": choices})


@dataclass(frozen=True)
class Settings:
    """All settings of a cache and its proxy. Times are in seconds."""

    # The database.
    dialect: Dialect = _setting("annulus", "which database it is: it picks the class of the index", choices=DIALECTS)
    hosts: tuple[str, ...] = _setting(("127.0.0.1",), "hosts of the database, with commas", _list_of)
    cql_port: int = _setting(9042, "its port", int)
    username: str = _setting("", "role to log in with; the password is SEMANTIC_CACHE_PASSWORD in the environment")
    ca: str = _setting("", "file of the authority that signed the database's certificate: the connection is under TLS")
    keyspace: str = _setting("semantic_cache", "keyspace; it is made with one copy of each row if it is missing")
    table: str = _setting("prompts", "table; it is made if it is missing")
    database_timeout: float = _setting(0.5, "how long one statement may take", seconds_of)
    # The embeddings.
    embedding_url: str = _setting(
        LOCAL, "`local`: the bundled model in this process; or the base URL of a server in OpenAI's form"
    )
    embedding_model: str = _setting(BUNDLED_MODEL, "name of the embedding model; it belongs to the key")
    dimensions: int = _setting(384, "numbers in a vector of that model", int)
    embedding_tokens: int = _setting(
        256, "longest text that the model reads to its end; longer ones match exactly", int
    )
    embedding_timeout: float = _setting(0.5, "how long one embedding may take", seconds_of)
    # What is a hit.
    threshold: float = _setting(0.885, "least similarity of a hit, by `scale`", float)
    scale: Scale = _setting("cosine", "`cosine`, 0 to 1; or `score`, which is (1 + cosine) / 2", choices=SCALES)
    candidates: int = _setting(4, "nearest rows that are looked at", int)
    rules: tuple[str, ...] = _setting(
        ALL_RULES, "differences that rule a hit out, with commas, or `none`", lambda text: _rules_of(text)
    )
    per_user: bool = _setting(False, "users of a tenant share nothing", lambda text: _flag_of(text))
    # How long an answer lives.
    ttl: float = _setting(7 * 86_400, "how long an answer lives; 0 is for ever", seconds_of)
    volatile_ttl: float = _setting(300, "the same for prompts about what is current; 0 stores none", seconds_of)
    refresh_after: float = _setting(0, "an older answer is a miss, and gets a new one; 0 is never", seconds_of)
    volatile_rules: str = _setting("", "file of regular expressions, one a line, in place of the built-in ones")
    # Bounds.
    prompt_bytes: int = _setting(1_000_000, "longest prompt that is stored", int)
    answer_bytes: int = _setting(1_000_000, "longest answer that is stored", int)
    waiting: int = _setting(1_000, "answers that wait in memory for a database that is down", int)

    def __post_init__(self) -> None:
        for what, name in (("keyspace", self.keyspace), ("table", self.table)):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{what} {name!r}: write lower-case letters, digits and _, a letter first, 48 at most")
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold {self.threshold}: it is above 0, and 1 at most")
        if self.scale == "score" and self.threshold <= 0.5:
            raise ValueError(f"threshold {self.threshold} by score: 0.5 is what unrelated texts have; try 0.9")
        if not 1 <= self.candidates <= 100:
            raise ValueError(f"candidates {self.candidates}: write 1 to 100")
        if not 1 <= self.dimensions <= 16_000:
            raise ValueError(f"dimensions {self.dimensions}: write 1 to 16000")

    @property
    def least_cosine(self) -> float:
        """The threshold as a cosine."""
        return self.threshold if self.scale == "cosine" else 2 * self.threshold - 1


def _rules_of(text: str) -> tuple[str, ...]:
    rules = () if text.strip().lower() == "none" else _list_of(text)
    if unknown := sorted(set(rules) - set(ALL_RULES)):
        raise ValueError(f"no such rule: {', '.join(unknown)}; there are {', '.join(ALL_RULES)}, and `none`")
    return rules


def _flag_of(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r}: write true or false")
    return text.lower() == "true"


def variable_of(name: str) -> str:
    """The environment's name of a setting. `ANNULUS_DIALECT` picks the dialect of all applications."""
    return "ANNULUS_DIALECT" if name == "dialect" else f"SEMANTIC_CACHE_{name.upper()}"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds a flag for each setting."""
    for one in fields(Settings):
        default = one.default if one.default is not MISSING else None
        shown = ",".join(default) if isinstance(default, tuple) else default
        parser.add_argument(
            "--" + one.name.replace("_", "-"),
            metavar=one.name.rsplit("_", 1)[-1].upper(),
            help=f"{one.metadata['about']} ({variable_of(one.name)}; {shown})".replace("%", "%%"),
        )


def settings_of(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of flags, else of the environment, else the defaults.

    Raises ValueError that names the flag and what it takes."""
    chosen: dict[str, Any] = {}
    for one in fields(Settings):
        text = flags.get(one.name)
        if text is None:
            text = environment.get(variable_of(one.name))
        if text is None:
            continue
        choices = cast("Sequence[str] | None", one.metadata["choices"])
        if choices is not None and text not in choices:
            raise ValueError(f"--{one.name.replace('_', '-')} {text}: it is one of {', '.join(choices)}")
        try:
            chosen[one.name] = one.metadata["kind"](text)
        except ValueError as error:
            raise ValueError(f"--{one.name.replace('_', '-')}: {error}") from None
    return Settings(**chosen)
