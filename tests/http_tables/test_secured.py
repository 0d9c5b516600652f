"""Tables over HTTPS: logins by a password (HTTP Basic) and by a client's certificate."""

import ssl
from urllib.error import URLError

import pytest
from conftest import GUARD, Api
from secured import APP, STRANGER, SUPERUSER

COLUMNS = [{"name": "id", "type": "int"}, {"name": "name", "type": "text"}, {"name": "v", "type": "vector<float, 2>"}]
ROWS = [{"id": 1, "name": "tea", "v": [1, 0]}, {"id": 2, "name": "sand", "v": [0, 1]}]


def context_of(certificates, client=None):
    """TLS that trusts the authority, and shows the certificate of a client."""
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    if client is not None:
        context.load_cert_chain(certificates / f"{client}.pem", certificates / f"{client}.key")
    return context


@pytest.fixture(params=["password", "certificate"])
def entered(request, secured):  # noqa: F811
    """A way into a server, and its client of HTTP."""
    way = secured.way(request.param)
    if request.param == "password":
        return way, Api(way.server, SUPERUSER, context_of(way.certificates))
    return way, Api(way.server, None, context_of(way.certificates, APP))


def test_rows_and_searches_of_the_role_that_logged_in(entered):
    way, api = entered
    # A role has the rights to keyspaces that it made.
    api.ok("PUT", "/keyspaces/over_https", {})
    table = "/tables/over_https/t"
    api.ok("PUT", table, {"columns": COLUMNS, "key": ["id"]})
    api.ok("PUT", f"{table}/indexes/by_v", {"column": "v", "kind": "vector"})
    assert api.ok("PUT", f"{table}/rows", {"rows": ROWS}) == {"written": 2}
    assert api.ok("GET", f"{table}/rows?id=2")["rows"][0]["name"] == "sand"
    found = api.ok("POST", f"{table}/search", {"vector": [0.9, 0.1], "limit": 1})
    assert found["rows"] == [{"id": 1, "name": "tea"}]
    assert api.cql("SELECT name FROM over_https.t WHERE id = ?", [1])["rows"] == [{"name": "tea"}]
    assert '"name": "sand"' in way.shell("--json", "-e", "SELECT name FROM over_https.t WHERE id = 2")
    assert "t" in api.ok("GET", "/schema?keyspace=over_https")["keyspaces"]["over_https"]["tables"]
    api.ok("DELETE", "/keyspaces/over_https")


def test_a_right_that_the_role_of_a_certificate_lacks_is_named(secured):  # noqa: F811
    way = secured.way("certificate")
    api = Api(way.server, None, context_of(way.certificates, APP))
    assert APP in api.refused(403, "POST", "/cql", {"query": "CREATE ROLE other"})
    # A password goes before the certificate.
    by_password = Api(way.server, SUPERUSER, context_of(way.certificates, APP))
    assert APP in [row["role"] for row in by_password.cql("LIST ROLES")["rows"]]
    wrong = Api(way.server, (SUPERUSER[0], "byron"), context_of(way.certificates, APP))
    assert wrong.raw("GET", "/schema")[0] == 401


@pytest.mark.parametrize("name,client", [("password", None), ("certificate", STRANGER)])
def test_a_request_without_a_login_gets_nothing(secured, name, client):  # noqa: F811
    way = secured.way(name)
    context = context_of(way.certificates, client)
    for login in [None, (SUPERUSER[0], "byron"), ("stranger", "lovelace")]:
        api = Api(way.server, login, context)
        for method, path, body in [
            ("GET", "/schema", None),
            ("PUT", "/tables/over_https/t/rows", {"rows": ROWS}),
            ("POST", "/tables/over_https/t/search", {"vector": [1, 0]}),
            ("POST", "/cql", {"query": "SELECT key FROM system.local"}),
        ]:
            status, headers, answer = api.raw(method, path, body)
            assert status == 401 and set(answer) == {"error", "hint"}, (method, path, answer)
            # Some clients send their login only in answer to a challenge.
            assert headers["WWW-Authenticate"].startswith("Basic")
        # The console shows a form of its own, so its browser is to show none.
        status, headers, answer = api.raw("GET", "/schema", headers={**GUARD, "X-Annulus-Console": "1"})
        assert status == 401 and headers["WWW-Authenticate"] is None, answer


def test_no_connection_without_the_certificate_that_the_server_requires(secured):  # noqa: F811
    way = secured.way("certificate")
    with pytest.raises((URLError, ConnectionError, ssl.SSLError)):
        Api(way.server, SUPERUSER, context_of(way.certificates)).raw("GET", "/schema")
    # The certificate of a server whose authority is not trusted is refused by the client.
    with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
        Api(way.server, SUPERUSER, ssl.create_default_context()).raw("GET", "/schema", headers=GUARD)
