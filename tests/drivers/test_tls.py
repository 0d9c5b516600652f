"""Tests TLS of both ports with the certificates that `annulus certificate` makes."""

import base64
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from conftest import connect
from process import BINARY
from server import CQLSH_PATIENCE, Server, eventually

pytestmark = pytest.mark.embedded("TLS of its own, and its own certificates")

CQLSH = pathlib.Path(sys.executable).parent / "cqlsh"
# Only a signal makes the server check its files again.
SELDOM = ["--tls-file-check-interval", "1h"]
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def certificate(directory, *arguments):
    command = [BINARY, "certificate", "--out", directory, *arguments]
    made = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert made.returncode == 0, made.stderr
    return made.stdout


def start(directory, certificates, *arguments):
    files = ["--tls-cert-path", certificates / "server.pem", "--tls-key-path", certificates / "server.key"]
    return Server(directory / "data", *files, *SELDOM, *arguments)


def trusting(certificates, client=None, version=None):
    """A context that trusts an authority, and shows the certificate of a client."""
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    # Python is stricter from 3.13 on.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if version is not None:
        context.minimum_version = context.maximum_version = VERSIONS[version]
    if client is not None:
        context.load_cert_chain(certificates / f"{client}.pem", certificates / f"{client}.key")
    return context


def release(server, context):
    """The answer to a query of the driver; None if it gets no connection."""
    cluster = connect(server, ssl_context=context)
    try:
        return cluster.connect().execute("SELECT release_version FROM system.local").one()
    except NoHostAvailable:
        return None
    finally:
        cluster.shutdown()


def status(server, context, scheme="https"):
    """The answer to a request over HTTP; None if there is no connection."""
    url = f"{scheme}://{server.host}:{server.http_port}/api/v1/status"
    try:
        with urllib.request.urlopen(url, timeout=30, context=context) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls") / "certificates"
    certificate(directory, "--name", "localhost", "--name", "127.0.0.1", "--client", "app")
    return directory


@pytest.fixture(scope="module")
def secured(tmp_path_factory, certificates):
    with start(tmp_path_factory.mktemp("secured"), certificates) as server:
        yield server


@pytest.fixture(scope="module")
def asking(tmp_path_factory, certificates):
    """A server that asks its clients for certificates."""
    authorities = ["--tls-client-ca-cert-path", certificates / "ca.pem"]
    with start(tmp_path_factory.mktemp("asking"), certificates, *authorities) as server:
        yield server


@pytest.mark.parametrize("version", VERSIONS)
def test_both_versions(secured, certificates, version):
    context = trusting(certificates, version=version)
    assert release(secured, context) is not None
    assert status(secured, context) == '"SERVING"'


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
def test_older_versions_are_refused(secured):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    for port in (secured.cql_port, secured.http_port):
        with socket.create_connection((secured.host, port), timeout=30) as plain:
            with pytest.raises(ssl.SSLError) as raised:
                context.wrap_socket(plain)
        assert "ALERT" in raised.value.reason, "the server refuses it"


def test_rows_of_any_size(secured, certificates):
    cluster = connect(secured, ssl_context=trusting(certificates))
    try:
        session = cluster.connect()
        session.execute(
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute("CREATE TABLE k.t (id int PRIMARY KEY, b blob)")
        insert = session.prepare("INSERT INTO k.t (id, b) VALUES (?, ?)")
        blobs = {size: bytes([size % 251]) * size for size in (0, 1, 16_384, 100_000, 5_000_000)}
        for size, blob in blobs.items():
            session.execute(insert, (size, blob))
        rows = session.execute("SELECT id, b FROM k.t")
        assert {row.id: row.b for row in rows} == blobs
        futures = [session.execute_async("SELECT b FROM k.t WHERE id = 100000") for _ in range(200)]
        assert all(len(future.result().one().b) == 100_000 for future in futures)
    finally:
        cluster.shutdown()


def test_in_clear_clients_are_told_the_reason(secured):
    cluster = connect(secured)
    with pytest.raises(NoHostAvailable):
        cluster.connect()
    cluster.shutdown()
    # Not every driver shows the error that it gets.
    with socket.create_connection((secured.host, secured.cql_port), timeout=10) as client:
        client.sendall(bytes.fromhex("0400000005" "00000000"))
        assert b"TLS alone" in client.recv(4096)
    assert status(secured, None, scheme="http") == 403
    eventually(lambda: "clients without TLS are refused" in secured.log())


def test_an_authority_that_is_not_trusted(secured, tmp_path):
    certificate(tmp_path / "other")
    context = trusting(tmp_path / "other")
    assert release(secured, context) is None
    assert status(secured, context) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_clients_are_asked_for_certificates(asking, certificates, version):
    own = trusting(certificates, client="app", version=version)
    assert release(asking, own) is not None
    assert status(asking, own) == '"SERVING"'
    without = trusting(certificates, version=version)
    assert release(asking, without) is None
    assert status(asking, without) is None


def test_certificates_of_another_authority_are_refused(asking, certificates, tmp_path):
    other = tmp_path / "other"
    certificate(other, "--client", "app")
    context = trusting(certificates)
    context.load_cert_chain(other / "app.pem", other / "app.key")
    assert release(asking, context) is None
    assert status(asking, context) is None


def test_the_certificate_of_a_role_is_its_login_by_cql_and_by_http(tmp_path):
    certificates, audit = tmp_path / "certificates", tmp_path / "audit.log"
    certificate(certificates, "--name", "127.0.0.1", "--client", "app", "--client", "stranger")
    (tmp_path / "superuser").write_text("ada\nlovelace")
    options = ["--tls-client-ca-cert-path", certificates / "ca.pem", "--login", "--superuser-file", tmp_path / "superuser"]
    app, stranger = (trusting(certificates, client=name) for name in ("app", "stranger"))

    def get(client, login=None):
        """The status of a request on the client's connection, which stays open."""
        headers = {}
        if login is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        client.request("GET", "/metrics", headers=headers)
        response = client.getresponse()
        response.read()
        return response.status

    with start(tmp_path, certificates, *options, "--audit-log", audit) as server:
        provider = PlainTextAuthProvider("ada", "lovelace")
        cluster = connect(server, ssl_context=stranger, auth_provider=provider)
        admin = cluster.connect()
        of_app, of_stranger = (
            http.client.HTTPSConnection(server.host, server.http_port, timeout=30, context=context)
            for context in (app, stranger)
        )
        assert get(of_app) == 401
        socket_of_app = of_app.sock
        admin.execute("CREATE ROLE app WITH LOGIN = true")
        admin.execute("ADD IDENTITY 'app' TO ROLE app")
        assert get(of_app) == 200
        assert get(of_app, "ada:wrong") == 401, "a password wins"
        assert get(of_app, "ada:lovelace") == 200
        assert get(of_app) == 200, "the login of a request is that request's alone"
        assert get(of_stranger) == 401
        assert release(server, app) is not None
        admin.execute("ALTER ROLE app WITH LOGIN = false")
        assert get(of_app) == 401
        assert socket_of_app is not None and of_app.sock is socket_of_app, "it was one connection"
        of_app.close()
        of_stranger.close()
        cluster.shutdown()
        lines = [json.loads(line) for line in audit.read_text().splitlines()]
        kinds = {(line["type"], line.get("role")) for line in lines if line["category"] == "AUTH"}
        assert kinds == {("LOGIN_SUCCESS", "ada"), ("LOGIN_SUCCESS", "app"), ("LOGIN_ERROR", "ada")}


def test_a_certificate_is_renewed_while_the_server_runs(tmp_path):
    before, certificates = tmp_path / "before", tmp_path / "certificates"
    certificate(certificates)
    with start(tmp_path, certificates) as server:
        cluster = connect(server, ssl_context=trusting(certificates))
        session = cluster.connect()
        (certificates / "server.key").write_text("no key")
        os.kill(server.pid, signal.SIGHUP)
        eventually(lambda: "can't be used; all stays as it was" in server.log())
        assert status(server, trusting(certificates)) == '"SERVING"'
        certificates.rename(before)
        certificate(certificates)
        os.kill(server.pid, signal.SIGHUP)
        context = trusting(certificates)
        eventually(lambda: status(server, context) == '"SERVING"')
        eventually(lambda: release(server, context) is not None)
        assert release(server, trusting(before)) is None
        # A connection that is open stays so.
        assert session.execute("SELECT key FROM system.local").one() is not None
        cluster.shutdown()
        assert server.stop() == 0


def cqlsh(server, certificates, *arguments, **environment):
    statement = "SELECT release_version FROM system.local"
    command = [CQLSH, *CQLSH_PATIENCE, *arguments, "localhost", str(server.cql_port), "-e", statement]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


@pytest.mark.skipif(not CQLSH.exists(), reason="cqlsh stands beside the other driver")
def test_cqlsh(secured, asking, certificates):
    shown = cqlsh(secured, certificates, "--ssl", SSL_CERTFILE=str(certificates / "ca.pem"))
    assert shown.returncode == 0 and "release_version" in shown.stdout, shown.stderr
    own = cqlsh(asking, certificates, "--ssl", "--cqlshrc", str(certificates / "app.cqlshrc"))
    assert own.returncode == 0 and "release_version" in own.stdout, own.stderr
    without = cqlsh(asking, certificates, "--ssl", SSL_CERTFILE=str(certificates / "ca.pem"))
    assert without.returncode != 0
    clear = cqlsh(secured, certificates)
    assert clear.returncode != 0 and "TLS alone" in clear.stderr, clear.stderr


def test_the_command_says_how_its_files_are_used(tmp_path):
    said = certificate(tmp_path / "certs", "--name", "db.example", "--client", "app")
    for part in ["--tls-cert-path", "--tls-client-ca-cert-path", "cqlsh --ssl --cqlshrc", "curl --cacert", "db.example"]:
        assert part in said, part
