"""Fixtures of tables over HTTP: servers with and without logins, and sessions to them."""

import base64
import json
import pathlib
import sys
import urllib.error
import urllib.request

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("drivers", "cluster", "cassandra"):
    sys.path.append(str(TESTS / folder))

from cassandra.auth import PlainTextAuthProvider  # noqa: E402
from clients import client_of_one  # noqa: E402
from conftest_server import server  # noqa: E402, F401
from secured import secured  # noqa: E402, F401
from server import Server  # noqa: E402

GUARD = {"X-Requested-With": "annulus"}
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


class Api:
    """Sends requests with or without the login of a role, and over HTTPS where there is a context of TLS."""

    def __init__(self, server, login=None, context=None):
        scheme = "http" if context is None else "https"
        self.base, self._context = f"{scheme}://{server.host}:{server.http_port}/api/v1", context
        self.headers = dict(GUARD)
        if login:
            self.headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()

    def raw(self, method, path, body=None, headers=None):
        """(status, headers, JSON) of a request with these headers, or with those of this client."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = self.headers if headers is None else headers
        request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._context) as response:
                return response.status, response.headers, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, error.headers, json.loads(error.read())

    def ok(self, method, path, body=None):
        """The JSON of a request that succeeds."""
        status, _, answer = self.raw(method, path, body)
        assert status == 200, (status, answer)
        return answer

    def refused(self, status, method, path, body=None):
        """The error and the hint of a request that fails with a status."""
        got, _, answer = self.raw(method, path, body)
        assert got == status and set(answer) == {"error", "hint"} and all(answer.values()), (got, answer)
        return answer["error"] + " | " + answer["hint"]

    def cql(self, query, parameters=None, **fields):
        body = {"query": query, **fields}
        return self.ok("POST", "/cql", body if parameters is None else {**body, "parameters": parameters})


@pytest.fixture(scope="session")
def session(server):  # noqa: F811
    with client_of_one((server.host, server.cql_port)) as cluster:
        yield cluster.connect()


@pytest.fixture(scope="session")
def api(server):  # noqa: F811
    return Api(server)


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """A server with logins: the superuser `chief`, and an audit log."""
    folder = tmp_path_factory.mktemp("guarded")
    password = folder / "superuser"
    password.write_text("chief\nchief-password\n")
    password.chmod(0o600)
    log = folder / "audit.log"
    arguments = ["--login", "--superuser-file", password, "--audit-log", log]
    arguments += ["--audit-categories", "QUERY,DML,DDL,AUTH"]
    server = Server(folder / "data", *arguments).start()
    server.audit_file = log
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="session")
def chief(guarded):
    """A session of the superuser by CQL."""
    auth = PlainTextAuthProvider("chief", "chief-password")
    with client_of_one((guarded.host, guarded.cql_port), auth_provider=auth) as cluster:
        yield cluster.connect()
