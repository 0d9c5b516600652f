"""Schedules of backups, which survive restarts, and drills with their metrics."""

import json

import pytest

import data
from commands import Backups, call, metric, metrics, run
from server import Server, eventually


@pytest.fixture
def own(tmp_path):
    """A server of the test with the tables."""
    with Server(tmp_path / "data") as server:
        with data.connect(server) as cluster:
            session = cluster.connect()
            data.make(session)
            data.wait_for_answers(session)
        yield server
        if server.is_running:
            assert server.stop() == 0, server.log()


def restart(server):
    assert server.stop() == 0, server.log()
    server.start()


def test_a_schedule_makes_backups_and_survives_restarts(own, directory):
    backups = Backups(directory.location("scheduled"), server=own)
    backups.backup("--interval", "2s", "--retention", 3)
    [schedule] = backups.status()["schedules"]
    assert schedule["location"] == backups.location and schedule["interval_s"] == 2 and schedule["retention"] == 3
    eventually(lambda: len(backups.ids()) >= 2)
    restart(own)
    [again] = backups.status()["schedules"]
    assert again["id"] == schedule["id"] and again["interval_s"] == 2
    newest = backups.ids()[0]
    eventually(lambda: backups.ids()[0] > newest)
    assert len(backups.ids()) <= 4
    # A kill ends it no more than a stop does.
    own.kill()
    newest = backups.ids()[0]
    own.start()
    eventually(lambda: backups.ids()[0] > newest)
    run("backup", "stop-schedule", "--location", backups.location, *backups.http())
    assert backups.status()["schedules"] == []
    restart(own)
    assert backups.status()["schedules"] == []
    assert backups.verify()[1] == set()


def test_a_run_that_was_missed_is_made_up_once(own, directory):
    backups = Backups(directory.location("missed"), server=own)
    backups.backup("--interval", "1d")
    [schedule] = backups.status()["schedules"]
    assert own.stop() == 0
    # As if the server had been down for days: the file of the schedules has the times.
    file = own.data_dir / "backups" / "schedules.json"
    book = json.loads(file.read_text())
    for of_location in book["schedules"].values():
        of_location["backups"]["began_micros"] -= 5 * 86_400 * 1_000_000
    file.write_text(json.dumps(book))
    own.start()
    eventually(lambda: len(backups.ids()) == 2)
    eventually(lambda: "running" not in backups.status())
    [later] = backups.status()["schedules"]
    assert later["next_time"] >= schedule["next_time"] and later["id"] == schedule["id"]
    assert len(backups.ids()) == 2


def test_one_location_has_one_schedule(own, directory):
    backups = Backups(directory.location("one"), server=own)
    backups.backup("--interval", "1d")
    backups.backup("--cron", "30 3 * * 1")
    [schedule] = backups.status()["schedules"]
    assert schedule["cron"] == "30 3 * * 1" and "interval_s" not in schedule
    assert "T03:30:00" in schedule["next_time"], schedule
    other = Backups(directory.location("two"), server=own)
    other.backup("--interval", "7d")
    assert len(backups.status()["schedules"]) == 2
    status, _ = call(own, "DELETE", f"/api/v1/backups/schedules/{schedule['id']}")
    assert status == 200
    status, _ = call(own, "DELETE", f"/api/v1/backups/schedules/{schedule['id']}")
    assert status == 404
    [left] = backups.status()["schedules"]
    assert left["location"] == other.location


def test_a_schedule_of_a_location_that_can_not_be_opened_is_not_made(own, tmp_path):
    (tmp_path / "file").write_text("no directory")
    backups = Backups(f"file://{tmp_path}/file/below", server=own)
    said = backups.backup_fails("--interval", "1d")
    assert backups.location in said or "file" in said, said
    assert backups.status()["schedules"] == []


def test_a_scheduled_backup_that_fails_is_seen_and_tried_again(own, directory, tmp_path):
    backups = Backups(directory.location("away"), server=own)
    backups.backup("--interval", "2s")
    (directory.root / "away").rename(tmp_path / "elsewhere")
    # A file where the directory was.
    (directory.root / "away").write_text("")
    eventually(lambda: backups.result()["failures"] >= 1)
    assert backups.result()["last_error"]
    assert metric(own, "annulus_backup_failures_total") >= 1
    (directory.root / "away").unlink()
    (tmp_path / "elsewhere").rename(directory.root / "away")
    points = len(backups.ids())
    eventually(lambda: len(backups.ids()) > points)
    eventually(lambda: not backups.result().get("last_error"))


def test_metrics_say_when_and_how_much(own, directory):
    backups = Backups(directory.location("seen"), server=own)
    backups.backup("--interval", "1d")
    of_location = f'location="{backups.location}"'
    values = {
        name: metrics(own, f"annulus_backup_{name}")
        for name in (
            *["last_success_timestamp_seconds", "last_attempt_timestamp_seconds", "failures_total", "sent_bytes_total"],
            *["sent_objects_total", "duration_seconds", "points", "next_timestamp_seconds"],
        )
    }
    assert all(list(value) == [of_location] for value in values.values()), values
    value = {name: found[of_location] for name, found in values.items()}
    assert value["points"] == 1 and value["failures_total"] == 0 and value["sent_bytes_total"] > 0
    assert value["last_success_timestamp_seconds"] >= value["last_attempt_timestamp_seconds"] - 1 > 1.7e9
    assert value["next_timestamp_seconds"] > value["last_success_timestamp_seconds"] + 80_000
    assert metric(own, "annulus_backup_running") == 0
    restart(own)
    again = metrics(own, "annulus_backup_last_success_timestamp_seconds")
    assert abs(again[of_location] - value["last_success_timestamp_seconds"]) < 2


def test_a_drill_restores_the_last_backup_and_compares_it(own, directory):
    backups = Backups(directory.location("drilled"), server=own)
    backups.backup()
    done = run(*backups.words("backup", "drill"), *backups.http(), "--json")
    task = json.loads(done.stdout)
    assert (task["kind"], task["state"]) == ("drill", "done"), task
    assert task["counters"]["tables"] >= 4 and task["counters"]["rows"] > 100, task
    result = backups.result()
    assert result["drill_ok"] and result["last_drill_success_time"] and result["drill_failures"] == 0, result
    assert metric(own, "annulus_drill_ok") == 1
    assert metric(own, "annulus_drill_last_success_timestamp_seconds") > 1.7e9
    assert list((own.data_dir / "drills").glob("*")) == []
    # Nothing of the drill is among the tables.
    with data.connect(own) as cluster:
        keyspaces = {row.keyspace_name for row in cluster.connect().execute("SELECT keyspace_name FROM system_schema.keyspaces")}
    assert "shop" in keyspaces and not [name for name in keyspaces if "drill" in name]


def test_a_drill_of_a_damaged_backup_fails(own, directory):
    backups = Backups(directory.location("damaged"), server=own)
    backups.backup()
    of_data = [name for name in directory.names("damaged") if name.startswith("data/")]
    for name in of_data:
        content = directory.get("damaged", name)
        directory.put("damaged", name, content[:-1] + bytes([content[-1] ^ 1]))
    done = run(*backups.words("backup", "drill"), *backups.http(), code=1)
    assert "data/" in done.stdout + done.stderr, done
    assert metric(own, "annulus_drill_ok") == 0 and metric(own, "annulus_drill_failures_total") == 1
    assert not backups.result()["drill_ok"] and backups.result()["drill_error"]
    assert list((own.data_dir / "drills").glob("*")) == []


def test_a_drill_runs_on_a_schedule(own, directory):
    backups = Backups(directory.location("drilled"), server=own)
    backups.backup("--interval", "1d", "--drill-interval", "2s")
    # Such points have the numbers and the digests to compare with.
    [items] = [table for table in backups.points()[0]["tables"] if table["table"] == "items"]
    assert items["rows"] == data.ITEMS - 1 and items["digest"], items
    eventually(lambda: backups.result().get("drill_ok"))
    restart(own)
    [schedule] = backups.status()["schedules"]
    assert schedule["drill_interval_s"] == 2
    before = backups.result()["last_drill_time"]
    eventually(lambda: backups.result()["last_drill_time"] > before)
