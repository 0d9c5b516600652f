"""Imports that are killed, stopped by too many errors, or repeated."""

import json
import subprocess

import pytest
from server import eventually

ROWS = 12_000
# Every thousandth row does not fit.
BAD = set(range(500, ROWS, 1000))


def written(loader):
    """A CSV file of many rows, some of them bad."""
    lines = ["id,n"]
    lines += [f"{row},{'x' if row in BAD else row * 2}" for row in range(ROWS)]
    (loader.directory / "t.csv").write_text("\n".join(lines) + "\n")


def progress_of(loader):
    path = loader.directory / f"{loader.table()}.import.json"
    return json.loads(path.read_text())["rows"] if path.exists() else 0


def check_all_rows(loader):
    rows = loader.session.execute(f"SELECT id, n FROM {loader.table()}")
    assert {row[0]: row[1] for row in rows} == {row: row * 2 for row in range(ROWS) if row not in BAD}
    assert [row["row"] for row in loader.rejected()] == [row + 1 for row in sorted(BAD)]


def test_an_import_that_is_killed_goes_on(loader):
    written(loader)
    # One insert at a time, so that it takes some seconds.
    command = loader.command("import", "t.csv", "--table", loader.table(), "--create", "--in-flight", 1)
    with subprocess.Popen(command, cwd=loader.directory, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: progress_of(loader) or process.poll() is not None)
        process.kill()
    done = progress_of(loader)
    assert 0 < done < ROWS
    said = loader.imports("t.csv", "--create")
    assert f"going on after row {done}" in said, said
    check_all_rows(loader)
    # Nothing is left to go on with, and a second import gives the same rows.
    assert progress_of(loader) == 0
    assert "going on" not in loader.imports("t.csv")
    check_all_rows(loader)


def test_too_many_errors_stop_an_import(loader):
    written(loader)
    code, _, errors = loader.run("import", "t.csv", "--table", loader.table(), "--create", "--max-errors", 3)
    assert code == 1 and "--max-errors 3" in errors and "goes on" in errors, errors
    assert "going on" in loader.imports("t.csv", "--max-errors", 100)
    check_all_rows(loader)


def test_a_parquet_file_goes_on_within_a_row_group(loader):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": list(range(3000)), "n": [row * 2 for row in range(3000)]})
    parquet.write_table(table, loader.directory / "t.parquet", row_group_size=1000)
    loader.imports("t.parquet", "--create")
    assert len(loader.rows()) == 3000
    # As if it had been killed after row 1500: the record of an import that is stopped by errors.
    loader.session.execute(f"TRUNCATE {loader.table()}")
    (loader.directory / "u.csv").write_text("id,n\n" + "x,1\n" * 5)
    code, _, _ = loader.run("import", "u.csv", "--table", loader.table(), "--max-errors", 2)
    assert code == 1
    record = loader.directory / f"{loader.table()}.import.json"
    state = json.loads(record.read_text())
    parquet_file = loader.directory / "t.parquet"
    changed = int(parquet_file.stat().st_mtime_ns // 1_000_000)
    state["identity"]["files"] = [[str(parquet_file), parquet_file.stat().st_size, changed]]
    state.update(rows=1500, rejected=0, rejected_bytes=0)
    record.write_text(json.dumps(state))
    assert "going on after row 1500" in loader.imports("t.parquet")
    assert sorted(row["id"] for row in loader.rows()) == list(range(1500, 3000))
