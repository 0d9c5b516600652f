"""Writes the golden files anew: record.py [--server HOST:PORT] [AREA ...]

Without a server it starts a Cassandra of its own and stops it at the end. A server that has
answered before may answer otherwise the second time, so give a server only to try statements out.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import time

from cassandra import AuthenticationFailed

import replay
import script
from client import Client

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cassandra"))
from ring import cassandra_ring  # noqa: E402


# Changes of roles and permissions hold at once.
WITH_LOGIN = """
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
roles_validity: 0ms
permissions_validity: 0ms
credentials_validity: 0ms
"""
FIRST_SUPERUSER = ("cassandra", "cassandra")
# A new node makes its first superuser about ten seconds after its start.
SUPERUSER_SECONDS = 60


@contextlib.contextmanager
def cassandra(with_login):
    """Yields a client of a fresh Cassandra node."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as yaml:
        yaml.write(WITH_LOGIN if with_login else "")
        yaml.flush()
        with cassandra_ring(yaml=yaml.name) as ring:
            with connected(ring.hosts[0], ring.port, with_login) as client:
                yield client


def connected(host, port, with_login):
    """A client, logged in if the node asks for that."""
    if not with_login:
        return Client(host, port)
    deadline = time.monotonic() + SUPERUSER_SECONDS
    while True:
        try:
            return Client(host, port, login=FIRST_SUPERUSER)
        except AuthenticationFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser(description="Record the answers of a real Cassandra.")
    parser.add_argument("--server", metavar="HOST:PORT", help="one that is already there")
    parser.add_argument("areas", metavar="AREA", nargs="*", help="statement files (default: all)")
    options = parser.parse_args()
    areas = options.areas or script.areas()
    for with_login in (False, True):
        chosen = [area for area in areas if (area in script.WITH_LOGIN) == with_login]
        if not chosen:
            continue
        if options.server:
            host, port = options.server.rsplit(":", 1)
            node = connected(host, int(port), with_login)
        else:
            node = cassandra(with_login)
        with node as client:
            for area in chosen:
                script.write_golden(area, replay.replay(client, area))
                print(area)


if __name__ == "__main__":
    main()
