"""Servers under TLS with logins, and the two ways into them: a password, and a client's certificate."""

import subprocess

import pytest
from process import BINARY
from server import Server

SUPERUSER = ("ada", "lovelace")
# Identities of clients' certificates: the first gets a role of its name, the second has none.
APP, STRANGER = "app", "stranger"
SECONDS = 60


def annulus(*arguments):
    """What a command of the program prints."""
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Way:
    """A way into a server: the flags by which `annulus shell` and its like log in as `role`.

    `refused` has flags that do not suffice, each by words of its error."""

    def __init__(self, server, certificates, role, flags, refused):
        self.server, self.certificates, self.role = server, certificates, role
        self.flags, self.refused = flags, refused
        self.cql = f"{server.host}:{server.cql_port}"

    def shell(self, *arguments):
        """What `annulus shell` prints with these arguments."""
        return annulus("shell", "--cql", self.cql, *self.flags, *arguments)


class Secured:
    """A server whose clients log in with a password, and one that only serves clients with a certificate.

    In the second the role `app` has all rights to all keyspaces."""

    def __init__(self, folder):
        self.folder, self.certificates = folder, folder / "certificates"
        names = ["--name", "localhost", "--name", "127.0.0.1", "--client", APP, "--client", STRANGER]
        annulus("certificate", "--out", self.certificates, *names)
        self._file("superuser", "\n".join(SUPERUSER))
        self._password, self._wrong = self._file("password", SUPERUSER[1]), self._file("wrong", "byron")
        authorities = ["--tls-client-ca-cert-path", self.certificates / "ca.pem"]
        self._servers = {"password": self._server("open"), "certificate": self._server("closed", *authorities)}

    def _file(self, name, text):
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def _server(self, name, *arguments):
        files = ["--tls-cert-path", self.certificates / "server.pem", "--tls-key-path", self.certificates / "server.key"]
        login = ["--login", "--superuser-file", self.folder / "superuser"]
        return Server(self.folder / name, *files, *login, *arguments)

    def __enter__(self):
        for server in self._servers.values():
            server.start()
        statements = [
            f"CREATE ROLE {APP} WITH LOGIN = true",
            f"ADD IDENTITY '{APP}' TO ROLE {APP}",
            f"GRANT ALL ON ALL KEYSPACES TO {APP}",
        ]
        # A certificate whose identity has no role lets a client log in with a password.
        superuser = Way(self._servers["certificate"], self.certificates, SUPERUSER[0], self._of(STRANGER) + self._login(), {})
        superuser.shell("-e", "; ".join(statements))
        return self

    def __exit__(self, *_):
        for server in self._servers.values():
            server.stop()

    def _authority(self):
        return ["--ca", self.certificates / "ca.pem"]

    def _of(self, client):
        return [*self._authority(), "--cert", self.certificates / f"{client}.pem", "--cert-key", self.certificates / f"{client}.key"]

    def _login(self, password=None):
        return ["--user", SUPERUSER[0], "--password-file", password or self._password]

    def way(self, name):
        if name == "password":
            flags, role = [*self._authority(), *self._login()], SUPERUSER[0]
            refused = {
                "under TLS alone": self._login(),
                "log in with --user": self._authority(),
                "check --user and --password-file": [*self._authority(), *self._login(self._wrong)],
            }
        else:
            flags, role = self._of(APP), APP
            refused = {
                "under TLS alone": [],
                "does it need one of the client": [*self._authority(), *self._login()],
                "log in with --user": self._of(STRANGER),
            }
        return Way(self._servers[name], self.certificates, role, flags, refused)


@pytest.fixture(scope="session")
def secured(tmp_path_factory):
    with Secured(tmp_path_factory.mktemp("secured")) as servers:
        yield servers


@pytest.fixture(params=["password", "certificate"])
def way(request, secured):
    """Each of the two ways."""
    return secured.way(request.param)
