"""Writes the golden files anew: record.py [--server HOST:PORT] [AREA ...]

Without a server it starts a Cassandra of its own and stops it at the end. A server that has
answered before may answer otherwise the second time, so give a server only to try statements out.
"""

import argparse
import contextlib
import pathlib
import sys

import replay
import script
from client import Client

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cassandra"))
from ring import cassandra_ring  # noqa: E402


@contextlib.contextmanager
def cassandra():
    """Yields HOST, PORT of a fresh Cassandra node."""
    with cassandra_ring() as ring:
        yield ring.hosts[0], ring.port


def main():
    parser = argparse.ArgumentParser(description="Record the answers of a real Cassandra.")
    parser.add_argument("--server", metavar="HOST:PORT", help="one that is already there")
    parser.add_argument("areas", metavar="AREA", nargs="*", help="statement files (default: all)")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        host, port = options.server.rsplit(":", 1) if options.server else stack.enter_context(cassandra())
        client = stack.enter_context(Client(host, int(port)))
        for area in options.areas or script.areas():
            script.write_golden(area, replay.replay(client, area))
            print(area)


if __name__ == "__main__":
    main()
