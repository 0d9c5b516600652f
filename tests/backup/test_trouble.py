"""Bad input and bad luck: a clear error, nothing lost, and the next run mends it."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import time

import pytest

import data
from commands import Backups, run
from server import Server, eventually
from places import Directory


# Within this time an operator who has mistyped an address sees the error.
UNREACHABLE_SECONDS = 60


def key_file(folder, name, digits):
    file = folder / name
    file.write_text(digits * 32 + "\n")
    file.chmod(0o600)
    return file


def test_a_wrong_key_is_said_and_changes_nothing(directory, server, expected, tmp_path):
    location = directory.location("secret")
    right = Backups(location, "--key-file", key_file(tmp_path, "right", "a1"), server=server)
    wrong = Backups(location, "--key-file", key_file(tmp_path, "wrong", "b2"), server=server)
    none = Backups(location, server=server)
    right.backup()
    names = directory.names("secret")
    for backups in (wrong, none):
        assert "key" in backups.backup_fails()
        assert "key" in backups.restore_to(tmp_path / "restored", code=1)
        assert "key" in run(*backups.words("backup", "verify"), code=1).stderr
    assert directory.names("secret") == names and not (tmp_path / "restored").exists()
    right.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as restored, data.connect(restored) as cluster:
        assert data.contents(cluster.connect()) == expected
    # A key for a location that has none is refused, too.
    plain = Backups(directory.location("plain"), server=server)
    plain.backup()
    late = Backups(plain.location, *right.options, server=server)
    assert "key" in late.backup_fails()
    # No key at all, or no file.
    assert "64" in Backups(location, "--key-file", key_file(tmp_path, "short", ""), server=server).backup_fails()
    assert "missing-key" in Backups(location, "--key-file", tmp_path / "missing-key", server=server).backup_fails()


def test_a_location_of_another_server_is_refused_until_it_is_taken_over(backups, other, expected):
    backups.backup()
    of_other = backups.of(other)
    said = of_other.backup_fails()
    assert "--take-over" in said and "server" in said, said
    assert len(backups.ids()) == 1
    of_other.backup("--take-over")
    # Now the first one is refused, and its point stays.
    assert "--take-over" in backups.backup_fails()
    assert len(backups.ids()) == 2
    first = backups.ids()[1]
    backups.restore("--point", first, "--keyspace", "shop", "--table", "events", server=other)
    with data.connect(other) as cluster:
        assert data.contents(cluster.connect())["events"] == expected["events"]


def test_a_copied_data_directory_is_another_server(directory, tmp_path):
    backups = Backups(directory.location("copied"))
    with Server(tmp_path / "one") as server:
        backups.of(server).backup()
        assert server.stop() == 0
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    # The one that makes the next backup has the location; the other is refused.
    with Server(tmp_path / "two") as copy:
        backups.of(copy).backup()
        assert copy.stop() == 0
    with Server(tmp_path / "one") as server:
        said = backups.of(server).backup_fails()
        assert "copy" in said and "--take-over" in said, said
        assert server.stop() == 0
    assert len(backups.ids()) == 2 and backups.verify()[1] == set()


def test_a_location_that_was_emptied_is_filled_again(backups, directory, expected, tmp_path):
    backups.backup()
    backups.backup()
    shutil.rmtree(directory.root / "of-test")
    said = run("backup", "list", "--location", backups.location, code=1).stderr
    assert backups.location in said, said
    assert backups.restore_to(tmp_path / "restored", code=1)
    # All chunks are sent again, whatever was known of them.
    backups.backup()
    assert backups.verify()[1] == set() and len(backups.ids()) == 1
    backups.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as restored, data.connect(restored) as cluster:
        assert data.contents(cluster.connect()) == expected


def test_chunks_that_someone_deleted_are_sent_again(backups, directory):
    backups.backup()
    shutil.rmtree(directory.root / "of-test" / "data")
    _, problems = backups.verify(code=1)
    assert problems and {kind.lower() for _, kind in problems} == {"missing"}
    backups.backup()
    newest, older = backups.ids()
    assert backups.verify("--point", newest)[1] == set()
    # The older point has most of its chunks again; those of files that have changed are named.
    backups.verify("--point", older, code=None)


def test_a_location_that_can_not_be_reached_fails_no_query(server, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        credentials = tmp_path / "credentials"
        url = "http://127.0.0.1:{}".format(closed.getsockname()[1])
        credentials.write_text(f"AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b\nAWS_REGION=us-east-1\nAWS_ENDPOINT_URL={url}\n")
        away = Backups("s3:backups/away", server=server, credentials=credentials)
        with data.Load(server) as load:
            began, searched = load.acknowledged, load.searches
            said = away.backup_fails(seconds=UNREACHABLE_SECONDS)
            assert "s3:backups/away" in said, said
            eventually(lambda: load.acknowledged > began and load.searches > searched)
            assert not load.errors, load.errors
    result = away.result()
    assert result["failures"] == 1 and "s3:backups/away" in result["last_error"] and not result.get("last_success_time")


def test_http_beyond_loopback_is_refused_without_the_flag(server, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text("AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b\nAWS_ENDPOINT_URL=http://192.0.2.1:9000\nAWS_REGION=x\n")
    began = time.monotonic()
    said = Backups("s3:backups/x", server=server, credentials=credentials).backup_fails()
    assert "--allow-http" in said and time.monotonic() - began < 20, said


def test_two_backups_at_once_are_refused_by_name(directory, server, blobs):
    blobs(0, 500)
    slow = Backups(directory.location("slow"), "--max-mib-per-second", 1, server=server)
    slow.detached()
    said = Backups(directory.location("second"), server=server).backup_fails()
    assert "backup" in said and "run" in said, said
    running = slow.status()["running"]
    run("tasks", "abort", running["id"], *slow.http(), code=None)
    run("tasks", "wait", running["id"], "--timeout", 60, *slow.http(), code=None)
    # What the stopped one had sent is not lost, and the checkpoint of it is removed.
    slow.options = []
    slow.backup()
    assert len(slow.ids()) == 1 and slow.verify()[1] == set()
    assert list((server.data_dir / "backups").glob("checkpoint-*")) == []


@contextlib.contextmanager
def small_disk(folder, mebibytes):
    """A file system in memory with little room. Only root may mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700", "annulus-test", folder]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this needs a root who may mount a file system in memory")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def ballast(folder, leaving):
    """Fills a file system but for some bytes."""
    usage = shutil.disk_usage(folder)
    with open(folder / "ballast", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, usage.free - leaving))
    return folder / "ballast"


def test_a_full_disk_in_a_restore_leaves_the_server_as_it_was(one_backup, server, blobs, directory, tmp_path):
    blobs(0, 1_500)
    large = Backups(directory.location("large"), server=server)
    large.backup()
    with small_disk(tmp_path / "small", 2048) as disk, Server(disk / "data") as target, data.connect(target) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE mine WITH replication = {data.REPLICATION}")
        session.execute("CREATE TABLE mine.t (id int PRIMARY KEY)")
        session.execute("INSERT INTO mine.t (id) VALUES (1)")
        filling = ballast(disk, 12 << 20)
        said = large.restore_fails(server=target)
        assert "MiB free" in said and "Nothing was fetched" in said, said
        assert data.tables(session, "shop") == []
        assert list((target.data_dir / "restore").glob("*")) == []
        filling.unlink()
        eventually(lambda: data.accepts(session, "INSERT INTO mine.t (id) VALUES (2)"))
        large.restore(server=target)
        with data.connect(server) as source:
            assert data.contents(session) == data.contents(source.connect())
        assert sorted(row.id for row in session.execute("SELECT id FROM mine.t")) == [1, 2]
        assert target.stop() == 0, target.log()


def test_a_full_disk_in_a_restore_without_a_server_is_mended_by_the_next(server, blobs, directory, tmp_path):
    blobs(0, 1_500)
    large = Backups(directory.location("large"), server=server)
    large.backup()
    with small_disk(tmp_path / "small", 256) as disk:
        filling = ballast(disk, 10 << 20)
        said = large.restore_to(disk / "restored", code=1)
        assert "space" in said and not (disk / "restored").exists(), said
        filling.unlink()
        large.restore_to(disk / "restored")
        with Server(disk / "restored") as restored, data.connect(restored) as cluster, data.connect(server) as source:
            assert data.contents(cluster.connect()) == data.contents(source.connect())
            assert restored.stop() == 0


def test_a_file_that_can_not_grow_ends_a_restore_with_its_name(one_backup, expected, tmp_path):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))

    said = one_backup.restore_to(tmp_path / "restored", code=1, preexec_fn=small_files)
    assert "restored" in said and not (tmp_path / "restored").exists(), said
    one_backup.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as restored, data.connect(restored) as cluster:
        assert data.contents(cluster.connect()) == expected


def test_a_full_disk_at_the_location_ends_the_backup_and_the_next_one_mends_it(server, blobs, tmp_path):
    blobs(0, 1_500)
    # The server has some 200 MB after the tests before this one.
    with small_disk(tmp_path / "small", 1024) as disk:
        filling = ballast(disk, 8 << 20)
        backups = Backups(Directory(disk).location("backups"), server=server)
        said = backups.backup_fails()
        assert "space" in said and backups.location in said, said
        filling.unlink()
        backups.backup()
        assert len(backups.ids()) == 1 and backups.verify()[1] == set()


def test_a_manifest_that_can_not_be_read_stops_the_deletion_of_chunks(backups, directory):
    backups.backup()
    [point] = backups.ids()
    manifest = directory.get("of-test", f"meta/{point}.json")
    directory.put("of-test", f"meta/{point}.json", manifest[: len(manifest) // 2])
    before = {name for name in directory.names("of-test") if name.startswith("data/")}
    said = backups.backup_fails("--retention", 2)
    assert point in said, said
    assert before <= set(directory.names("of-test"))
    directory.put("of-test", f"meta/{point}.json", manifest)
    backups.backup("--retention", 1)
    assert backups.verify()[1] == set() and len(backups.ids()) == 1
