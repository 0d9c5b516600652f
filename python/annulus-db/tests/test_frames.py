"""DataFrames and Arrow tables as rows, and the other way."""

import datetime
import decimal
import ipaddress
import json
import uuid

import numpy
import pandas
import pyarrow
import pytest

from annulus_db import _json, frames

MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=datetime.timezone.utc)


def listed(data):
    return [json.loads(_json.encode_row(row)) for row in frames.rows_of(data)]


def test_a_frame_becomes_rows_with_nulls_for_what_is_missing():
    frame = pandas.DataFrame(
        {
            "id": [1, 2],
            "name": ["a", None],
            "price": [1.5, float("nan")],
            "count": pandas.array([7, None], dtype="Int64"),
            "at": [pandas.Timestamp(MOMENT), pandas.NaT],
            "v": [numpy.array([1, 2], dtype="float32"), [3.0, 4.0]],
            "on": [True, False],
        }
    )
    at = "2026-01-02T03:04:05.678Z"
    assert listed(frame) == [
        {"id": 1, "name": "a", "price": 1.5, "count": 7, "at": at, "v": [1, 2], "on": True},
        {"id": 2, "name": None, "price": None, "count": None, "at": None, "v": [3, 4], "on": False},
    ]


def test_an_index_with_a_name_is_a_column():
    frame = pandas.DataFrame({"a": [1, 2]}, index=pandas.Index(["x", "y"], name="id"))
    assert listed(frame) == [{"id": "x", "a": 1}, {"id": "y", "a": 2}]
    assert listed(frame.reset_index(drop=True)) == [{"a": 1}, {"a": 2}]


def test_a_frame_of_many_rows_keeps_their_order_and_types():
    frame = pandas.DataFrame({"id": range(2_500), "half": [number / 2 for number in range(2_500)]})
    rows = list(frames.rows_of(frame))
    assert [row["id"] for row in rows] == list(range(2_500))
    assert isinstance(rows[-1]["id"], int) and rows[-1]["half"] == 1249.5


def test_an_arrow_table_becomes_rows():
    table = pyarrow.table(
        {
            "id": pyarrow.array([1, 2], pyarrow.int32()),
            "v": pyarrow.array([[1.0, 2.0], None], pyarrow.list_(pyarrow.float32(), 2)),
            "m": pyarrow.array([[("a", 1)], None], pyarrow.map_(pyarrow.string(), pyarrow.int32())),
            "s": pyarrow.array([{"x": 1}, {"x": None}]),
            "b": pyarrow.array([b"\x00\xff", None]),
            "d": pyarrow.array([decimal.Decimal("1.50"), None]),
        }
    )
    expected = [
        {"id": 1, "v": [1, 2], "m": {"a": 1}, "s": {"x": 1}, "b": "0x00ff", "d": "1.50"},
        {"id": 2, "v": None, "m": None, "s": {"x": None}, "b": None, "d": None},
    ]
    assert listed(table) == expected
    assert listed(table.to_batches()[0]) == expected
    assert listed(pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())) == expected


def test_rows_become_a_frame_and_a_table():
    rows = [{"id": 1, "v": [1.0, 2.0]}, {"id": 2, "name": "b"}]
    frame = frames.to_pandas(rows)
    assert list(frame.columns) == ["id", "v", "name"] and frame["v"][0] == [1.0, 2.0]
    assert list(frames.to_pandas(rows, ["name", "id"]).columns) == ["name", "id"]
    table = frames.to_arrow(rows)
    assert table.to_pylist() == [{"id": 1, "v": [1.0, 2.0], "name": None}, {"id": 2, "v": None, "name": "b"}]
    schema = pyarrow.schema([("v", pyarrow.list_(pyarrow.float32())), ("id", pyarrow.int64())])
    assert frames.to_arrow(rows, schema=schema).schema == schema


def test_what_is_no_table_is_refused():
    for wrong, message in [
        ({"id": 1}, "unlike a dict"),
        (5, "unlike a int"),
        (pandas.Series([1]), "to_frame"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "names that differ"),
        (pyarrow.array([1]), "unlike a Int64Array"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            list(frames.rows_of(wrong))


def test_values_of_python_have_the_json_of_cql():
    of = uuid.UUID(int=5)
    row = {
        "a": MOMENT,
        "b": MOMENT.replace(tzinfo=None),
        "c": datetime.date(2026, 1, 2),
        "d": datetime.time(3, 4, 5, 6),
        "e": {of},
        "f": ipaddress.ip_address("::1"),
        "g": {1: {of: "x"}, False: [{2: "y"}]},
        "h": numpy.float32(0.5),
        "i": (1, 2),
        "j": bytearray(b"\x01"),
    }
    assert json.loads(_json.encode_row(row)) == {
        "a": "2026-01-02T03:04:05.678Z",
        "b": "2026-01-02T03:04:05.678Z",
        "c": "2026-01-02",
        "d": "03:04:05.000006",
        "e": [str(of)],
        "f": "::1",
        "g": {"1": {str(of): "x"}, "false": [{"2": "y"}]},
        "h": 0.5,
        "i": [1, 2],
        "j": "0x01",
    }
    with pytest.raises(TypeError, match="a timedelta has no type"):
        _json.encode_row({"a": datetime.timedelta(1)})
    with pytest.raises(TypeError, match="a object has no type"):
        _json.encode_row({"a": object()})


def test_values_in_addresses_are_plain_texts():
    values = [2, "a b", True, uuid.UUID(int=5), 1.5, b"\x01"]
    assert [_json.text_of(value) for value in values] == ["2", "a b", "true", str(uuid.UUID(int=5)), "1.5", "0x01"]
