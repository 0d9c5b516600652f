"""Backups into a directory: what is sent, listed, verified and deleted. `make test` runs this file."""

import json

import data
from commands import call, run
from server import Server, eventually

# A chunk, and something for the files that describe the rest.
TAIL = 9 << 20


def test_a_backup_is_made_while_rows_are_written_and_searched(server, backups, tmp_path):
    with data.Load(server) as load:
        before = load.acknowledged
        task = backups.backup()
        assert not load.errors
        load_goes_on = load.acknowledged
        eventually(lambda: load.acknowledged > load_goes_on and not load.errors)
    assert task["counters"]["files"] > 0 and task["counters"]["sent_bytes"] > 0, task
    backups.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as restored, data.connect(restored) as cluster:
        session = cluster.connect()
        # All that was acknowledged before, perhaps some of what came meanwhile, and no gap.
        assert before <= data.streamed(session) <= load.acknowledged
        data.wait_for_answers(session)


def test_a_location_has_the_documented_layout(backups, directory, server):
    backups.backup()
    [point] = backups.ids()
    names = directory.names("of-test")
    of_data = [name for name in names if name.startswith("data/")]
    assert of_data and set(names) - set(of_data) == {
        "annulus-backup.json",
        f"meta/{point}.json",
        f"schema/{point}/{data.KEYSPACE}.cql",
    }
    assert all(name.split("/")[1] == name.split("/")[2][:2] for name in of_data), of_data
    owner = json.loads(directory.get("of-test", "annulus-backup.json"))
    assert owner["format"] == 1 and owner["encryption"] is None and owner["owner"]["server"], owner
    schema = directory.get("of-test", f"schema/{point}/{data.KEYSPACE}.cql").decode()
    assert "CREATE TABLE" in schema and "items_v" in schema and "CREATE TYPE" in schema, schema


def test_a_second_backup_sends_only_what_is_new(blobs, backups, directory):
    def sent(*options):
        """Bytes of the chunks that a backup adds to the directory, by their sizes there."""
        before = set(directory.names("of-test"))
        backups.backup(*options)
        new = set(directory.names("of-test")) - before
        return sum(len(directory.get("of-test", name)) for name in new if name.startswith("data/"))

    # Rows that don't compress.
    rows, size = 1_000, 20_000
    blobs(0, rows)
    first = sent()
    assert first > rows * size
    assert backups.points()[0]["sent_bytes"] > rows * size
    # The last piece of the journal that is written at this moment is sent with each backup.
    assert sent() < TAIL
    blobs(rows, rows // 5)
    third = sent()
    assert rows // 5 * size < third < rows // 5 * size + TAIL
    # Reading all files again sends no more.
    assert sent("--full-check") < TAIL


def test_a_dry_run_sends_nothing(backups, directory):
    plan = backups.plan("--retention", 1)
    assert directory.names("of-test") == []
    assert plan["files"] > 0 and 0 < plan["bytes_to_send"] <= plan["bytes"] and plan["points_to_delete"] == [], plan
    backups.backup()
    names = directory.names("of-test")
    [point] = backups.ids()
    plan = backups.plan("--retention", 1)
    assert directory.names("of-test") == names
    assert plan["bytes_to_send"] < plan["bytes"] / 2 and plan["points_to_delete"] == [point], plan


def test_retention_deletes_old_points_and_no_data_of_others(blobs, backups, directory, tmp_path):
    made = []
    for number in range(4):
        blobs(number * 100, 3)
        backups.backup("--retention", 2)
        made = [backups.ids()[0], *made]
        assert backups.ids() == made[:2]
        _, problems = backups.verify()
        assert problems == set()
    of_meta = [name for name in directory.names("of-test") if name.startswith(("meta/", "schema/"))]
    assert {name.split("/")[1].removesuffix(".json") for name in of_meta} == set(made[:2])
    # What only the deleted points had is gone: the data are those of the two that are left.
    backups.backup("--retention", 1)
    backups.backup("--retention", 1)
    stored = sum(len(directory.get("of-test", name)) for name in directory.names("of-test") if name.startswith("data/"))
    [point] = backups.points()
    assert stored <= point["bytes"] * 1.05 + 64 * 1024, (stored, point)
    backups.restore_to(tmp_path / "restored")


def test_verify_names_each_damaged_and_missing_object(backups, directory):
    backups.backup()
    report, problems = backups.verify()
    assert problems == set() and report["points"] == 1 and report["objects"] > 0 and report["bytes"] > 0
    of_data = [name for name in directory.names("of-test") if name.startswith("data/")]
    damaged, missing, cut = of_data[0], of_data[len(of_data) // 2], of_data[-1]
    content = directory.get("of-test", damaged)
    directory.put("of-test", damaged, content[:-1] + bytes([content[-1] ^ 1]))
    directory.delete("of-test", missing)
    directory.put("of-test", cut, directory.get("of-test", cut)[:-3])
    _, problems = backups.verify(code=1)
    named = {name.lower(): kind.lower() for name, kind in problems}
    assert named == {damaged: "damaged", missing: "missing", cut: "damaged"}, problems
    said = run("backup", "verify", "--location", backups.location, code=1)
    assert all(name in said.stdout + said.stderr for name in (damaged, missing, cut)), said


def test_a_damaged_point_is_not_restored_and_the_next_backup_mends_it(backups, directory, tmp_path):
    backups.backup()
    of_data = [name for name in directory.names("of-test") if name.startswith("data/")]
    victim = max(of_data, key=lambda name: len(directory.get("of-test", name)))
    content = directory.get("of-test", victim)
    directory.put("of-test", victim, content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :])
    said = backups.restore_to(tmp_path / "restored", code=1)
    assert victim.rpartition("/")[2] in said, said
    assert not (tmp_path / "restored").exists()
    directory.delete("of-test", victim)
    # The chunk is missed and sent again.
    backups.backup("--full-check")
    assert backups.verify()[1] == set()
    backups.restore_to(tmp_path / "restored")


def test_the_list_and_the_status_say_what_was_made(backups, server):
    backups.backup()
    [point] = backups.points()
    assert point["kind"] == "database" and point["bytes"] >= point["sent_bytes"] * 0.5 and point["files"] > 0, point
    named = {(table["keyspace"], table["table"]) for table in point["tables"]}
    assert {("shop", "items"), ("shop", "events"), ("shop", "visits"), ("shop", "sessions")} <= named
    result = backups.result()
    assert result["last_point"] == point["id"] and result["points"] == 1 and result["failures"] == 0, result
    assert not result.get("last_error") and result["last_success_time"], result
    status, answer = call(server, "GET", "/api/v1/backups")
    assert status == 200 and backups.location in json.dumps(answer)
    listed = run("backup", "list", "--location", backups.location).stdout
    assert point["id"] in listed


def test_wrong_flags_are_refused_before_anything_runs(backups, server, tmp_path):
    http = backups.http()
    assert "location" in run("backup", *http, code=2).stderr
    assert "s3:" in run("backup", "--location", "ftp:somewhere", *http, code=2).stderr
    for words in (("--interval", "soon"), ("--retention", "0"), ("--compression", "rar")):
        run("backup", "--location", backups.location, *words, *http, code=2)
    run("backup", "--location", backups.location, "--cron", "61 * * * *", *http, code=None)
    assert not backups.status()["schedules"]
    status, answer = call(server, "POST", "/api/v1/backups", {"location": backups.location, "retentions": 3})
    assert status == 422, answer
    said = backups.restore_to(tmp_path / "nothing", code=1)
    assert backups.location in said and not (tmp_path / "nothing").exists(), said


def test_a_local_snapshot_is_made_of_hard_links_and_serves(server, expected, tmp_path):
    target = server.data_dir.parent / "snapshot"
    http = ["--http", f"http://{server.host}:{server.http_port}"]
    run("snapshot", "--to", target, *http)
    linked = [path for path in target.rglob("*") if path.is_file() and path.stat().st_nlink > 1]
    assert linked, "nothing is a hard link"
    assert "exist" in run("snapshot", "--to", target, *http, code=1).stderr
    with Server(target) as copy, data.connect(copy) as cluster:
        session = cluster.connect()
        assert data.contents(session) == expected
        data.wait_for_answers(session)
