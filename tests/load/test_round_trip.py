"""What is exported is imported again as it was."""

import json

import numpy
import pyarrow.parquet
import pytest

COLUMNS = """id int PRIMARY KEY, words text, empty text, small tinyint, big bigint, real float, wide double, number decimal,
    huge varint, truth boolean, bytes blob, day date, clock time, moment timestamp, unique_id uuid, made_at timeuuid,
    address inet, span duration, "Tags" set<text>, numbers list<int>, counts map<text, int>,
    pair frozen<tuple<int, text>>, v vector<float, 3>"""
FULL = """{"id": 1, "words": "a \\"b\\", ü\\nc", "empty": "", "small": -3, "big": 9007199254740993, "real": 0.1, "wide": 1e300,
    "number": 1.50, "huge": 123456789012345678901234567890, "truth": true, "bytes": "0x00ff", "day": "1969-12-31",
    "clock": "01:02:03.000000004", "moment": "2024-02-29 12:00:00.123Z",
    "unique_id": "123e4567-e89b-42d3-a456-426614174000", "made_at": "00000000-0000-1000-8000-000000000000",
    "address": "::1", "span": "1mo2d3h", "\\"Tags\\"": ["a", "b"], "numbers": [3, 1], "counts": {"k": 2},
    "pair": [1, null], "v": [0.1, -1.5, 3e-7]}"""


@pytest.fixture
def filled(loader):
    loader.session.execute(
        f"CREATE KEYSPACE {loader.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    for name in ("t", "again"):
        loader.session.execute(f"CREATE TABLE {loader.table(name)} ({COLUMNS})")
    for row in (FULL, '{"id": 2}', '{"id": 3, "words": "c", "v": [1, 2, 3], "numbers": []}'):
        loader.session.execute(f"INSERT INTO {loader.table()} JSON %s", (row,))
    return loader


def texts(loader, name):
    """Rows as the text of SELECT JSON, so that no digit is lost."""
    return sorted(row[0] for row in loader.session.execute(f"SELECT JSON * FROM {loader.table(name)}"))


@pytest.mark.parametrize("extension", ["parquet", "csv", "jsonl"])
def test_rows_of_every_type_come_back(filled, extension):
    filled.exports(f"t.{extension}")
    filled.imports(f"t.{extension}", table=filled.table("again"))
    assert texts(filled, "again") == texts(filled, "t")
    assert filled.rejected("again") == []


def test_vectors_and_keys_go_through_npy(filled):
    filled.exports("v.npy", "--columns", "id,v", "--ids", "ids.npy")
    ids, vectors = numpy.load(filled.directory / "ids.npy"), numpy.load(filled.directory / "v.npy")
    assert vectors.dtype == numpy.float32 and vectors.shape == (2, 3)
    rows = {row["id"]: row["v"] for row in filled.rows(columns="id, v") if row["v"]}
    found = {int(key): [float(str(number)) for number in row] for key, row in zip(ids, vectors)}
    assert found == rows
    filled.imports("v.npy", "--ids", "ids.npy", table=filled.table("again"))
    assert {row["id"]: row["v"] for row in filled.rows(filled.table("again"), "id, v")} == rows


def test_a_condition_and_columns_choose_what_goes_out(filled):
    text = filled.exports("-", "--format", "jsonl", "--columns", "id,words", "--where", "id IN (2, 3)")
    rows = sorted((json.loads(line) for line in text.splitlines()), key=lambda row: row["id"])
    assert rows == [{"id": 2, "words": None}, {"id": 3, "words": "c"}]
    code, _, errors = filled.run("export", filled.table(), "--to", "t.csv", "--where", "nothing = 1")
    assert code == 1 and "nothing" in errors, errors
    assert not list(filled.directory.glob("t.csv*"))


def test_other_readers_take_the_parquet_file(filled):
    filled.exports("t.parquet", "--page-size", 1)
    columns = ["id", "numbers", "big", "moment", "counts", "v"]
    table = pyarrow.parquet.read_table(filled.directory / "t.parquet", columns=columns)
    rows = {row["id"]: row for row in table.to_pylist()}
    assert rows[1]["numbers"] == [3, 1] and rows[1]["big"] == 9007199254740993
    assert rows[1]["moment"].isoformat() == "2024-02-29T12:00:00.123000+00:00"
    assert json.loads(rows[1]["counts"]) == {"k": 2} and rows[2]["v"] is None and len(rows[3]["v"]) == 3
