"""Runs a program that prints 'ok NAME' or 'failed NAME: why' for each of its sections, beside
servers of its own with a login and with TLS."""

import json
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "drivers"))

from process import BINARY  # noqa: E402
from server import Server  # noqa: E402

SECONDS = 180
USER, PASSWORD = "ada", "lovelace"


def others(directory):
    """(Servers with a login and with TLS, what a program is told of them when they run.)"""
    certificates, superuser = directory / "certificates", directory / "superuser"
    made = [BINARY, "certificate", "--out", certificates, "--name", "localhost", "--name", "127.0.0.1"]
    subprocess.run(made, check=True, capture_output=True, timeout=30)
    superuser.write_text(f"{USER}\n{PASSWORD}")
    files = ["--tls-cert-path", certificates / "server.pem", "--tls-key-path", certificates / "server.key"]
    login = Server(directory / "login", "--login", "--superuser-file", superuser)
    tls = Server(directory / "tls", *files)

    def told():
        return {
            "login": {"address": f"{login.host}:{login.cql_port}", "user": USER, "password": PASSWORD},
            "tls": {"address": f"{tls.host}:{tls.cql_port}", "ca": str(certificates / "ca.pem")},
        }

    return login, tls, told


def outcomes(command, server, keyspace, directory):
    """How each section of a program ended: 'ok', or why it failed."""
    login, tls, told = others(directory)
    with login, tls:
        arguments = [f"{server.host}:{server.cql_port}", keyspace, json.dumps(told())]
        # A client that waits for an answer without end fails like any other.
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=SECONDS)
    ended = {}
    for line in done.stdout.splitlines():
        how, _, rest = line.partition(" ")
        if how == "ok":
            ended[rest] = "ok"
        elif how == "failed":
            name, _, why = rest.partition(": ")
            ended[name] = why
    assert ended, f"it ran no section: {done.stdout[-1000:]}{done.stderr[-3000:]}"
    assert done.returncode == (1 if set(ended.values()) != {"ok"} else 0), done.stderr[-3000:]
    return ended
