"""Starts a Cassandra with users that log in, which also accepts TLS."""

import contextlib
import subprocess

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from clients import client_of_one
from ring import cassandra_ring, free_network
from server import eventually

PASSWORD = "changeit"
SUPERUSER = "cassandra"

# The caches are off, so that a grant holds at once. Clients may connect with TLS or without.
YAML = """
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
permissions_validity: 0ms
roles_validity: 0ms
credentials_validity: 0ms
dynamic_data_masking_enabled: true
client_encryption_options:
  enabled: true
  optional: true
  keystore: {keystore}
  keystore_password: {password}
"""


@contextlib.contextmanager
def guarded_ring(directory):
    """Yields a ring of one node with users, and the PEM file of the authority that has signed its
    certificate."""
    network = free_network()
    keystore, authority = _keystore(directory, f"{network}.1")
    yaml = directory / "guarded.yaml"
    yaml.write_text(YAML.format(keystore=keystore, password=PASSWORD))
    with cassandra_ring(network=network, yaml=yaml) as ring:
        # Cassandra makes its first user a moment after the node has started.
        eventually(lambda: can_log_in((ring.hosts[0], ring.port), SUPERUSER), seconds=60, every=1)
        yield ring, authority


def _keystore(directory, address):
    """Makes a keystore with a certificate for an address, and the PEM file of the authority that
    has signed it."""

    def keytool(*arguments, **options):
        command = ["keytool", *arguments, "-storepass", PASSWORD]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=directory, **options).stdout

    key = ("-genkeypair", "-keyalg", "EC", "-validity", "3650")
    keytool(*key, "-keystore", "authority.p12", "-alias", "authority", "-dname", "CN=Authority", "-ext", "bc:c")
    authority = directory / "authority.pem"
    authority.write_bytes(keytool("-exportcert", "-rfc", "-keystore", "authority.p12", "-alias", "authority"))
    keytool(*key, "-keystore", "node.p12", "-alias", "node", "-dname", "CN=Node")
    request = keytool("-certreq", "-keystore", "node.p12", "-alias", "node")
    signing = ("-gencert", "-rfc", "-keystore", "authority.p12", "-alias", "authority", "-validity", "3650")
    signed = keytool(*signing, "-ext", f"SAN=ip:{address}", input=request)
    (directory / "node.pem").write_bytes(signed + authority.read_bytes())
    keytool("-importcert", "-noprompt", "-keystore", "node.p12", "-alias", "authority", "-file", "authority.pem")
    keytool("-importcert", "-noprompt", "-keystore", "node.p12", "-alias", "node", "-file", "node.pem")
    return directory / "node.p12", authority


@contextlib.contextmanager
def logged_in(address, user, password=None, **options):
    """Yields a session of a user, whose password is its name unless one is given."""
    options["auth_provider"] = PlainTextAuthProvider(user, password or user)
    with client_of_one(address, **options) as cluster:
        yield cluster.connect()


def can_log_in(address, user, password=None):
    try:
        with logged_in(address, user, password):
            return True
    except NoHostAvailable:
        return False
