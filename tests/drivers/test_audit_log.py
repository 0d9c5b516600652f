"""Tests the audit log of `annulus serve`: the lines that a driver, HTTP and a wrong password leave."""

import base64
import json

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from cassandra.query import BatchStatement
from conftest import connect
from server import Server

pytestmark = pytest.mark.embedded("an audit log of its own")

ALL = "ADMIN,AUTH,DCL,DDL,DML,ERROR,OTHER,PREPARE,QUERY"


class Log:
    """The lines that came since the last look."""

    def __init__(self, path):
        self.path, self._seen = path, 0

    def new(self):
        lines = self.path.read_text().splitlines()
        new = [json.loads(line) for line in lines[self._seen :]]
        self._seen = len(lines)
        return new

    def only(self, *names):
        """The values of these names in each new line."""
        return [tuple(line.get(name) for name in names) for line in self.new()]


def start(directory, *arguments):
    (directory / "superuser").write_text("ada\nlovelace")
    path = directory / "audit.log"
    login = ("--login", "--superuser-file", directory / "superuser")
    return Server(directory / "data", *login, "--audit-log", path, *arguments), Log(path)


class Login:
    """A session of a role with one connection for statements."""

    def __init__(self, server, role, password):
        self._cluster = connect(server, auth_provider=PlainTextAuthProvider(role, password))

    def __enter__(self):
        return self._cluster.connect()

    def __exit__(self, *_):
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    server, log = start(tmp_path_factory.mktemp("audit"), "--audit-categories", ALL)
    with server, Login(server, "ada", "lovelace") as admin:
        admin.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        admin.execute("CREATE TABLE s.t (id int PRIMARY KEY, n int, v vector<float, 2>)")
        admin.execute("CREATE TABLE s.other (id int PRIMARY KEY)")
        admin.execute("CREATE CUSTOM INDEX i ON s.t (v) USING 'vector_index'")
        admin.execute("CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'reads only'")
        admin.execute("GRANT SELECT ON s.t TO reader")
        yield server, log, admin


def test_it_is_its_owners_and_holds_no_password(audited):
    _, log, _ = audited
    assert log.path.stat().st_mode & 0o777 == 0o600
    text = log.path.read_text()
    assert "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = *******" in text
    assert "reads only" not in text


def test_only_the_password_of_a_statement_about_roles_is_left_out(audited):
    _, log, admin = audited
    log.new()
    grants = [
        "/* password */ GRANT MODIFY ON KEYSPACE s TO reader",
        "REVOKE MODIFY ON KEYSPACE s FROM reader",
        "/* " + "password " * 2000 + "*/ GRANT MODIFY ON s.other TO reader",
        "REVOKE MODIFY ON s.other FROM reader",
    ]
    for grant in grants:
        admin.execute(grant)
    lines = log.new()
    assert [line["statement"] for line in lines] == [grants[0], grants[1], grants[2][:8192] + "...", grants[3]]
    said = [tuple(line[name] for name in ("type", "target", "permissions", "resource")) for line in lines]
    assert said == [
        ("GRANT", "reader", "MODIFY", "KEYSPACE s"),
        ("REVOKE", "reader", "MODIFY", "KEYSPACE s"),
        ("GRANT", "reader", "MODIFY", "TABLE s.other"),
        ("REVOKE", "reader", "MODIFY", "TABLE s.other"),
    ]
    prepared = admin.prepare("ALTER ROLE reader WITH PASSWORD = 'reads only' AND LOGIN = true")
    admin.execute(prepared)
    admin.execute("ALTER USER reader WITH PASSWORD $$reads only$$ NOSUPERUSER")
    assert log.only("type", "target", "superuser", "statement") == [
        ("PREPARE_STATEMENT", "reader", None, "ALTER ROLE reader WITH PASSWORD = ******* AND LOGIN = true"),
        ("ALTER_ROLE", "reader", None, "ALTER ROLE reader WITH PASSWORD = ******* AND LOGIN = true"),
        ("ALTER_ROLE", "reader", False, "ALTER USER reader WITH PASSWORD ******* NOSUPERUSER"),
    ]


def test_logins_are_there_whether_they_succeed_or_fail(audited):
    server, log, _ = audited
    log.new()
    with Login(server, "reader", "reads only"):
        pass
    logins = [line for line in log.new() if line["category"] == "AUTH"]
    assert logins and all(line["type"] == "LOGIN_SUCCESS" and line["role"] == "reader" for line in logins)
    assert all(line["source"].startswith("127.0.0.1:") and line["time"].endswith("Z") for line in logins)
    for role, password in (("ada", "wrong"), ("nobody", "x")):
        with pytest.raises(NoHostAvailable), Login(server, role, password):
            pass
        failed = log.only("category", "type", "role", "error")
        assert failed and set(failed) == {("AUTH", "LOGIN_ERROR", role, "BadCredentials")}


def test_statements_tell_role_place_level_and_outcome(audited):
    _, log, admin = audited
    log.new()
    insert = "INSERT INTO s.t (id, n) VALUES (1, 2)"
    admin.execute(insert)
    (line,) = log.new()
    assert line.pop("time") and line.pop("source")
    assert line == {
        "category": "DML", "type": "UPDATE", "role": "ada", "keyspace": "s", "table": "t",
        "consistency": "LOCAL_ONE", "statement": insert,
    }  # fmt: skip
    with pytest.raises(InvalidRequest):
        admin.execute("SELECT nothing FROM s.t")
    with pytest.raises(Exception, match="line 1"):
        admin.execute("CRETE ROLE x WITH PASSWORD = 'hush'")
    assert log.only("category", "type", "error", "statement") == [
        ("QUERY", "SELECT", "Invalid", "SELECT nothing FROM s.t"),
        ("ERROR", "REQUEST_FAILURE", "SyntaxError", "CRETE ROLE x WITH *******"),
    ]
    admin.execute("BEGIN BATCH INSERT INTO s.t (id) VALUES (8); DELETE FROM s.t WHERE id = 8; APPLY BATCH")
    admin.execute("TRUNCATE s.other")
    assert log.only("category", "type", "table") == [("DML", "BATCH", "t"), ("DDL", "TRUNCATE", "other")]


def test_prepared_statements_have_their_text_and_not_their_values(audited):
    _, log, admin = audited
    log.new()
    text = "INSERT INTO s.t (id, n) VALUES (?, ?)"
    insert = admin.prepare(text)
    admin.execute(insert, (2, 424242))
    assert log.only("category", "type", "keyspace", "table", "statement") == [
        ("PREPARE", "PREPARE_STATEMENT", "s", "t", text),
        ("DML", "UPDATE", "s", "t", text),
    ]
    batch = BatchStatement()
    for number in range(3):
        batch.add(insert, (number, 424242))
    batch.add("DELETE FROM s.t WHERE id = 9")
    admin.execute(batch)
    lines = log.new()
    assert [(line["type"], line.get("times"), line["statement"]) for line in lines] == [
        ("UPDATE", 3, text),
        ("DELETE", None, "DELETE FROM s.t WHERE id = 9"),
    ]
    assert lines[0]["batch"] == lines[1]["batch"]
    nowhere = BatchStatement()
    nowhere.keyspace = "nowhere"
    nowhere.add("DELETE FROM t WHERE id = 9")
    with pytest.raises(InvalidRequest, match="nowhere"):
        admin.execute(nowhere)
    assert log.only("type", "keyspace", "table", "error") == [("DELETE", "nowhere", "t", "Invalid")]
    assert "424242" not in log.path.read_text()


def test_what_a_role_may_not_do_is_an_attempt(audited):
    server, log, _ = audited
    with Login(server, "reader", "reads only") as reader:
        log.new()
        with pytest.raises(Unauthorized):
            reader.execute("DELETE FROM s.t WHERE id = 1")
        with pytest.raises(Unauthorized):
            reader.execute("SELECT * FROM system_auth.roles")
        with pytest.raises(Unauthorized):
            reader.execute("CREATE ROLE other")
    attempts = log.only("category", "type", "role", "keyspace", "table", "error")
    said = ("AUTH", "UNAUTHORIZED_ATTEMPT", "reader")
    assert attempts == [
        (*said, "s", "t", "Unauthorized"),
        (*said, "system_auth", "roles", "Unauthorized"),
        (*said, None, None, "Unauthorized"),
    ]


def test_searches_and_work_by_http_are_there(audited):
    server, log, _ = audited

    def of(role, password):
        return {"Authorization": "Basic " + base64.b64encode(f"{role}:{password}".encode()).decode()}

    log.new()
    index, search = "/api/v1/indexes/s/i", {"vector": [1, 0], "limit": 1}
    assert server.http(f"{index}/ann", search, of("reader", "reads only"))[0] == 200
    assert server.http("/metrics", headers=of("reader", "reads only"))[0] == 200
    assert server.http(f"{index}/repair", {}, of("reader", "reads only"))[0] == 403
    assert server.http(f"{index}/ann", search, of("reader", "wrong"))[0] == 401
    assert server.http(f"{index}/ann", search, of("é" * 400, "wrong"))[0] == 401
    # Nobody is guessed at.
    assert server.http(f"{index}/ann", search)[0] == 401
    assert server.http(f"{index}/ann", search, {"Authorization": "Bearer x"})[0] == 401
    assert server.http(f"{index}/repair", {}, of("ada", "lovelace"))[0] in (200, 202)
    assert log.only("category", "type", "role", "table", "index", "source") == [
        ("QUERY", "SEARCH", "reader", "t", "i", "127.0.0.1"),
        ("AUTH", "UNAUTHORIZED_ATTEMPT", "reader", "t", "i", "127.0.0.1"),
        ("AUTH", "LOGIN_ERROR", "reader", None, None, "127.0.0.1"),
        ("AUTH", "LOGIN_ERROR", "é" * 128, None, None, "127.0.0.1"),
        ("ADMIN", "REPAIR", "ada", "t", "i", "127.0.0.1"),
    ]


def test_what_is_logged_can_be_chosen_and_the_file_moved_away(tmp_path):
    chosen = ("--audit-categories", "dml,ddl", "--audit-keyspaces", "kept", "--audit-exclude-roles", "ingest")
    server, log = start(tmp_path, *chosen)
    with server, Login(server, "ada", "lovelace") as admin:
        for keyspace in ("kept", "other"):
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            admin.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
            admin.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY)")
            admin.execute(f"INSERT INTO {keyspace}.t (id) VALUES (1)")
            admin.execute(f"SELECT * FROM {keyspace}.t")
        admin.execute("CREATE ROLE ingest WITH LOGIN = true AND SUPERUSER = true AND PASSWORD = 'x'")
        with Login(server, "ingest", "x") as ingest:
            ingest.execute("INSERT INTO kept.t (id) VALUES (2)")
        told = [("CREATE_KEYSPACE", "kept"), ("CREATE_TABLE", "kept"), ("UPDATE", "kept")]
        assert log.only("type", "keyspace") == told
        moved = log.path.rename(tmp_path / "audit.log.1")
        admin.execute("DROP TABLE kept.t")
        assert Log(log.path).only("type") == [("DROP_TABLE",)]
        assert len(moved.read_text().splitlines()) == 3


def test_without_a_login_the_address_is_known(tmp_path):
    log = Log(tmp_path / "audit.log")
    with Server(tmp_path / "data", "--audit-log", log.path) as server:
        cluster = connect(server)
        cluster.connect().execute("DROP KEYSPACE IF EXISTS nowhere")
        cluster.shutdown()
        assert server.http("/api/v1/scrub", {})[0] < 300
    assert log.only("category", "type", "role", "keyspace") == [
        ("DDL", "DROP_KEYSPACE", None, "nowhere"),
        ("ADMIN", "OPERATE", None, None),
    ]


def test_what_can_not_be_logged_is_not_done(tmp_path):
    with Server(tmp_path / "data", "--audit-log", "/dev/full") as server:
        cluster = connect(server)
        session = cluster.connect()
        create = "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        with pytest.raises(Exception, match="may have been carried out"):
            session.execute(create.format("first"))
        with pytest.raises(Exception, match="not carried out, as it has to be logged"):
            session.execute(create.format("second"))
        # What need not be logged goes on.
        rows = session.execute("SELECT keyspace_name FROM system_schema.keyspaces")
        assert "second" not in {row.keyspace_name for row in rows}
        cluster.shutdown()
        assert "the audit log can't be written" in server.log()


def test_nobody_logs_in_while_logins_can_not_be_logged(tmp_path):
    (tmp_path / "superuser").write_text("ada\nlovelace")
    login = ("--login", "--superuser-file", tmp_path / "superuser")
    basic = {"Authorization": "Basic " + base64.b64encode(b"ada:wrong").decode()}
    right = {"Authorization": "Basic " + base64.b64encode(b"ada:lovelace").decode()}
    with Server(tmp_path / "data", *login, "--audit-log", "/dev/full") as server:
        assert server.http("/metrics", headers=right)[0] == 200, "a success need not be logged"
        status, text = server.http("/metrics", headers=basic)
        assert status == 503 and "may have been carried out" in text
        for headers in (basic, right):
            status, text = server.http("/metrics", headers=headers)
            assert status == 503 and "not carried out, as it has to be logged" in text
        with pytest.raises(NoHostAvailable, match="not carried out, as it has to be logged"):
            with Login(server, "ada", "lovelace"):
                pass
