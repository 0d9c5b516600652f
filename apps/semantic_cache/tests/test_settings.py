"""Settings of flags and of the environment."""

from __future__ import annotations

import pathlib

import pytest

from annulus_semantic_cache.command import main
from annulus_semantic_cache.differences import VolatileRule
from annulus_semantic_cache.settings import Settings, seconds_of, settings_of


def test_flags_come_before_the_environment_and_this_before_defaults() -> None:
    environment = {"SEMANTIC_CACHE_THRESHOLD": "0.8", "ANNULUS_DIALECT": "cassandra", "SEMANTIC_CACHE_TTL": "1d"}
    read = settings_of({"threshold": "0.7", "hosts": "a, b"}, environment)
    assert (read.threshold, read.dialect, read.ttl, read.hosts) == (0.7, "cassandra", 86_400, ("a", "b"))
    assert settings_of({}, {}) == Settings()


def test_both_scales_name_the_same_threshold() -> None:
    assert Settings(threshold=0.9).least_cosine == 0.9
    assert Settings(threshold=0.95, scale="score").least_cosine == pytest.approx(0.9)


@pytest.mark.parametrize(
    "flags",
    [
        {"threshold": "0"}, {"threshold": "1.1"}, {"threshold": "x"}, {"threshold": "0.5", "scale": "score"},
        {"scale": "redis"}, {"dialect": "oracle"}, {"ttl": "soon"}, {"table": "a; DROP"}, {"keyspace": ""},
        {"rules": "numbers,words"}, {"candidates": "0"}, {"per_user": "maybe"}, {"dimensions": "0"},
    ],
)  # fmt: skip
def test_values_that_are_none_are_refused_in_words(flags: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        settings_of(flags, {})


def test_durations_have_units() -> None:
    assert [seconds_of(text) for text in ("90", "1.5m", "2h", "7d", "1w")] == [90, 90, 7200, 604_800, 604_800]


def test_a_rule_for_volatile_prompts_may_come_from_a_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rules"
    file.write_text("# ours\n\\bbuild number\\b\n")
    rule = VolatileRule.of(str(file))
    assert rule.holds("What is the Build Number?")
    assert not rule.holds("What is the latest version?")
    file.write_text("(")
    with pytest.raises(ValueError, match="no regular expression"):
        VolatileRule.of(str(file))


def test_prompts_about_what_is_current_are_volatile() -> None:
    rule = VolatileRule()
    for text in (
        "What's the weather in Bonn?",
        "Who is the current president?",
        "Was gibt es heute?",
        "今天天气怎么样?",
    ):
        assert rule.holds(text), text
    for text in ("How do I boil an egg?", "Explain current_timestamp", "What is electric power?", "How do I use Git?"):
        assert not rule.holds(text), text


def test_wrong_commands_end_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["invalidate", "--cql-port", "1", "--threshold", "7"]) == 1
    assert "threshold" in capsys.readouterr().err
    assert main(["serve", "--upstream", "http://127.0.0.1:1/v1", "--embedding-model", "other"]) == 1
    assert "name a server" in capsys.readouterr().err
