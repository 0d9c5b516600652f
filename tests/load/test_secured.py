"""`annulus import` and `annulus export` with logins and TLS: a password, and a client's certificate."""

import json

import pytest
from loading import Loader

ROWS = 2000


@pytest.fixture
def loader(way, tmp_path):
    lines = [json.dumps({"id": row, "body": f"text {row}", "embedding": [row / 8, 0.5]}) for row in range(ROWS)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    return Loader(way.server, None, tmp_path, f"loaded_by_{way.role}")


def test_rows_go_in_and_come_out_as_the_role_that_logged_in(way, loader):
    said = loader.imports("t.jsonl", "--create", *way.flags)
    assert f"imported {ROWS} rows" in said, said
    text = loader.exports("-", "--format", "jsonl", *way.flags)
    written = (loader.directory / "t.jsonl").read_text()
    by_id = lambda lines: {row["id"]: row for row in map(json.loads, lines.splitlines())}  # noqa: E731
    assert by_id(text) == by_id(written)
    assert json.loads(way.shell("--json", "-e", f"SELECT count(*) FROM {loader.table()}"))["count"] == ROWS


def test_an_incomplete_login_is_refused_before_a_row_is_written(way, loader):
    table = f"refused_to_{way.role}.t"
    for words, flags in way.refused.items():
        for program in [
            ("import", "t.jsonl", "--table", table, "--create"),
            ("export", loader.table(), "--to", "t.parquet"),
        ]:
            code, text, errors = loader.run(*program, *flags)
            assert (code, text) == (1, "") and words in errors, (program, errors)
    assert sorted(path.name for path in loader.directory.iterdir()) == ["t.jsonl"]


def test_a_role_without_the_right_to_write_imports_nothing(secured, tmp_path):
    superuser = secured.way("password")
    (tmp_path / "t.csv").write_text("id,n\n1,2\n")
    (tmp_path / "password").write_text("sesame\n")
    superuser.shell(
        "-e",
        "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'sesame';"
        "CREATE KEYSPACE guarded WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};"
        "CREATE TABLE guarded.t (id int PRIMARY KEY, n int); GRANT SELECT ON KEYSPACE guarded TO reader;",
    )
    loader = Loader(superuser.server, None, tmp_path, "guarded")
    flags = ["--ca", superuser.certificates / "ca.pem", "--user", "reader", "--password-file", "password"]
    code, _, errors = loader.run("import", "t.csv", "--table", "guarded.t", *flags)
    assert code == 1 and "reader" in errors and "MODIFY" in errors, errors
    assert loader.exports("-", "--format", "csv", *flags).splitlines() == ["id,n"]
