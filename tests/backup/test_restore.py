"""Restores into servers: whole, one table, under another name, and what a half-done one leaves."""

import pytest

import data
from commands import Backups, call, metric, run
from server import Server, eventually


def test_all_tables_come_back_into_an_empty_server(one_backup, other, expected):
    task = one_backup.restore(server=other)
    assert task["counters"]["tables"] == len(expected) and task["counters"]["rows"] > 0, task
    with data.connect(other) as cluster:
        session = cluster.connect()
        assert data.contents(session) == expected
        data.wait_for_answers(session)
        # They are living tables: rows are written, found and deleted.
        session.execute(f"INSERT INTO shop.items (id, name, v) VALUES (500, 'kettle', {data.literal(data.vector(500))})")
        eventually(lambda: data.nearest(session, limit=1, number=500) == [500] and 500 in data.with_word(session))
        session.execute("UPDATE shop.visits SET n = n + 1 WHERE page = 'tea'")
    assert other.stop() == 0, other.log()
    other.start()
    with data.connect(other) as cluster:
        again = data.contents(cluster.connect())
        assert again["events"] == expected["events"] and again["visits"] != expected["visits"]


def test_write_times_and_ends_of_life_are_those_of_the_rows(one_backup, other, session):
    before = data.expiries(session)
    one_backup.restore("--table", "sessions", "--keyspace", "shop", server=other)
    with data.connect(other) as cluster:
        restored = cluster.connect()
        data.assert_expire_alike(data.expiries(restored), before)
        assert data.contents(restored, only="sessions") == data.contents(session, only="sessions")
        # A write that is older than a restored cell does not win, and a newer one does.
        restored.execute("UPDATE shop.sessions USING TIMESTAMP 4000 SET last = 'older' WHERE id = 1")
        restored.execute("UPDATE shop.sessions USING TIMESTAMP 6000 SET last = 'newer' WHERE id = 2")
        last = {row.id: row.last for row in restored.execute("SELECT id, last FROM shop.sessions WHERE id IN (1, 2)")}
        assert last == {1: "seen", 2: "newer"}


def test_one_table_comes_back_alone(one_backup, other, expected):
    one_backup.restore("--keyspace", "shop", "--table", "items", server=other)
    with data.connect(other) as cluster:
        session = cluster.connect()
        assert data.contents(session) == {"items": expected["items"]}
        wanted = data.expected_answers()
        eventually(lambda: (data.nearest(session), data.with_word(session)) == wanted[:2])


def test_a_copy_under_another_name_is_next_to_living_data(server, backups, expected):
    with data.connect(server) as cluster:
        session = cluster.connect()
        backups.backup()
        with data.Load(server) as load:
            backups.restore("--keyspace", "shop", "--to-keyspace", "shop_before")
            assert not load.errors, load.errors
        assert data.contents(session, "shop_before") == expected
        assert data.contents(session) == expected
        data.wait_for_answers(session, "shop_before")
        # A row that was deleted by mistake is taken from the copy.
        [row] = session.execute("SELECT name FROM shop_before.items WHERE id = 8")
        assert row.name == "tea number 8"
        session.execute("DROP KEYSPACE shop_before")


def test_a_table_that_is_there_is_not_touched(server, one_backup, expected, session):
    said = one_backup.restore_fails("--keyspace", "shop", "--table", "items")
    assert "shop.items" in said and "--to-keyspace" in said, said
    assert data.contents(session) == expected


def test_a_name_that_no_keyspace_may_have_is_refused(server, one_backup, expected, session):
    for name in ("system", "a/../../b", "UPPER x", "k" * 49):
        said = one_backup.restore_fails("--keyspace", "shop", "--to-keyspace", name)
        assert "--to-keyspace" in said, said
    assert session.execute("SELECT host_id FROM system.local").one().host_id
    assert data.contents(session) == expected


def test_names_that_are_not_in_the_point_are_said(one_backup, other):
    said = one_backup.restore_fails("--keyspace", "shop", "--table", "nothing", server=other)
    assert "nothing" in said, said
    said = one_backup.restore_fails("--point", "20200101T000000Z-00000000", server=other)
    assert "20200101T000000Z-00000000" in said and one_backup.ids()[0] in said, said
    with data.connect(other) as cluster:
        assert data.tables(cluster.connect(), "shop") == []


def test_an_older_point_is_chosen_by_its_id(other, directory, tmp_path):
    with Server(tmp_path / "source") as source, data.connect(source) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE k WITH replication = {data.REPLICATION}")
        session.execute("CREATE TABLE k.t (id int PRIMARY KEY)")
        backups = Backups(directory.location("points"), server=source)
        for number in range(3):
            session.execute("INSERT INTO k.t (id) VALUES (%s)", (number,))
            backups.backup()
        assert source.stop() == 0
    points = backups.ids()[::-1]
    for number, point in enumerate(points):
        backups.restore("--point", point, "--keyspace", "k", "--to-keyspace", f"k{number}", server=other)
    with data.connect(other) as cluster:
        session = cluster.connect()
        found = [sorted(row.id for row in session.execute(f"SELECT id FROM k{number}.t")) for number in range(3)]
    assert found == [[0], [0, 1], [0, 1, 2]]


def test_a_restored_directory_serves_at_once_by_snapshots_of_its_indexes(one_backup, expected, tmp_path):
    one_backup.restore_to(tmp_path / "restored")
    assert not (tmp_path / "restored.restoring").exists()
    with Server(tmp_path / "restored") as restored, data.connect(restored) as cluster:
        session = cluster.connect()
        data.wait_for_answers(session)
        assert data.contents(session) == expected
        # No index was built from the rows.
        assert metric(restored, "index_scans_total") == 0, restored.log()
        assert restored.stop() == 0


def test_a_restored_directory_is_another_server(one_backup, server, session, tmp_path):
    one_backup.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored") as restored, data.connect(restored) as cluster:
        of = "SELECT host_id FROM system.local"
        assert session.execute(of).one().host_id != cluster.connect().execute(of).one().host_id
        said = one_backup.of(restored).backup_fails()
        assert "--take-over" in said, said
        assert restored.stop() == 0
    assert len(one_backup.ids()) == 1


def test_a_directory_with_files_is_refused(one_backup, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    said = one_backup.restore_to(tmp_path / "full", code=1)
    assert "full" in said and (tmp_path / "full" / "mine").read_text() == "mine", said


def test_rows_are_written_by_cql_into_another_server(one_backup, other, expected, session):
    before = data.expiries(session)
    one_backup.restore_by_cql(f"{other.host}:{other.cql_port}")
    with data.connect(other) as cluster:
        restored = cluster.connect()
        assert data.contents(restored) == expected
        data.assert_expire_alike(data.expiries(restored), before)
        data.wait_for_answers(restored)


def test_rows_are_written_by_cql_into_tables_that_are_there(one_backup, other, expected):
    with data.connect(other) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE shop WITH replication = {data.REPLICATION}")
        session.execute("CREATE TABLE shop.events (day int, hour int, what text, note text static, PRIMARY KEY (day, hour))")
        address = f"{other.host}:{other.cql_port}"
        options = ["--keyspace", "shop", "--table", "events", "--schema", "skip"]
        one_backup.restore_by_cql(address, *options)
        assert data.contents(session) == {"events": expected["events"]}
        # Once more changes nothing.
        one_backup.restore_by_cql(address, *options)
        assert data.contents(session) == {"events": expected["events"]}
        said = one_backup.restore_by_cql(address, *options[:4], code=1)
        assert "--schema skip" in said, said


def test_a_restore_that_is_killed_leaves_nothing_and_is_made_again(one_backup, expected, tmp_path):
    other = Server(tmp_path / "other").start()
    http = f"http://{other.host}:{other.http_port}"
    for _ in range(3):
        run(*one_backup.words("restore"), "--http", http, "--detach")
        other.kill()
        other.start()
        http = f"http://{other.host}:{other.http_port}"
        with data.connect(other) as cluster:
            session = cluster.connect()
            # Either a table is there with all its rows, or it is not there.
            for table, rows in data.contents(session).items():
                assert rows == expected[table]
            assert list((tmp_path / "other" / "restore").glob("*")) == []
            session.execute("DROP KEYSPACE IF EXISTS shop")
    one_backup.restore(server=other)
    with data.connect(other) as cluster:
        assert data.contents(cluster.connect()) == expected
    assert other.stop() == 0, other.log()


def test_a_restore_can_be_stopped_as_a_task(one_backup, other, expected):
    body = {"location": one_backup.location, "max_mib_per_second": 1}
    status, task = call(other, "POST", "/api/v1/restores", body)
    assert status == 200 and task["is_abortable"], task
    http = ["--http", f"http://{other.host}:{other.http_port}"]
    run("tasks", "abort", task["id"], *http, code=None)
    run("tasks", "wait", task["id"], "--timeout", 60, *http, code=None)
    with data.connect(other) as cluster:
        session = cluster.connect()
        assert all(rows == expected[table] for table, rows in data.contents(session).items())


@pytest.fixture
def guarded(tmp_path):
    """A server with logins, with a file of its superuser's password."""
    file = tmp_path / "superuser"
    file.write_text("chief\nchief-password\n")
    file.chmod(0o600)
    password = tmp_path / "password"
    password.write_text("chief-password\n")
    password.chmod(0o600)
    with Server(tmp_path / "guarded", "--login", "--superuser-file", file) as server:
        yield server, password
        if server.is_running:
            assert server.stop() == 0, server.log()


def logged_in(server, role, password):
    from cassandra.auth import PlainTextAuthProvider

    return data.connect(server, auth_provider=PlainTextAuthProvider(role, password))


def test_roles_come_back_with_their_passwords_and_rights(guarded, directory, other, tmp_path):
    server, password = guarded
    with logged_in(server, "chief", "chief-password") as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE k WITH replication = {data.REPLICATION}")
        session.execute("CREATE TABLE k.t (id int PRIMARY KEY)")
        session.execute("INSERT INTO k.t (id) VALUES (1)")
        session.execute("CREATE ROLE reader WITH PASSWORD = 'of-the-reader' AND LOGIN = true")
        session.execute("GRANT SELECT ON KEYSPACE k TO reader")
    backups = Backups(directory.location("roles"), server=server)
    # Without a login it is refused.
    assert backups.backup_fails()
    assert directory.names("roles") == []
    backups.backup("--user", "chief", "--password-file", password)
    assert server.stop() == 0

    def read_as_reader(of):
        with logged_in(of, "reader", "of-the-reader") as cluster:
            session = cluster.connect()
            assert [row.id for row in session.execute("SELECT id FROM k.t")] == [1]
            with pytest.raises(Exception, match="MODIFY"):
                session.execute("INSERT INTO k.t (id) VALUES (2)")

    backups.restore_to(tmp_path / "restored")
    with Server(tmp_path / "restored", "--login") as restored:
        read_as_reader(restored)
        assert restored.stop() == 0
    # Into an empty server, which had no roles of its own.
    backups.restore(server=other)
    assert other.stop() == 0, other.log()
    with Server(tmp_path / "other", "--login") as restored:
        read_as_reader(restored)
        assert restored.stop() == 0
