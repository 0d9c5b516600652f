"""`annulus shell` with logins and TLS: a password, and a client's certificate."""

import subprocess

from script import SECONDS, command, environment, run, shows


def test_statements_run_as_the_role_that_logged_in(way):
    table = f"by_{way.role}.t"
    statements = [
        f"CREATE KEYSPACE by_{way.role} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
        f"CREATE TABLE {table} (id int PRIMARY KEY, v vector<float, 2>)",
        f"INSERT INTO {table} (id, v) VALUES (1, [0.5, 1])",
    ]
    assert shows(way.server, *way.flags, "-e", "; ".join(statements)) == ""
    text = shows(way.server, *way.flags, "--json", "-e", f"SELECT * FROM {table}")
    assert text == '{"id": 1, "v": [0.5, 1.0]}\n'
    if way.role == "app":
        code, _, errors = run(way.server, *way.flags, "-e", "CREATE ROLE other")
        assert code == 1 and "Unauthorized" in errors and "app" in errors, errors
    else:
        assert '"ada"' in shows(way.server, *way.flags, "--json", "-e", "LIST ROLES")


def test_an_incomplete_login_is_refused_with_what_is_missing(way):
    for words, flags in way.refused.items():
        code, text, errors = run(way.server, *flags, "-e", "SELECT key FROM system.local")
        assert (code, text) == (1, "") and words in errors, (words, errors)


def test_the_flags_may_be_variables(way):
    names = {
        "--user": "ANNULUS_CQL_USER",
        "--password-file": "ANNULUS_CQL_PASSWORD_FILE",
        "--ca": "ANNULUS_CQL_CA_CERT_PATH",
        "--cert": "ANNULUS_CQL_CERT_PATH",
        "--cert-key": "ANNULUS_CQL_KEY_PATH",
    }
    flags = list(map(str, way.flags))
    variables = {names[flag]: value for flag, value in zip(flags[::2], flags[1::2])}
    done = subprocess.run(
        command(way.server, "--csv", "-e", "SELECT key FROM system.local"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(**variables),
    )
    assert (done.returncode, done.stdout) == (0, "key\nlocal\n"), done.stderr
