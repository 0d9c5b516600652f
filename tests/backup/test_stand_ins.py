"""Tests the stand-ins themselves, without a server: the same calls have the same results in each."""

import http.client

import pytest
from proxy import split
from places import KINDS, is_there


@pytest.fixture(params=sorted(KINDS))
def place(request, tmp_path):
    if reason := is_there(request.param):
        pytest.skip(reason)
    with KINDS[request.param](tmp_path) as place:
        yield place


def test_objects_are_listed_read_changed_and_deleted(place):
    contents = {f"data/{number:02}/x": bytes([number]) * number for number in range(1, 45)}
    for name, content in contents.items():
        place.put("some", name, content)
    place.put("other", "data/01/x", b"of another prefix")
    assert place.names("some") == sorted(contents)
    assert all(place.get("some", name) == content for name, content in contents.items())
    place.put("some", "data/01/x", b"new")
    place.delete("some", "data/02/x")
    assert place.get("some", "data/01/x") == b"new"
    assert place.names("some") == sorted(set(contents) - {"data/02/x"})
    assert place.names("nothing") == []


def get(url, path):
    connection = http.client.HTTPConnection(*split(url), timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def put(url, path, content, headers=None):
    connection = http.client.HTTPConnection(*split(url), timeout=10)
    connection.request("PUT", path, content, headers or {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.fixture
def google(tmp_path):
    from proxy import Proxy

    with KINDS["gcs"](tmp_path) as google, Proxy(google.address) as proxy:
        yield google, proxy


def test_the_proxy_counts_what_the_store_took(google):
    store, proxy = google
    assert put(proxy.url, "/backups/p/data/a", b"12345") == 200
    assert put(proxy.url, "/elsewhere/p/data/a", b"12345") == 404
    proxy.fault("status", methods=("PUT",), times=1)
    assert put(proxy.url, "/backups/p/data/b", b"123") == 503
    assert put(proxy.url, "/backups/p/data/b", b"123") == 200
    assert proxy.sent() == 8 and proxy.sent("/b$") == 3
    assert proxy.puts() == {"/backups/p/data/a": 1, "/backups/p/data/b": 1}
    assert store.names("p") == ["data/a", "data/b"]


def test_the_proxy_makes_faults(google):
    store, proxy = google
    store.put("p", "x", b"0123456789" * 1000)
    fault = proxy.fault("tear", methods=("GET",), every=2, times=1)
    assert get(proxy.url, "/backups/p/x") == (200, b"0123456789" * 1000)
    with pytest.raises(http.client.IncompleteRead):
        get(proxy.url, "/backups/p/x")
    assert fault.hits == 1
    proxy.clear()
    proxy.fault("cut", times=1)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        get(proxy.url, "/backups/p/x")
    proxy.fault("garble", times=1)
    status, body = get(proxy.url, "/backups/p/x")
    assert status == 200 and len(body) == 10_000 and sum(a != b for a, b in zip(body, b"0123456789" * 1000)) == 1
    proxy.fault("trickle", times=1, seconds=0.08)
    assert get(proxy.url, "/backups/p/x") == (200, b"0123456789" * 1000)


def test_a_generation_that_is_not_the_wanted_one_is_refused(google):
    _, proxy = google
    assert put(proxy.url, "/backups/p/one", b"1", {"x-goog-if-generation-match": "0"}) == 200
    assert put(proxy.url, "/backups/p/one", b"2", {"x-goog-if-generation-match": "0"}) == 412
    assert put(proxy.url, "/backups/p/one", b"2", {"If-None-Match": "*"}) == 412
