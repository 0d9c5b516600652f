"""The four formats, each with rows that do not fit, into tables that are made and into others."""

import datetime
import decimal
import json

import numpy
import pyarrow
import pyarrow.parquet
import pytest

VECTORS = [[0.5, -1.0, 0.25], [1.0, 0.0, 3.0], [0.125, 2.0, -0.5]]


def expected(ids, titles, vectors):
    return [{"id": i, "title": t, "embedding": v} for i, t, v in zip(ids, titles, vectors)]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_parquet_with_a_vector_of_another_length(loader, compression):
    vectors = pyarrow.array([*VECTORS, [1.0]], pyarrow.list_(pyarrow.float32()))
    titles = pyarrow.array(["a", None, "c", "short"])
    table = pyarrow.table({"id": pyarrow.array([1, 2, 3, 4]), "title": titles, "embedding": vectors})
    pyarrow.parquet.write_table(table, loader.directory / "t.parquet", compression=compression, row_group_size=2)
    said = loader.imports("t.parquet", "--create")
    assert "imported 3 rows" in said and "CREATE CUSTOM INDEX" in said, said
    assert loader.types() == {"id": "bigint", "title": "text", "embedding": "vector<float, 3>"}
    found = {row["id"]: row for row in loader.rows()}
    assert found == {row["id"]: row for row in expected([1, 2, 3], ["a", None, "c"], VECTORS)}
    [bad] = loader.rejected()
    assert bad["row"] == 4 and "1 elements" in bad["reason"] and bad["values"]["title"] == "short"


def test_parquet_of_every_type(loader):
    moment = datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=datetime.timezone.utc)
    zone = pyarrow.timestamp("us", tz="Europe/Berlin")
    columns = {
        "id": pyarrow.array([1], pyarrow.int32()),
        "small": pyarrow.array([-3], pyarrow.int8()),
        "wide": pyarrow.array([2**63], pyarrow.uint64()),
        "price": pyarrow.array([decimal.Decimal("12.50")], pyarrow.decimal128(10, 2)),
        "day": pyarrow.array([datetime.date(2024, 2, 29)]),
        "at": pyarrow.array([moment], zone),
        "nanos": pyarrow.array([moment], pyarrow.timestamp("ns", tz="UTC")),
        "clock": pyarrow.array([datetime.time(1, 2, 3)], pyarrow.time64("us")),
        "is_so": pyarrow.array([True]),
        "bytes": pyarrow.array([b"\x01\xff"]),
        "tags": pyarrow.array([["a", "b"]]),
        "counts": pyarrow.array([[("k", 2)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "nested": pyarrow.array([{"x": 1.5, "y": "z"}]),
        "nothing": pyarrow.nulls(1),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), loader.directory / "t.parquet")
    loader.imports("t.parquet", "--create")
    [row] = loader.rows()
    assert row == {
        "id": 1,
        "small": -3,
        "wide": 2**63,
        "price": 12.5,
        "day": "2024-02-29",
        "at": "2024-02-29 12:00:00.123Z",
        "nanos": "2024-02-29 12:00:00.123Z",
        "clock": "01:02:03.000000000",
        "is_so": True,
        "bytes": "0x01ff",
        "tags": ["a", "b"],
        "counts": {"k": 2},
        "nested": '{"x": 1.5, "y": "z"}',
        "nothing": None,
    }
    assert loader.types()["price"] == "decimal" and loader.types()["counts"] == "map<text, bigint>"


def test_csv_in_the_forms_of_pandas(loader):
    (loader.directory / "t.csv").write_text(
        ",sku,title,price,embedding\n"
        '0,a1,"tea, ""green""",2.5,"[ 0.5 -1.\n  0.25]"\n'
        '1,a2,,3,"[1.0, 0.0, 3.0]"\n'
        "2,a3,c,cheap,[0.125 2. -0.5]\n"
        "3,a4\n"
    )
    loader.imports("t.csv", "--create", "--key", "sku", "--columns", "sku,title,price,embedding")
    assert loader.types()["price"] == "double"
    assert loader.rows(columns="sku, title, price, embedding") == [
        {"sku": "a1", "title": 'tea, "green"', "price": 2.5, "embedding": VECTORS[0]},
        {"sku": "a2", "title": None, "price": 3.0, "embedding": VECTORS[1]},
    ]
    bad = loader.rejected()
    assert [row["row"] for row in bad] == [3, 4], bad
    assert "column price" in bad[0]["reason"] and "2 cells" in bad[1]["reason"], bad


def test_lines_of_json_from_a_pipe(loader):
    lines = [
        *(json.dumps({"id": i, "title": t, "embedding": v}) for i, t, v in zip((1, 2, 3), "abc", VECTORS)),
        "{broken",
        json.dumps({"id": None, "title": "no key"}),
        json.dumps({"id": 9, "title": 7}),
    ]
    said = loader.imports("-", "--create", stdin="\n".join(lines).encode())
    assert "imported 3 rows" in said and "rejected" in said, said
    assert {row["id"]: row for row in loader.rows()} == {
        row["id"]: row for row in expected([1, 2, 3], "abc", VECTORS)
    }
    assert [row["row"] for row in loader.rejected()] == [4, 5, 6]


def test_npy_with_and_without_keys(loader):
    vectors = numpy.array([*VECTORS, [1.0, float("nan"), 0.0]], dtype=numpy.float32)
    numpy.save(loader.directory / "v.npy", vectors)
    loader.imports("v.npy", "--create")
    assert {row["id"]: row["vector"] for row in loader.rows()} == dict(enumerate(VECTORS))
    [bad] = loader.rejected()
    assert bad["row"] == 4 and "NaN" in bad["reason"], bad
    (loader.directory / "ids.txt").write_text("a\nb\nc\nd\n")
    loader.session.execute(f"CREATE TABLE {loader.table('named')} (name text PRIMARY KEY, v vector<float, 3>)")
    loader.imports("v.npy", "--ids", "ids.txt", table=loader.table("named"))
    found = {row["name"]: row["v"] for row in loader.rows(loader.table("named"))}
    assert found == dict(zip("abc", VECTORS))


def test_files_with_mistakes_are_refused_and_nothing_is_written(loader):
    (loader.directory / "t.csv").write_text("id,x\n1,2\n")
    code, _, errors = loader.run("import", "t.csv", "--table", loader.table())
    assert code == 2 and "--create" in errors, errors
    loader.imports("t.csv", "--create")
    (loader.directory / "u.csv").write_text("id,y\n2,3\n")
    code, _, errors = loader.run("import", "u.csv", "--table", loader.table())
    assert code == 2 and "no column y" in errors and "id, x" in errors, errors
    (loader.directory / "t.parquet").write_bytes(b"PAR1 and nothing else")
    code, _, errors = loader.run("import", "t.parquet", "--table", loader.table())
    assert code == 1 and "t.parquet" in errors, errors
    assert loader.rows() == [{"id": 1, "x": 2}]


def test_indexes_are_made_on_request(loader):
    (loader.directory / "t.csv").write_text('id,words,v\n1,green tea,"[0.5, 1]"\n2,black tea,"[1, 0.5]"\n')
    loader.imports("t.csv", "--create", "--index-vector", "v", "--index-text", "words")
    for index in ("t_v", "t_words"):
        loader.server.wait_for_index(loader.keyspace, index, 2)
    nearest = f"SELECT id FROM {loader.table()} ORDER BY v ANN OF [0.5, 1.0] LIMIT 1"
    assert [row[0] for row in loader.session.execute(nearest)] == [1]
