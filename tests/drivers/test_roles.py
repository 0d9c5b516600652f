"""Logins and permissions of `annulus serve --login`: by the driver, by HTTP and by the operator's commands."""

import base64
import json
import socket
import subprocess
import time

import pytest
from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException

from conftest import connect
from process import BINARY
from server import Server

pytestmark = pytest.mark.embedded("starts servers of its own")

SUPERUSER = ("ada", "lovelace")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("login")
    (directory / "superuser").write_text("\n".join(SUPERUSER))
    with Server(directory / "data", "--login", "--superuser-file", directory / "superuser") as server:
        yield server


class Login:
    """A session of a role."""

    def __init__(self, server, role, password):
        self._cluster = connect(server, auth_provider=PlainTextAuthProvider(role, password))

    def __enter__(self):
        return self._cluster.connect()

    def __exit__(self, *_):
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def admin(server):
    with Login(server, *SUPERUSER) as session:
        session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE s.t (id int PRIMARY KEY, v vector<float, 2>)")
        session.execute("CREATE CUSTOM INDEX i ON s.t (v) USING 'vector_index'")
        session.execute("INSERT INTO s.t (id, v) VALUES (1, [1, 0])")
        for role in ("reader", "writer", "nobody"):
            session.execute(f"CREATE ROLE {role} WITH LOGIN = true AND PASSWORD = '{role} secret'")
        session.execute("GRANT SELECT ON s.t TO reader")
        session.execute("GRANT MODIFY ON s.t TO writer")
        yield session


def basic(role, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{role}:{password}".encode()).decode()}


def of(role):
    return basic(role, f"{role} secret")


def test_without_a_login_or_with_a_wrong_one_nobody_comes_in(server, admin):
    for options in ({}, {"auth_provider": PlainTextAuthProvider("ada", "wrong")}):
        cluster = connect(server, **options)
        with pytest.raises(NoHostAvailable, match="(?i)authenticat|credentials|username"):
            cluster.connect()
        cluster.shutdown()


def test_the_default_login_of_cassandra_is_not_there(server, admin):
    cluster = connect(server, auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
    with pytest.raises(NoHostAvailable, match="Provided username cassandra and/or password are incorrect"):
        cluster.connect()
    cluster.shutdown()


def test_permissions_hold_for_searches_and_prepared_statements_and_end_at_once(server, admin):
    with Login(server, "reader", "reader secret") as reader:
        nearest = reader.prepare("SELECT id FROM s.t ORDER BY v ANN OF ? LIMIT 1")
        assert [row.id for row in reader.execute(nearest, ([1.0, 0.0],))] == [1]
        insert = reader.prepare("INSERT INTO s.t (id, v) VALUES (?, ?)")
        with pytest.raises(Unauthorized, match="User reader has no MODIFY permission on <table s.t>"):
            reader.execute(insert, (2, [0.0, 1.0]))
        admin.execute("GRANT MODIFY ON s.t TO reader")
        reader.execute(insert, (1, [1.0, 0.0]))
        admin.execute("REVOKE ALL ON s.t FROM reader")
        with pytest.raises(Unauthorized, match="no SELECT permission"):
            reader.execute(nearest, ([1.0, 0.0],))
        admin.execute("GRANT SELECT ON s.t TO reader")
        assert reader.execute(nearest, ([1.0, 0.0],)).one().id == 1


def test_batches_of_the_protocol_are_checked(server, admin):
    from cassandra.query import BatchStatement

    with Login(server, "reader", "reader secret") as reader:
        batch = BatchStatement()
        batch.add("INSERT INTO s.t (id) VALUES (7)")
        with pytest.raises(Unauthorized, match="no MODIFY permission"):
            reader.execute(batch)


def test_a_changed_password_and_a_dropped_role_hold_for_the_next_login_and_statement(server, admin):
    admin.execute("CREATE ROLE passing WITH LOGIN = true AND PASSWORD = 'one'")
    with Login(server, "passing", "one") as passing:
        passing.execute("ALTER ROLE passing WITH PASSWORD = 'two'")
        with pytest.raises(NoHostAvailable), Login(server, "passing", "one"):
            pass
        with Login(server, "passing", "two"):
            pass
        admin.execute("DROP ROLE passing")
        with pytest.raises(Unauthorized, match="does not exist any more"):
            passing.execute("SELECT key FROM system.local")


def test_the_http_api_asks_for_the_same_logins_and_rights(server, admin):
    search = {"vector": [1, 0], "limit": 1}
    ann = "/api/v1/indexes/s/i/ann"
    assert server.http("/api/v1/status")[0] == 200
    for path, body in (("/api/v1/indexes", None), ("/metrics", None), (ann, search), ("/api/v1/tasks", None)):
        assert server.http(path, body)[0] == 401, path
        assert server.http(path, body, basic("ada", "wrong"))[0] == 401, path
    assert server.http("/metrics", headers=of("nobody"))[0] == 200
    assert server.http(ann, search, of("reader"))[0] == 200
    status, text = server.http(ann, search, of("nobody"))
    assert status == 403 and "User nobody has no SELECT permission on <table s.t>" in text
    repair = "/api/v1/indexes/s/i/repair"
    assert server.http(repair, {}, of("reader"))[0] == 403
    recall = "/api/v1/indexes/s/i/recall"
    assert server.http(recall, {}, of("reader"))[0] == 403
    status, text = server.http(recall, {}, basic(*SUPERUSER))
    assert status == 200 and '"recall":1.0' in text
    shown = "/api/v1/indexes/s/i/map"
    for body in (None, {}):
        assert server.http(shown, body)[0] == 401
        assert server.http(shown, body, of("nobody"))[0] == 403
    assert server.http(shown, headers=of("reader"))[0] == 404
    assert server.http(shown, {}, of("reader"))[0] == 200
    assert server.http("/api/v1/scrub", {}, of("reader"))[0] == 403
    assert server.http(repair, {}, basic(*SUPERUSER))[0] in (200, 202)


def test_a_secondary_index_is_repaired_by_who_may_alter_its_table(server, admin):
    admin.execute("CREATE TABLE s.u (id int PRIMARY KEY, n int)")
    admin.execute("CREATE INDEX by_n ON s.u (n)")
    admin.execute("INSERT INTO s.u (id, n) VALUES (1, 2)")
    admin.execute("CREATE ROLE keeper WITH LOGIN = true AND PASSWORD = 'keeper secret'")
    repair = "/api/v1/indexes/s/by_n/repair"
    admin.execute("GRANT SELECT ON s.u TO keeper")
    status, text = server.http(repair, {}, of("keeper"))
    assert status == 403 and "has no ALTER permission on <table s.u>" in text
    admin.execute("GRANT ALTER ON s.u TO keeper")
    deadline = time.monotonic() + 30
    # Another repair may still run.
    while (answer := server.http(repair, {}, of("keeper")))[0] == 409 and time.monotonic() < deadline:
        time.sleep(0.1)
    status, text = answer
    assert status == 200, text
    task = json.loads(text)["id"]
    ended = json.loads(server.http(f"/api/v1/tasks/{task}/wait?timeout=30", headers=of("keeper"))[1])
    assert (ended["state"], ended["counters"]["entries_compared"]) == ("done", 1)


def test_the_operators_commands_log_in(server, admin, tmp_path):
    def tasks(*login):
        http = f"http://127.0.0.1:{server.http_port}"
        command = [BINARY, "tasks", "list", "--json", "--http", http, *login]
        return subprocess.run(command, capture_output=True, text=True, timeout=30)

    refused = tasks()
    assert refused.returncode == 1 and "--user and --password-file" in refused.stderr
    (tmp_path / "password").write_text("reader secret\n")
    answered = tasks("--user", "reader", "--password-file", tmp_path / "password")
    assert answered.returncode == 0, answered.stderr
    json.loads(answered.stdout)


@pytest.mark.parametrize(
    "permission, table, column, other",
    [
        ("VECTOR_SEARCH_INDEXING", "t", "v", "texts"),
        ("TEXT_SEARCH_INDEXING", "texts", "body", "t"),
    ],
)
def test_an_index_service_reads_what_has_an_index_of_its_class_and_does_nothing_else(server, admin, permission, table, column, other):
    admin.execute("CREATE TABLE IF NOT EXISTS s.plain (id int PRIMARY KEY, x int)")
    admin.execute("CREATE TABLE IF NOT EXISTS s.texts (id int PRIMARY KEY, body text)")
    admin.execute("CREATE CUSTOM INDEX IF NOT EXISTS words ON s.texts (body) USING 'fulltext_index'")
    admin.execute("INSERT INTO s.texts (id, body) VALUES (1, 'one')")
    index = {"t": "i", "texts": "words"}[table]
    admin.execute("CREATE ROLE indexer WITH LOGIN = true AND PASSWORD = 'indexer secret'")
    reads = [
        f"SELECT id, {column}, token(id) FROM s.{table} WHERE token(id) > 0",
        f"SELECT * FROM s.{table}_scylla_cdc_log",
    ]
    system = ["group0_history", "versions", "cdc_streams", "cdc_timestamps", "tablets"]
    with Login(server, "indexer", "indexer secret") as indexer:

        def refused(statements, permission):
            for statement in statements:
                with pytest.raises(Unauthorized, match=f"User indexer has no {permission} permission"):
                    indexer.execute(statement)

        refused(reads, "SELECT")
        admin.execute(f"GRANT {permission} ON ALL KEYSPACES TO indexer")
        for read in reads:
            indexer.execute(read)
        refused([f"SELECT * FROM s.{other}", f"SELECT * FROM s.{other}_scylla_cdc_log"], "SELECT")
        prepared = indexer.prepare(f"SELECT id FROM s.{table} WHERE id = ?")
        assert indexer.execute(prepared, (1,)).one().id == 1
        for name in system:
            indexer.execute(f"SELECT * FROM system.{name}")
        granted = {(row.role, row.permission) for row in admin.execute("LIST ALL PERMISSIONS OF indexer")}
        assert granted == {("indexer", permission)}
        refused(["SELECT * FROM s.plain", "SELECT role FROM system_auth.roles"], "SELECT")
        writes = [f"INSERT INTO s.{table} (id) VALUES (5)", f"DELETE FROM s.{table} WHERE id = 1", f"TRUNCATE s.{table}"]
        refused(writes, "MODIFY")
        refused([f"ALTER TABLE s.{table} ADD x int", "CREATE INDEX ON s.plain (x)", f"DROP INDEX s.{index}"], "ALTER")
        refused(["CREATE TABLE s.more (id int PRIMARY KEY)"], "CREATE")
        refused([f"DROP TABLE s.{table}"], "DROP")
        refused([f"GRANT SELECT ON s.{table} TO indexer"], "AUTHORIZE")
        admin.execute(f"REVOKE {permission} ON ALL KEYSPACES FROM indexer")
        refused(reads, "SELECT")
        with pytest.raises(Unauthorized, match="no SELECT permission"):
            indexer.execute(prepared, (1,))
    for narrower in ["KEYSPACE s", f"s.{table}"]:
        with pytest.raises(SyntaxException, match="does not support any of the requested permissions"):
            admin.execute(f"GRANT {permission} ON {narrower} TO indexer")
    admin.execute("DROP ROLE indexer")


def test_system_auth_is_for_those_who_may_read_it(server, admin):
    row = admin.execute("SELECT salted_hash FROM system_auth.roles WHERE role = 'reader'").one()
    assert row.salted_hash.startswith("$2a$10$")
    with Login(server, "reader", "reader secret") as reader, pytest.raises(Unauthorized):
        reader.execute("SELECT * FROM system_auth.roles")


def test_no_secret_is_in_the_log(server, admin):
    with pytest.raises(Exception):
        admin.execute("CREATE ROLE leak WITH PASSWORD = 'hunter2' 'hunter2'")
    log = server.log()
    for secret in ("hunter2", "reader secret", "lovelace", "$2a$"):
        assert secret not in log


def shown_once(server):
    """The password of the first superuser, if the server has printed it."""
    lines = [line for line in server.printed if "shown this once" in line]
    return lines[0].split()[-1] if lines else None


def test_the_first_superuser_is_printed_once_and_its_owner_can_come_back(tmp_path):
    with Server(tmp_path / "data", "--login") as server:
        password = shown_once(server)
        with Login(server, "annulus", password) as session:
            session.execute("CREATE ROLE kept WITH LOGIN = true AND PASSWORD = 'kept'")
        running = subprocess.run([BINARY, "role", "reset", "--data-dir", server.data_dir], capture_output=True, text=True)
        assert running.returncode == 4 and "stop its server first" in running.stderr
    reset = subprocess.run(
        [BINARY, "role", "reset", "--data-dir", server.data_dir], capture_output=True, text=True, timeout=60
    )
    assert reset.returncode == 0, reset.stderr
    mistaken = subprocess.run(
        [BINARY, "role", "reset", "--data-dir", server.data_dir, "anulus"], capture_output=True, text=True, timeout=60
    )
    assert mistaken.returncode == 2 and not mistaken.stdout
    assert "there is no role anulus: name one of annulus, kept" in mistaken.stderr
    renewed = reset.stdout.split()[-1]
    with Server(tmp_path / "data", "--login") as again:
        assert shown_once(again) is None
        with pytest.raises(NoHostAvailable), Login(again, "annulus", password):
            pass
        with Login(again, "annulus", renewed), Login(again, "kept", "kept"):
            pass


def test_a_start_that_cannot_listen_shows_no_password_and_makes_no_role(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [BINARY, "serve", "--login", "--data-dir", tmp_path / "data", "--http-port", "0", "--cql-port", port]
        failed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert failed.returncode != 0 and "--cql-port" in failed.stderr
    assert "shown this once" not in failed.stdout
    reset = [BINARY, "role", "reset", "--data-dir", tmp_path / "data"]
    refused = subprocess.run(reset, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "start the server with --login" in refused.stderr
    with Server(tmp_path / "data", "--login") as server, Login(server, "annulus", shown_once(server)):
        pass


def test_roles_are_of_no_use_where_nobody_logs_in(tmp_path):
    with Server(tmp_path / "data") as server:
        cluster = connect(server)
        session = cluster.connect()
        for statement in ("CREATE ROLE r", "LIST ROLES", "GRANT SELECT ON ALL KEYSPACES TO r"):
            with pytest.raises(Unauthorized, match="start annulus serve with --login"):
                session.execute(statement)
        cluster.shutdown()
