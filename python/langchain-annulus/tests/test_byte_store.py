"""The key-value store beyond LangChain's standard tests."""

import threading

import pytest
from cassandra.cluster import ResponseFuture, Session

from langchain_annulus import AnnulusByteStore

NAMESPACES = [None, "one"]


@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_keys_of_a_prefix(place, namespace):
    store = AnnulusByteStore(namespace=namespace, **place)
    keys = [f"{prefix}{number}" for prefix in ("a", "aé", "b", "漢") for number in range(30)]
    store.mset([(key, key.encode()) for key in keys])
    for prefix in (None, "", "a", "aé", "aé1", "漢", "漢2", "c"):
        expected = sorted(key for key in keys if key.startswith(prefix or ""))
        assert sorted(store.yield_keys(prefix=prefix)) == expected
        assert sorted([key async for key in store.ayield_keys(prefix=prefix)]) == expected


@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_pages_of_keys(connect, place, namespace):
    session = connect()
    session.default_fetch_size = 7
    store = AnnulusByteStore(namespace=namespace, **place | {"session": session})
    keys = [f"key {number:03}" for number in range(100)]
    await store.amset([(key, b"") for key in keys])
    assert sorted(store.yield_keys()) == keys
    assert sorted([key async for key in store.ayield_keys()]) == keys
    assert await store.amget([*keys, "no"]) == [b""] * 100 + [None]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_many_keys(place, namespace):
    store = AnnulusByteStore(namespace=namespace, **place)
    pairs = [(f"key {number}", number.to_bytes(2)) for number in range(500)]
    store.mset(pairs)
    keys = [key for key, _ in pairs]
    assert store.mget(keys) == [value for _, value in pairs]
    store.mset([("key 0", b"x"), ("key 0", b"y")])
    assert store.mget(["key 0"]) == [b"y"]
    store.mdelete(keys[:499])
    assert store.mget(keys[498:]) == [None, pairs[499][1]]


def test_namespaces_are_apart(place):
    one, two = (AnnulusByteStore(namespace=name, **place) for name in ("one", "two"))
    one.mset([("a", b"1"), ("b", b"1")])
    two.mset([("a", b"2")])
    one.mdelete(["a"])
    assert one.mget(["a", "b"]) == [None, b"1"]
    assert two.mget(["a", "b"]) == [b"2", None]
    assert list(two.yield_keys()) == ["a"]


def test_values_that_expire(session, place):
    AnnulusByteStore(ttl=600, **place).mset([("a", b"1")])
    ((left,),) = session.execute(f"SELECT ttl(value) FROM {place['keyspace']}.{place['table']}")
    assert 0 < left <= 600


async def test_asyncio_is_never_blocked(place, monkeypatch):
    loop = threading.current_thread()
    for of, name in ((Session, "execute"), (Session, "prepare"), (ResponseFuture, "result")):
        original = getattr(of, name)

        def call(*arguments, original=original, **named):
            assert threading.current_thread() is not loop
            return original(*arguments, **named)

        monkeypatch.setattr(of, name, call)
    store = AnnulusByteStore(**place)
    await store.amset([("a", b"1")])
    assert await store.amget(["a"]) == [b"1"]
    assert [key async for key in store.ayield_keys()] == ["a"]
    await store.amdelete(["a"])


def test_another_shape_of_the_table_is_refused(place):
    AnnulusByteStore(**place).mset([("a", b"1")])
    with pytest.raises(ValueError, match="has no namespaces: leave namespace= out"):
        AnnulusByteStore(namespace="one", **place).mget(["a"])


def test_a_table_with_namespaces_refuses_a_store_without_one(place):
    AnnulusByteStore(namespace="one", **place).mset([("a", b"1")])
    with pytest.raises(ValueError, match="has namespaces: give the store one by namespace="):
        AnnulusByteStore(**place).mset([("a", b"2")])
