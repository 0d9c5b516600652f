"""The library: what is a hit, what never is, and how long."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from typing import Any

import pytest
from conftest import SharedEmbeddings
from server import eventually

from annulus_semantic_cache import AsyncSemanticCache, SemanticCache, Settings, UncachedError

EGG, EGG_TOO, DOG = "How do I boil an egg?", "How can I boil an egg?", "Why do dogs bark?"


def test_the_same_text_is_an_exact_hit(cache: SemanticCache) -> None:
    key = cache.put(EGG, "Ten minutes.")
    hit = cache.get(f"  {EGG} ")
    assert hit is not None
    assert (hit.prompt_id, hit.kind, hit.response, hit.similarity, hit.score) == (
        key,
        "exact",
        "Ten minutes.",
        1.0,
        1.0,
    )


def test_a_similar_text_is_a_hit_with_its_similarity_on_both_scales(cache: SemanticCache) -> None:
    cache.put(EGG, "Ten minutes.")
    hit = cache.get(EGG_TOO)
    assert hit is not None
    assert (hit.kind, hit.prompt, hit.response) == ("similar", EGG, "Ten minutes.")
    assert 0.9 < hit.similarity < 1
    assert hit.score == pytest.approx((1 + hit.similarity) / 2)
    assert cache.get(DOG) is None


def test_scores_are_those_of_the_database(cache: SemanticCache, settings: Settings) -> None:
    cache.put(EGG, "Ten minutes.")
    hit = cache.get(EGG_TOO)
    assert hit is not None
    strict = dataclasses.replace(settings, scale="score", threshold=hit.score + 0.001)
    with SemanticCache(strict, embeddings=cache.asynchronous.embeddings) as other:
        assert other.get(EGG_TOO) is None
    lax = dataclasses.replace(settings, scale="score", threshold=hit.score - 0.001)
    with SemanticCache(lax, embeddings=cache.asynchronous.embeddings) as other:
        assert other.get(EGG_TOO) is not None


@pytest.mark.parametrize("asked", [EGG, EGG_TOO])
@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "other"},
        {"model": "other"},
        {"parameters": {"temperature": 0.5, "system": "Be brief."}},
        {"parameters": {"temperature": 0, "system": "Be long."}},
        {"parameters": {"temperature": 0, "system": "Be brief.", "tools": [{"name": "clock"}]}},
        {"conversation": [{"role": "user", "content": "I have no pot."}]},
    ],
)
def test_no_hit_across_tenants_models_parameters_or_conversations(
    cache: SemanticCache, asked: str, other: dict[str, Any]
) -> None:
    key = {"tenant": "t", "model": "m", "parameters": {"temperature": 0, "system": "Be brief."}}
    cache.put(EGG, "Ten minutes.", **key)
    assert cache.get(asked, **key) is not None
    assert cache.get(asked, **(key | other)) is None


def test_users_of_a_tenant_share_answers_unless_it_is_forbidden(
    cache: SemanticCache, settings: Settings, embeddings: SharedEmbeddings
) -> None:
    cache.put(EGG, "Ten minutes.", user="ann")
    assert cache.get(EGG, user="bo") is not None
    with SemanticCache(dataclasses.replace(settings, per_user=True), embeddings=embeddings) as apart:
        apart.put(EGG, "Ten minutes.", user="ann")
        assert apart.get(EGG_TOO, user="ann") is not None
        assert apart.get(EGG, user="bo") is None


def test_rows_of_another_embedding_model_are_a_miss(
    cache: SemanticCache, settings: Settings, embeddings: SharedEmbeddings
) -> None:
    class Renamed(SharedEmbeddings):
        name = "another-model"

    cache.put(EGG, "Ten minutes.")
    with SemanticCache(settings, embeddings=Renamed(1)) as renamed:
        assert renamed.get(EGG) is None
        assert renamed.get(EGG_TOO) is None
        renamed.put(EGG, "Nine minutes.")
        assert renamed.get(EGG).response == "Nine minutes."  # type: ignore[union-attr]
    assert cache.get(EGG).response == "Ten minutes."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("How do I enable the log?", "How do I disable the log?"),
        ("What was the budget of 2023?", "What was the budget of 2024?"),
        ("Should I eat this?", "Should I not eat this?"),
        ("Convert JSON to YAML", "Convert YAML to JSON"),
        ("What is the capital of France?", "What is the capital of Spain?"),
        ("What does 😀 mean?", "What does 🎉 mean?"),
        ("猫是什么意思?", "狗是什么意思?"),
    ],
)
def test_small_differences_that_change_the_meaning_are_misses(cache: SemanticCache, stored: str, asked: str) -> None:
    cache.put(stored, "the answer to the stored one")
    assert cache.get(asked) is None
    assert cache.get(stored) is not None


@pytest.mark.parametrize(
    "text", ["Wie koche ich ein Ei?", "Как сварить яйцо?", "卵のゆで方は?", "🥚❓", "é" * 300, "a\x00b"]
)
def test_texts_of_all_languages_are_exact_hits(cache: SemanticCache, text: str) -> None:
    cache.put(text, f"answer to {text}")
    hit = cache.get(text)
    assert hit is not None and hit.response == f"answer to {text}"


def test_composed_and_decomposed_letters_are_the_same_text(cache: SemanticCache) -> None:
    cache.put("Où est le café?", "Là.")
    hit = cache.get("Où est le café?")
    assert hit is not None and hit.kind == "exact"


def test_a_prompt_of_100_kb_matches_by_its_whole_text_only(cache: SemanticCache) -> None:
    long = "Summarise this: " + "the quick brown fox jumps over the lazy dog. " * 2_300
    assert len(long) > 100_000
    cache.put(long + "The end.", "A fox.")
    assert cache.get(long + "The end.") is not None
    assert cache.get(long + "Another end.") is None


def test_a_text_of_more_tokens_than_the_model_reads_matches_exactly_only(cache: SemanticCache) -> None:
    begin = " ".join(str(number) for number in range(200))
    assert len(begin) < 1000
    cache.put(begin + " then add", "Sum.")
    assert cache.get(begin + " then multiply") is None
    assert cache.get(begin + " then add") is not None


@pytest.mark.parametrize("text", ["", "  \n", "half a pair \ud83d", "x" * 1_000_001])
def test_texts_that_are_no_key_are_refused_in_words_and_missed(cache: SemanticCache, text: str) -> None:
    assert cache.get(text) is None
    with pytest.raises(UncachedError, match=r"empty|surrogate|at most"):
        cache.put(text, "answer")


@pytest.mark.parametrize(
    "key",
    [
        {"user": "\udc00"},
        {"tenant": "t" * 1_001},
        {"model": "m" * 1_001},
        {"tags": ["t"] * 2 + [str(n) for n in range(40)]},
    ],
)
def test_names_that_can_not_be_stored_are_refused_in_words(cache: SemanticCache, key: dict[str, Any]) -> None:
    with pytest.raises(UncachedError, match=r"surrogate|at most|are allowed"):
        cache.put(EGG, "answer", **key)
    assert cache.put(EGG, "answer") is not None


def test_an_answer_expires(cache: SemanticCache) -> None:
    cache.put(EGG, "Ten minutes.", ttl=1)
    assert cache.get(EGG) is not None
    eventually(lambda: cache.get(EGG) is None and cache.get(EGG_TOO) is None, 10)


def test_an_old_answer_is_refreshed_and_replaced(settings: Settings, embeddings: SharedEmbeddings) -> None:
    async def run() -> None:
        async with AsyncSemanticCache(dataclasses.replace(settings, refresh_after=0.5), embeddings=embeddings) as cache:
            from annulus_semantic_cache import Answer, Miss, Question

            await cache.put(EGG, "Ten minutes.")
            first = await cache.get(EGG)
            assert first is not None
            deadline = asyncio.get_running_loop().time() + 10
            while not isinstance(found := await cache.look_up(Question(EGG)), Miss):
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.05)
            assert found.reason == "stale"
            assert found.replaces is not None
            await cache.store(Question(EGG), Answer("Nine minutes."), replaces=found.replaces)
            second = await cache.get(EGG)
            assert second is not None
            assert second.response == "Nine minutes."
            assert second.inserted_at == first.inserted_at
            assert second.updated_at > first.updated_at

    asyncio.run(run())


def test_prompts_about_what_is_current_live_shortly_or_are_not_stored(
    cache: SemanticCache, settings: Settings, embeddings: SharedEmbeddings
) -> None:
    latest = "What is the latest version of Python?"
    cache.put("What is the version of Python?", "3")
    assert cache.get(latest) is None
    cache.put(latest, "3.14")
    row = cache.run(cache.asynchronous._rows.exact(cache.get(latest).prompt_id))  # type: ignore[union-attr]
    assert row is not None and row.expires_at is not None
    assert (row.expires_at - row.updated_at).total_seconds() == 300
    with SemanticCache(
        dataclasses.replace(settings, volatile_ttl=0, table="none_stored"), embeddings=embeddings
    ) as none:
        assert none.put(latest, "3.14") is None
        assert none.get(latest) is None


def test_rows_are_invalidated_by_tag_text_user_row_age_and_tenant(cache: SemanticCache) -> None:
    def fill() -> uuid.UUID:
        cache.put(EGG, "1", tags=["kitchen", "food"], user="ann", tenant="a")
        cache.put(DOG, "2", tags=["animals"], user="bo", tenant="a")
        key = cache.put(EGG, "3", tags=["kitchen"], user="ann", tenant="b")
        assert key is not None
        return key

    def left() -> list[str]:
        found = [cache.get(text, tenant=tenant) for text, tenant in ((EGG, "a"), (DOG, "a"), (EGG, "b"))]
        return [hit.response for hit in found if hit is not None]

    key = fill()
    for which, stay in (
        ({"tag": "kitchen"}, ["2"]),
        ({"tag": "kitchen", "tenant": "a"}, ["2", "3"]),
        ({"text": EGG}, ["2"]),
        ({"text": EGG, "tenant": "b"}, ["1", "2"]),
        ({"user": "ann", "tenant": "a"}, ["2", "3"]),
        ({"prompt_id": key}, ["1", "2"]),
        ({"prompt_id": key, "tenant": "a"}, ["1", "2", "3"]),
        ({"older_than": 3600}, ["1", "2", "3"]),
        ({"older_than": 0}, []),
        ({"tenant": "a"}, ["3"]),
        ({"everything": True}, []),
    ):
        fill()
        assert cache.invalidate(**which) == 3 - len(stay), which
        assert left() == stay, which
    with pytest.raises(ValueError, match="say which rows"):
        cache.invalidate()


def test_an_answer_asked_for_before_an_invalidation_is_not_stored_after_it(cache: SemanticCache) -> None:
    from annulus_semantic_cache import Answer, Question

    before = cache.asynchronous.epoch
    cache.invalidate(tag="source")
    late = cache.asynchronous.store(Question(EGG, tags=frozenset({"source"})), Answer("old"), epoch=before)
    assert cache.run(late) is None
    assert cache.get(EGG) is None


def test_an_erasure_removes_hits_from_the_page(cache: SemanticCache) -> None:
    for tenant in ("a", "b"):
        cache.put(EGG, "1", tenant=tenant)
        cache.get(EGG, tenant=tenant, user="ann")
    cache.invalidate(tenant="a", user="ann")
    assert [hit.tenant for hit in cache.asynchronous.metrics.recent] == ["b"]


async def test_both_forms_work_in_an_event_loop(settings: Settings, embeddings: SharedEmbeddings) -> None:
    async with AsyncSemanticCache(settings, embeddings=embeddings) as cache:
        await cache.put(EGG, "Ten minutes.")
        found = await asyncio.gather(*(cache.get(EGG_TOO) for _ in range(50)))
        assert all(hit is not None for hit in found)
    assert b'semantic_cache_hits_total{kind="similar"} 50.0' in cache.metrics.text()


def test_a_table_of_other_dimensions_is_said_and_everything_is_a_miss(
    cache: SemanticCache, settings: Settings, embeddings: SharedEmbeddings
) -> None:
    wider = dataclasses.replace(settings, dimensions=768)
    with SemanticCache(wider, embeddings=embeddings) as other:
        assert "vector<float, 384>" in other.asynchronous.trouble
        assert "--table" in other.asynchronous.trouble
        assert other.get(EGG) is None
