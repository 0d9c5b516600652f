"""Runs Apache Cassandra's own shell."""

import os
import pathlib
import re
import subprocess
import sys

from server import CQLSH_PATIENCE

CQLSH = pathlib.Path(sys.executable).parent / "cqlsh"
SECONDS = 60


def cqlsh(server, statements, *options, environment=None, seconds=SECONDS):
    """(exit status, what it printed, its errors) for statements."""
    command = [CQLSH, *CQLSH_PATIENCE, *options, server.host, str(server.cql_port), "-e", statements]
    environment = os.environ | (environment or {})
    result = subprocess.run(command, capture_output=True, text=True, timeout=2 * seconds, env=environment)
    # cqlsh warns if the server is of another version than it was built for.
    text = re.sub(r"\AWARNING: cqlsh was built against .*\n+", "", result.stdout)
    return result.returncode, text, result.stderr


def shows(server, statements, *options, **more):
    """What it printed for statements that are all carried out."""
    code, text, errors = cqlsh(server, statements, *options, **more)
    assert (code, errors) == (0, ""), text + errors
    return text
