"""Runs `annulus shell` without a terminal."""

import os
import subprocess

from process import BINARY

SECONDS = 60


def command(server, *arguments):
    return [BINARY, "shell", "--cql", f"{server.host}:{server.cql_port}", *arguments]


def environment(**more):
    """The environment without settings of this machine that change what is shown."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "ANNULUS_CQL")}
    return kept | more


def run(server, *arguments, stdin=""):
    """(exit code, what it printed, its errors)."""
    done = subprocess.run(
        command(server, *arguments), input=stdin, capture_output=True, text=True, timeout=SECONDS, env=environment()
    )
    return done.returncode, done.stdout, done.stderr


def shows(server, *arguments, stdin=""):
    """What it printed, where all is carried out."""
    code, text, errors = run(server, *arguments, stdin=stdin)
    assert (code, errors) == (0, ""), text + errors
    return text
