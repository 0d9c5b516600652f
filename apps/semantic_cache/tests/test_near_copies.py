"""The rules for prompts that are nearly the same word by word."""

from __future__ import annotations

import pytest

from annulus_semantic_cache.near_copies import RULES, added, replaced, swapped


def test_two_words_that_change_places_make_another_question() -> None:
    assert swapped("Convert JSON to YAML", "Convert YAML to JSON")
    assert swapped("How do I call C from C#?", "How do I call C# from C?")
    assert swapped("Wie viel sind 50 Euro in Dollar?", "Wie viel sind 50 Dollar in Euro?")


def test_words_around_and_or_may_change_places() -> None:
    assert not swapped("Do cats or dogs live longer?", "Do dogs or cats live longer?")


def test_a_clause_may_move() -> None:
    assert not swapped("In Kotlin, how do I check for null?", "How do I check for null in Kotlin?")


def test_one_word_replaced_makes_another_question() -> None:
    assert replaced("How high is Kilimanjaro in feet?", "How high is Kilimanjaro in metres?")
    assert replaced("When was the Berlin Wall built?", "Why was the Berlin Wall built?")
    assert replaced("What does a balance of 20 mean?", "What does a balance of -20 mean?")


def test_typing_errors_articles_and_synonyms_replace_nothing() -> None:
    assert not replaced("How do I restart the service?", "How do I restrat the service?")
    assert not replaced("How do I restart my service?", "How do I restart the service?")
    assert not replaced("How do I delete a folder?", "How do I remove a folder?")


def test_an_added_condition_makes_another_question() -> None:
    assert added("How do I cancel an order?", "How do I cancel an order that has shipped?")
    assert added("How do I make vegan bread?", "How do I make bread?")


def test_added_politeness_and_the_words_between_keywords_change_nothing() -> None:
    assert not added("What causes hiccups?", "Excuse me, may I ask what causes hiccups? Thanks")
    assert not added("difference patent trademark", "What is the difference between a patent and a trademark?")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("text", ["", "?", "hello", "🎬", "x " * 50_000])
def test_a_prompt_does_not_differ_from_itself(rule: str, text: str) -> None:
    assert not RULES[rule](text, text)
    assert not RULES[rule](text, "")
