"""Shows what an idle connection costs a server: python tests/drivers/idle_connections.py [CONNECTIONS]

ANNULUS_BINARY names the program to measure, such as target/dist/annulus. Each kind of connection gets a server of its
own, which has had a hundred connections before. The figure is the memory of the process that is no file's, divided by
the connections; the buffers of the system's sockets are not in it."""

import pathlib
import ssl
import subprocess
import sys
import tempfile

from memory import anonymous_bytes, may_open
from process import BINARY
from server import Server
from wire import Wire

BEFORE = 100
SUPERUSER = ("ada", "lovelace")


def cost(server, count, **options):
    """Bytes of memory that an idle connection takes."""
    opened = [Wire(server, **options) for _ in range(BEFORE)]
    before = anonymous_bytes(server)
    opened += [Wire(server, **options) for _ in range(count)]
    after = anonymous_bytes(server)
    # Each has been idle since it asked something.
    assert opened[-1].query("SELECT key FROM system.local").error is None
    for connection in opened:
        connection.socket.close()
    return (after - before) / count


def kinds(directory):
    """Arguments of a server, and options of connections, by the name of the kind."""
    certificates = directory / "certificates"
    made = [BINARY, "certificate", "--out", certificates, "--name", "127.0.0.1"]
    subprocess.run(made, check=True, capture_output=True, timeout=30)
    superuser = directory / "superuser"
    superuser.write_text("\n".join(SUPERUSER))
    tls = ["--tls-cert-path", certificates / "server.pem", "--tls-key-path", certificates / "server.key"]
    login = ["--login", "--superuser-file", superuser]
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    return {
        "version 4": ([], {}),
        "version 5": ([], {"version": 5}),
        "version 5, login": (login, {"version": 5, "login": SUPERUSER}),
        "version 5, TLS": (tls, {"version": 5, "tls": context}),
        "version 5, login and TLS": (login + tls, {"version": 5, "login": SUPERUSER, "tls": context}),
    }


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    if not may_open(count + BEFORE + 100):
        sys.exit(f"{count} connections need more open files than the system allows: ulimit -Hn")
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for number, (name, (arguments, options)) in enumerate(kinds(directory).items()):
            with Server(directory / str(number), *arguments) as server:
                print(f"{name:26}{cost(server, count, **options) / 1024:6.1f} KiB")


if __name__ == "__main__":
    main()
