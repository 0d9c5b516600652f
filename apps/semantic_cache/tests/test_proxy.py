"""The proxy, as OpenAI's client sees it."""

from __future__ import annotations

import asyncio
import json
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from annulus_embedder.testing import StubModelServer, running_stub_model
from conftest import ADMIN, ProxyProcess, StartProxy
from server import Server, eventually

EGG, EGG_TOO = "How do I boil an egg?", "How can I boil an egg?"


@pytest.fixture
def proxy(start_proxy: StartProxy, model: StubModelServer) -> Iterator[ProxyProcess]:
    httpx2.delete(model.url + "/calls")
    yield start_proxy("--price-in", "2", "--price-out", "8")


@pytest.fixture(scope="module")
def long_lived(server: Server, model: StubModelServer) -> Iterator[ProxyProcess]:
    """A proxy that several tests share."""
    running = ProxyProcess("--upstream", model.base_url, "--cql-port", str(server.cql_port), "--database-timeout", "10")
    yield running
    running.stop()


def client_of(proxy: ProxyProcess, key: str = "sk-ann") -> openai.OpenAI:
    return openai.OpenAI(base_url=proxy.base_url, api_key=key, max_retries=0)


def ask(
    proxy: ProxyProcess, text: str, *, key: str = "sk-ann", headers: dict[str, str] | None = None, **more: Any
) -> httpx2.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return httpx2.post(
        proxy.base_url + "/chat/completions",
        json=body,
        headers={"authorization": f"Bearer {key}", **(headers or {})},
        timeout=60,
    )


def stored(proxy: ProxyProcess, text: str, **more: Any) -> httpx2.Response:
    """Asks until the answer is a hit: it is stored after it was given."""
    return eventually(lambda: hit if (hit := ask(proxy, text, **more)).headers["x-cache"].startswith("hit") else None)


def own(proxy: ProxyProcess, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is None:
        return httpx2.get(proxy.url + path, headers=names)
    return httpx2.post(proxy.url + path, json=body, headers=names)


@pytest.mark.smoke
def test_a_client_changes_its_base_url_and_has_hits(proxy: ProxyProcess, model: StubModelServer) -> None:
    client = client_of(proxy)

    def answer(text: str) -> Any:
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])

    first = answer(EGG)
    stored(proxy, EGG)
    calls = model.calls
    same, similar = answer(EGG), answer(EGG_TOO)
    assert model.calls == calls
    assert same.choices[0].message.content == similar.choices[0].message.content == first.choices[0].message.content
    assert same.usage.total_tokens == first.usage.total_tokens > 0
    assert same.choices[0].finish_reason == "stop"
    assert model.last["authorization"] == "Bearer sk-ann"


def test_streams_are_stored_and_replayed_in_either_form(proxy: ProxyProcess, model: StubModelServer) -> None:
    client = client_of(proxy)

    def stream(text: str) -> tuple[str, Any]:
        chunks = list(
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": text}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        return said, chunks[-1].usage

    said, usage = stream(EGG)
    assert stored(proxy, EGG).json()["choices"][0]["message"]["content"] == said
    calls = model.calls
    assert stream(EGG_TOO) == (said, usage)
    assert model.calls == calls


def test_headers_say_what_happened(proxy: ProxyProcess) -> None:
    assert ask(proxy, EGG).headers["x-cache"] == "miss"
    assert stored(proxy, EGG).headers["x-cache"] == "hit-exact"
    similar = ask(proxy, EGG_TOO)
    assert similar.headers["x-cache"] == "hit-similar"
    cosine, score = float(similar.headers["x-cache-similarity"]), float(similar.headers["x-cache-score"])
    assert score == pytest.approx((1 + cosine) / 2, abs=2e-4)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_thousand_equal_requests_ask_the_model_once(
    proxy: ProxyProcess, model: StubModelServer, streamed: bool
) -> None:
    async def run() -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=200)
        async with httpx2.AsyncClient(limits=limits, timeout=120) as client:
            body = {"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "One thousand?"}]}
            url = proxy.base_url + "/chat/completions"
            return await asyncio.gather(*(client.post(url, json=body) for _ in range(1000)))

    answers = asyncio.run(run())
    assert {answer.status_code for answer in answers} == {200}
    assert model.calls == 1
    if not streamed:
        # Those that came while the model answered, and those that came after.
        assert len({answer.json()["choices"][0]["message"]["content"] for answer in answers}) == 1
        assert sum(answer.headers["x-cache"] == "miss" for answer in answers) == 1


def test_a_leader_that_leaves_takes_no_follower_with_it(start_proxy: StartProxy) -> None:
    with running_stub_model(2.0) as slow:
        proxy = start_proxy(upstream=slow.base_url)
        answers: list[httpx2.Response] = []

        def follow() -> None:
            eventually(lambda: slow.calls == 1)
            answers.append(ask(proxy, EGG))

        follower = threading.Thread(target=follow)
        follower.start()
        body = {"model": "m", "messages": [{"role": "user", "content": EGG}]}
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(
                proxy.base_url + "/chat/completions", json=body, headers={"authorization": "Bearer sk-ann"}, timeout=1
            )
        follower.join(30)
        assert answers[0].status_code == 200
        assert slow.calls == 1


@pytest.mark.parametrize("text", [EGG, EGG_TOO])
@pytest.mark.parametrize(
    "other",
    [
        {"model": "n"},
        {"temperature": 0.3},
        {"top_p": 0.5},
        {"max_tokens": 500},
        {"seed": 7},
        {"response_format": {"type": "json_object"}},
        {"tools": [{"type": "function", "function": {"name": "clock", "parameters": {}}}]},
        {"a_field_of_tomorrow": 1},
    ],
)
def test_parameters_belong_to_the_key(long_lived: ProxyProcess, text: str, other: dict[str, Any]) -> None:
    # Each has a tenant of its own, and all have one proxy.
    key = f"sk-{text}-{other}"
    ask(long_lived, EGG, key=key)
    stored(long_lived, EGG, key=key)
    assert ask(long_lived, text, key=key, **other).headers["x-cache"] == "miss"


def test_the_system_prompt_and_earlier_turns_belong_to_the_key(proxy: ProxyProcess) -> None:
    def turns(*texts: str) -> dict[str, Any]:
        roles = ["system", "user", "assistant", "user"]
        return {"messages": [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]}

    talk = turns("Be brief.", "I have an egg.", "Good.", EGG)
    ask(proxy, "", **talk)
    stored(proxy, "", **talk)
    assert ask(proxy, "", **turns("Be brief.", "I have an egg.", "Good.", EGG_TOO)).headers["x-cache"] == "hit-similar"
    for other in (
        turns("Be long.", "I have an egg.", "Good.", EGG),
        turns("Be brief.", "I have a goose egg.", "Good.", EGG),
        turns("Be brief.", "I have an egg.", "Fine.", EGG),
        {"messages": [{"role": "user", "content": EGG}]},
    ):
        assert ask(proxy, "", **other).headers["x-cache"] == "miss"


def test_keys_are_tenants_and_names_divide_them_further(proxy: ProxyProcess) -> None:
    ask(proxy, EGG, key="sk-ann")
    stored(proxy, EGG, key="sk-ann")
    assert ask(proxy, EGG, key="sk-bo").headers["x-cache"] == "miss"
    assert ask(proxy, EGG_TOO, key="sk-ann", headers={"x-cache-tenant": "shop"}).headers["x-cache"] == "miss"


def test_requests_that_are_no_plain_question_pass_through(proxy: ProxyProcess, model: StubModelServer) -> None:
    image = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    for body, reason in (
        ({"messages": [{"role": "user", "content": image}]}, "not_text"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "not_user"),
        ({"messages": [{"role": "user", "content": ""}]}, "empty"),
        ({"messages": [{"role": "user", "content": "half \ud83d"}]}, "not_unicode"),
        ({"messages": [{"role": "user", "content": "x" * 1_000_001}]}, "too_long"),
        ({"messages": []}, "no_messages"),
        ({"n": 3}, "several"),
    ):
        raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": EGG}], **body})
        before = model.calls
        for _ in range(2):
            answer = httpx2.post(proxy.base_url + "/chat/completions", content=raw, timeout=60)
            assert answer.headers["x-cache"] == "bypass", body
            assert answer.headers["x-cache-reason"] == reason
        assert model.calls - before in (0, 2), "the model refuses it, or answers each time"


def test_bodies_that_are_no_request_are_refused_in_words(proxy: ProxyProcess) -> None:
    url = proxy.base_url + "/chat/completions"
    for raw in (b"", b"{", b"[]", b"\xff", b"[" * 100_000):
        answer = httpx2.post(url, content=raw)
        assert answer.status_code == 400
        assert "JSON" in answer.json()["error"]["message"]
    refused = ask(proxy, EGG, headers={"x-cache-ttl": "soon"})
    assert refused.status_code == 400
    assert "24h" in refused.json()["error"]["message"]


def test_no_request_makes_the_cache_seem_down_to_others(long_lived: ProxyProcess) -> None:
    dogs = "Why do dogs bark?"
    ask(long_lived, dogs)
    stored(long_lived, dogs)
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    for more in (
        {"user": "half \ud83d"}, {"user": "u" * 70_000}, {"model": "m\x00"}, {"model": "m" * 70_000}, {"deep": deep},
        {"headers": {"x-cache-tags": "t" * 2_000}}, {"headers": {"x-cache-tags": ",".join(map(str, range(100)))}},
        {"headers": {"x-cache-tenant": "t" * 2_000}},
    ):  # fmt: skip
        body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": EGG}], **more}
        headers = body.pop("headers", {})
        content = json.dumps(body)
        answer = httpx2.post(long_lived.base_url + "/chat/completions", content=content, headers=headers, timeout=60)
        assert answer.status_code in (200, 400), answer.text
        assert ask(long_lived, dogs).headers["x-cache"] == "hit-exact", str(more)[:60]
    assert own(long_lived, "/health").json()["cache"] == "up"


def test_prompts_of_100_kb_and_of_all_languages_are_hits_by_their_text(proxy: ProxyProcess) -> None:
    for text in ("word " * 20_000, "Wie koche ich ein Ei?", "卵のゆで方は?", "🥚❓🍳"):
        first = ask(proxy, text)
        assert first.status_code == 200
        assert (
            stored(proxy, text).json()["choices"][0]["message"]["content"]
            == first.json()["choices"][0]["message"]["content"]
        )


def test_cache_control_passes_by_or_renews(proxy: ProxyProcess, model: StubModelServer) -> None:
    ask(proxy, EGG)
    stored(proxy, EGG)
    before = model.calls
    assert ask(proxy, EGG, headers={"cache-control": "no-store"}).headers["x-cache"] == "bypass"
    assert ask(proxy, EGG, headers={"cache-control": "no-cache"}).headers["x-cache"] == "miss"
    assert model.calls == before + 2


def test_answers_that_are_cut_off_or_errors_are_not_stored(proxy: ProxyProcess, model: StubModelServer) -> None:
    for more in ({"max_tokens": 2}, {"model": "fail-429"}, {"model": "fail-500"}, {"model": "fail-401"}):
        before = model.calls
        first, second = ask(proxy, EGG, **more), ask(proxy, EGG, **more)
        assert (
            first.status_code
            == second.status_code
            == int(str(more.get("model", "x-200"))[5:] if "model" in more else 200)
        )
        assert {first.headers["x-cache"], second.headers["x-cache"]} == {"miss"}
        assert model.calls == before + 2


def test_a_stream_that_breaks_off_is_not_stored_and_breaks_off(proxy: ProxyProcess) -> None:
    for _ in range(2):
        with pytest.raises(httpx2.HTTPError):
            ask(proxy, EGG, model="fail-midstream", stream=True)


def test_a_model_that_is_down_is_said_and_hits_go_on(start_proxy: StartProxy) -> None:
    with running_stub_model() as upstream:
        proxy = start_proxy(upstream=upstream.base_url)
        ask(proxy, EGG)
        stored(proxy, EGG)
        upstream.stop()
        assert ask(proxy, EGG_TOO).headers["x-cache"] == "hit-similar"
        down = ask(proxy, "Why do dogs bark?")
        assert down.status_code == 502
        assert "can't be reached" in down.json()["error"]["message"]
        upstream.start()
        assert ask(proxy, "Why do dogs bark?").status_code == 200


def test_two_proxies_at_once_share_their_answers(start_proxy: StartProxy, model: StubModelServer) -> None:
    first, second = start_proxy(), start_proxy()
    texts = [f"What is {number} times {number}?" for number in range(12)]
    threads = [threading.Thread(target=ask, args=(proxy, text)) for proxy in (first, second) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text in texts:
        a, b = stored(first, text), stored(second, text)
        assert a.headers["x-cache-id"] == b.headers["x-cache-id"]
        assert a.json()["choices"] == b.json()["choices"]
        assert text in a.text


def test_a_database_that_is_down_fails_no_request_and_is_found_again(
    start_proxy: StartProxy, model: StubModelServer, tmp_path: pathlib.Path
) -> None:
    with Server(tmp_path / "data") as server:
        proxy = start_proxy("--cql-port", str(server.cql_port))
        ask(proxy, EGG)
        stored(proxy, EGG)
        server.kill()
        calls = model.calls
        for _ in range(3):
            assert ask(proxy, EGG).status_code == 200
        assert model.calls == calls + 3
        health = own(proxy, "/health").json()
        assert (health["status"], health["cache"]) == ("ok", "down")
        failed = own(proxy, "/cache/invalidate", {"everything": True}, authorization="Bearer sk-ann")
        assert failed.status_code == 503
        with Server(server.data_dir, cql_port=server.cql_port):
            assert stored(proxy, EGG).headers["x-cache"] == "hit-exact"
            assert own(proxy, "/health").json()["cache"] == "up"


def test_a_proxy_starts_without_a_database(start_proxy: StartProxy) -> None:
    proxy = start_proxy("--cql-port", "1")
    assert ask(proxy, EGG).status_code == 200
    assert own(proxy, "/health").json()["cache"] == "down"


def test_the_demonstration_ends_with_its_stub(server: Server) -> None:
    demo = ProxyProcess("--demo", "--cql-port", str(server.cql_port), "--database-timeout", "10")
    upstream = own(demo, "/cache/overview", x_cache_admin=ADMIN).json()["settings"]["upstream"]
    assert "Stub answer" in ask(demo, EGG).text
    demo.stop()
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(upstream.removesuffix("/v1") + "/health")


def test_embeddings_are_those_of_the_cache_or_pass_through(proxy: ProxyProcess) -> None:
    client = client_of(proxy)
    one = client.embeddings.create(model="all-MiniLM-L6-v2", input=EGG).data[0].embedding
    two = client.embeddings.create(model="all-MiniLM-L6-v2", input=[EGG_TOO, EGG], encoding_format="float").data
    assert len(one) == 384
    assert one == pytest.approx(two[1].embedding, abs=1e-6)
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="all-MiniLM-L6-v2", input="")
    assert [one.id for one in client.models.list()] != []


def test_tags_and_users_are_erased_of_the_own_tenant_only(proxy: ProxyProcess) -> None:
    for key in ("sk-ann", "sk-bo"):
        more: dict[str, Any] = {"key": key, "headers": {"x-cache-tags": "kitchen, food"}, "user": "u-1"}
        ask(proxy, EGG, **more)
        stored(proxy, EGG, **more)
    auth = {"authorization": "Bearer sk-ann"}
    assert own(proxy, "/cache/invalidate", {"tag": "kitchen", "user": "u-2"}, **auth).json() == {"removed": 0}
    assert own(proxy, "/cache/invalidate", {"tag": "kitchen", "user": "u-1"}, **auth).json() == {"removed": 1}
    assert ask(proxy, EGG, key="sk-bo").headers["x-cache"] == "hit-exact"
    for body in ({}, {"tagg": "x"}, {"tag": 1}, {"older_than": "soon"}, {"prompt_id": "x"}):
        assert own(proxy, "/cache/invalidate", body, **auth).status_code == 400
    assert own(proxy, "/cache/invalidate", {"any_tenant": True, "tag": "kitchen"}, **auth).status_code == 403
    everyone = own(proxy, "/cache/invalidate", {"any_tenant": True, "tag": "kitchen"}, x_cache_admin=ADMIN)
    assert everyone.json() == {"removed": 1}
    plain = httpx2.post(
        proxy.url + "/cache/invalidate", content='{"everything": true}', headers={"content-type": "text/plain"}
    )
    assert plain.status_code == 415


def test_false_hits_are_counted_and_removed(proxy: ProxyProcess) -> None:
    ask(proxy, EGG)
    hit = stored(proxy, EGG)
    auth = {"authorization": "Bearer sk-ann"}
    assert own(proxy, "/cache/report", {"prompt_id": hit.headers["x-cache-id"]}, **auth).json() == {"removed": 0}
    other = {"prompt_id": hit.json()["id"], "remove": True}
    assert own(proxy, "/cache/report", other, authorization="Bearer sk-bo").json() == {"removed": 0}
    assert own(proxy, "/cache/report", other, **auth).json() == {"removed": 1}
    assert ask(proxy, EGG).headers["x-cache"] == "miss"
    assert "semantic_cache_false_hits_total 3.0" in own(proxy, "/metrics").text


def test_savings_are_in_the_metrics_and_on_the_page(proxy: ProxyProcess) -> None:
    ask(proxy, EGG)
    hit = stored(proxy, EGG)
    usage = hit.json()["usage"]
    text = own(proxy, "/metrics").text
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(figures['semantic_cache_tokens_saved_total{kind="prompt"}']) == usage["prompt_tokens"]
    money = (usage["prompt_tokens"] * 2 + usage["completion_tokens"] * 8) / 1e6
    assert float(figures["semantic_cache_money_saved_total"]) == pytest.approx(money)
    assert float(figures["semantic_cache_seconds_saved_total"]) > 0
    assert own(proxy, "/cache/overview").status_code == 403
    page = own(proxy, "/cache/overview", x_cache_admin=ADMIN).json()
    assert page["totals"]["hits"] == 1
    assert page["recent"][0]["asked"] == EGG
    assert "<title>Semantic cache</title>" in own(proxy, "/").text


def test_prompts_and_keys_are_in_no_log_and_keys_in_no_row(
    start_proxy: StartProxy, server: Server, settings: Any
) -> None:
    proxy = start_proxy()
    secret, key = "My secret is Rumpelstiltskin", "sk-very-secret-key"
    ask(proxy, secret, key=key)
    stored(proxy, secret, key=key)
    ask(proxy, secret, key=key, model="fail-500")
    own(proxy, "/cache/invalidate", {"text": "Rumpelstiltskin"}, authorization=f"Bearer {key}")
    from cassandra.cluster import Cluster

    cluster = Cluster([server.host], server.cql_port)
    try:
        rows = [
            str(row)
            for row in cluster.connect().execute(f"SELECT * FROM {settings.keyspace}.{settings.table}", timeout=30)
        ]
    finally:
        cluster.shutdown()
    proxy.stop()
    assert any("Rumpelstiltskin" in row for row in rows)
    assert not any(key in row for row in rows)
    for word in ("Rumpelstiltskin", key):
        assert word not in proxy.log
        assert word not in server.log()
