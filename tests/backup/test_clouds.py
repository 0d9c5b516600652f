"""Backups into stand-ins of S3, Google and Azure, through a proxy that counts, and makes errors, slow and torn answers."""

import time

import pytest

import data
from commands import Backups, call, run
from server import Server, eventually

# A chunk, and something for the files that describe the rest.
TAIL = 9 << 20


@pytest.fixture
def cloud(place, server):
    """Backups of `server` at a provider."""
    store, _, credentials = place
    return Backups(store.location("of-test"), server=server, credentials=credentials)


def restored(cloud, directory, expected):
    """Checks that the newest point has all rows, and its searches answer."""
    cloud.restore_to(directory)
    with Server(directory) as server, data.connect(server) as cluster:
        session = cluster.connect()
        assert data.contents(session) == expected
        data.wait_for_answers(session)
        assert server.stop() == 0, server.log()


def test_a_backup_goes_to_a_provider_and_comes_back(place, cloud, other, expected, tmp_path):
    store, proxy, _ = place
    task = cloud.backup()
    names = store.names("of-test")
    of_data = [name for name in names if name.startswith("data/")]
    stored = sum(len(store.get("of-test", name)) for name in of_data)
    # The proxy has counted each chunk once, and the server says the same.
    assert proxy.sent("/data/") == stored
    assert set(proxy.puts("/data/").values()) == {1}
    assert abs(task["counters"]["sent_bytes"] - stored) < stored / 10 + 100_000, (task, stored)
    assert cloud.verify()[1] == set()
    assert cloud.points()[0]["files"] > 0
    restored(cloud, tmp_path / "restored", expected)
    cloud.restore("--keyspace", "shop", "--table", "events", server=other)
    with data.connect(other) as cluster:
        assert data.contents(cluster.connect()) == {"events": expected["events"]}


def test_a_second_backup_to_a_provider_sends_only_what_is_new(place, cloud, blobs):
    store, proxy, _ = place
    rows, size = 1_000, 20_000
    blobs(0, rows)
    cloud.backup("--retention", 2)
    assert proxy.sent("/data/") > rows * size
    before = set(store.names("of-test"))
    proxy.forget()
    cloud.backup("--retention", 2)
    assert proxy.sent("/data/") < TAIL
    new = [name for name in store.names("of-test") if name.startswith("data/") and name not in before]
    assert proxy.sent("/data/") == sum(len(store.get("of-test", name)) for name in new)
    cloud.backup("--retention", 2)
    assert len(cloud.ids()) == 2 and cloud.verify()[1] == set()


def test_verify_and_retention_work_at_a_provider(place, cloud):
    store, _, _ = place
    for _ in range(3):
        cloud.backup("--retention", 1)
    [point] = cloud.ids()
    names = store.names("of-test")
    assert {name for name in names if name.startswith("meta/")} == {f"meta/{point}.json"}
    of_data = [name for name in names if name.startswith("data/")]
    damaged, missing = of_data[0], of_data[-1]
    content = store.get("of-test", damaged)
    store.put("of-test", damaged, content[:-1] + bytes([content[-1] ^ 1]))
    store.delete("of-test", missing)
    _, problems = cloud.verify(code=1)
    assert {(name, kind.lower()) for name, kind in problems} == {(damaged, "damaged"), (missing, "missing")}


def test_errors_and_torn_answers_are_overcome(place, cloud, expected, tmp_path):
    _, proxy, _ = place
    faults = [
        proxy.fault("status", every=5, status=503),
        proxy.fault("status", every=7, status=500),
        proxy.fault("cut", every=9),
        proxy.fault("cut_late", methods=("PUT",), path="/data/", every=6),
    ]
    cloud.backup()
    assert all(fault.hits for fault in faults[:3]), faults
    proxy.clear()
    assert cloud.verify()[1] == set()
    torn = proxy.fault("tear", methods=("GET",), path="/data/", every=4)
    failing = proxy.fault("status", methods=("GET",), every=6, status=503)
    restored(cloud, tmp_path / "restored", expected)
    assert torn.hits and failing.hits


def test_an_answer_with_a_wrong_byte_is_never_restored(place, cloud, expected, tmp_path):
    _, proxy, _ = place
    cloud.backup()
    garbled = proxy.fault("garble", methods=("GET",), path="/data/", every=3, times=1)
    said = cloud.restore_to(tmp_path / "restored", code=None)
    assert garbled.hits
    proxy.clear()
    if (tmp_path / "restored").exists():
        with Server(tmp_path / "restored") as server, data.connect(server) as cluster:
            assert data.contents(cluster.connect()) == expected
    else:
        assert "data/" in said, said
        restored(cloud, tmp_path / "restored", expected)


def test_slow_answers_are_waited_for(place, cloud, expected, tmp_path):
    _, proxy, _ = place
    slow = proxy.fault("slow", every=4, times=12, seconds=1.5)
    cloud.backup()
    trickling = proxy.fault("trickle", methods=("GET",), path="/data/", every=3, times=6, seconds=2)
    restored(cloud, tmp_path / "restored", expected)
    assert slow.hits and trickling.hits


def test_credentials_that_expire_end_a_backup_and_new_ones_go_on(place, cloud):
    store, proxy, credentials = place
    body = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
    expired = proxy.fault("status", status=403, body=body)
    began = time.monotonic()
    said = cloud.backup_fails()
    # It is not tried again and again.
    assert time.monotonic() - began < 30 and expired.hits < 30
    assert cloud.location in said and "credentials" in said and "--credentials" in said, said
    assert store.names("of-test") == []
    assert cloud.result()["failures"] >= 1 and cloud.result()["last_error"]
    proxy.clear()
    # Half of the chunks are there when they expire.
    expired = proxy.fault("status", methods=("PUT",), path="/data/", every=2, status=403, body=body)
    cloud.backup_fails()
    proxy.clear()
    proxy.wait_until_idle()
    assert cloud.ids() == []
    cloud.backup()
    assert max(proxy.puts("/data/").values()) == 1, "a chunk that was there was sent again"
    assert cloud.verify()[1] == set()
    # The command line's own part has the same words.
    proxy.fault("status", status=401)
    said = run(*cloud.words("backup", "list"), code=1).stderr
    assert cloud.location in said and "credentials" in said, said
    assert "secret" not in said


def test_wrong_credentials_are_said_without_showing_them(place, cloud, tmp_path):
    store, proxy, _ = place
    if store.kind != "azure":
        pytest.skip("only Azurite checks signatures")
    wrong = tmp_path / "wrong"
    lines = store.environment(proxy.url) | {"AZURE_STORAGE_ACCOUNT_KEY": "d3Jvbmcga2V5"}
    wrong.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    other = Backups(cloud.location, server=cloud.server, credentials=wrong)
    said = other.backup_fails()
    assert "AZURE_STORAGE_ACCOUNT_KEY" in said and "d3Jvbmcga2V5" not in said, said


def test_a_bucket_that_is_missing_is_named(place, cloud):
    store, _, credentials = place
    location = cloud.location.replace("backups", "no-such-bucket")
    said = Backups(location, server=cloud.server, credentials=credentials).backup_fails()
    assert "no-such-bucket" in said, said


def test_a_backup_that_is_killed_goes_on_and_sends_what_is_missing(place, tmp_path):
    store, proxy, credentials = place
    with Server(tmp_path / "data") as server:
        cloud = Backups(store.location("killed"), server=server, credentials=credentials)
        with data.connect(server) as cluster:
            session = cluster.connect()
            data.make(session)
            # Several chunks of files that no longer change: the start after this stop has no journal.
            data.fill_blobs(session, "shop", 0, 2_000)
            expected = data.contents(session)
        assert server.stop() == 0, server.log()
        server.start()
        slow = proxy.fault("slow", methods=("PUT",), path="/data/", seconds=0.5)
        cloud.detached()
        eventually(lambda: len(proxy.puts("/data/")) >= 2)
        server.kill()
        proxy.clear()
        assert slow.hits >= 2
        # What was under way has ended at the store.
        proxy.wait_until_idle()
        there = {name: len(store.get("killed", name)) for name in store.names("killed") if name.startswith("data/")}
        assert there and cloud.ids() == []
        proxy.forget()
        server.start()
        cloud.backup()
        # Chunks that were there by name were not sent again.
        sent = {path.partition("/data/")[2] for path in proxy.puts("/data/")}
        assert not sent & {name.removeprefix("data/") for name in there}
        assert cloud.verify()[1] == set()
        assert server.stop() == 0
    cloud.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as restored_server, data.connect(restored_server) as cluster:
        assert data.contents(cluster.connect()) == expected


def test_what_is_encrypted_is_not_readable_at_the_provider(place, server, tmp_path):
    store, _, credentials = place
    key = tmp_path / "key"
    key.write_text("0f" * 32 + "\n")
    key.chmod(0o600)
    cloud = Backups(store.location("secret"), "--key-file", key, server=server, credentials=credentials)
    cloud.backup("--compression", "none")
    names = store.names("secret")
    contents = {name: store.get("secret", name) for name in names}
    for words in (b"High Street", b"kettle", b"CREATE TABLE", b"items"):
        assert not [name for name, content in contents.items() if words in content], words
    assert b"aes-256-gcm" in contents["annulus-backup.json"]
    assert cloud.verify()[1] == set()
    cloud.restore_to(tmp_path / "restored")


def test_settings_come_from_the_environment(place, tmp_path, monkeypatch):
    store, proxy, _ = place
    for name, value in store.environment(proxy.url).items():
        monkeypatch.setenv(name, value)
    with Server(tmp_path / "data") as server:
        cloud = Backups(store.location("environment"), server=server)
        cloud.backup()
        assert len(cloud.ids()) == 1
        status, answer = call(server, "GET", "/api/v1/backups")
        assert status == 200 and "secret" not in str(answer)
        assert server.stop() == 0
