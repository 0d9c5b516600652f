"""Runs `annulus import` and `annulus export`."""

import json
import os
import subprocess

from process import BINARY

SECONDS = 120


class Loader:
    """The two programs on a server, in a working directory, and a keyspace for their tables."""

    def __init__(self, server, session, directory, keyspace):
        self.server, self.session, self.directory, self.keyspace = server, session, directory, keyspace

    def table(self, name="t"):
        return f"{self.keyspace}.{name}"

    def command(self, program, *arguments):
        cql = f"{self.server.host}:{self.server.cql_port}"
        return [str(word) for word in (BINARY, program, *arguments, "--cql", cql)]

    def run(self, program, *arguments, stdin=None):
        """(exit code, stdout, stderr), both as bytes of UTF-8 that are text."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANNULUS_")}
        done = subprocess.run(
            self.command(program, *arguments),
            input=stdin,
            capture_output=True,
            timeout=SECONDS,
            cwd=self.directory,
            env=environment,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def imports(self, *arguments, stdin=None, table=None):
        """What an import says that goes well."""
        code, _, errors = self.run("import", *arguments, "--table", table or self.table(), stdin=stdin)
        assert code == 0, errors
        return errors

    def exports(self, to, *arguments, table=None):
        code, text, errors = self.run("export", table or self.table(), "--to", to, *arguments)
        assert code == 0, errors
        return text

    def rows(self, table=None, columns="*"):
        """All rows as SELECT JSON has them, by their text."""
        rows = self.session.execute(f"SELECT JSON {columns} FROM {table or self.table()}")
        return sorted((json.loads(row[0]) for row in rows), key=lambda row: json.dumps(row, sort_keys=True))

    def types(self, name="t"):
        rows = self.session.execute(
            f"SELECT column_name, type FROM system_schema.columns "
            f"WHERE keyspace_name = '{self.keyspace}' AND table_name = '{name}'"
        )
        return {row[0]: row[1] for row in rows}

    def rejected(self, name="t"):
        """The rejected rows, each a dict."""
        path = self.directory / f"{self.keyspace}.{name}.rejected.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
