"""Tests that every type comes back as it was written, bound and as a literal."""

import datetime
import decimal
import uuid

import pytest
from cassandra.util import Date, Duration, Time

CASES = [
    ("ascii", "plain", "'plain'"),
    ("bigint", -(2**63), "-9223372036854775808"),
    ("blob", b"\x00\xff", "0x00ff"),
    ("boolean", True, "true"),
    ("date", Date(datetime.date(1969, 12, 31)), "'1969-12-31'"),
    ("decimal", decimal.Decimal("-1234567890123456789.0123456789"), "-1234567890123456789.0123456789"),
    ("double", 1e300, "1e300"),
    ("duration", Duration(14, 3, 5_000_000_000), "1y2mo3d5s"),
    ("float", 0.5, "0.5"),
    ("inet", "2001:db8::1", "'2001:db8::1'"),
    ("int", -(2**31), "-2147483648"),
    ("smallint", -7, "-7"),
    ("text", "naïve 鳥", "'naïve 鳥'"),
    ("time", Time("13:14:15.123456789"), "'13:14:15.123456789'"),
    ("timestamp", datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000), "'2026-01-02T03:04:05.678Z'"),
    ("timeuuid", uuid.UUID("8e14e760-7fa8-11eb-bc66-000000000001"), "8e14e760-7fa8-11eb-bc66-000000000001"),
    ("tinyint", -128, "-128"),
    ("uuid", uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    ("varint", -(10**40), str(-(10**40))),
    ("list<int>", [3, 1, 3], "[3, 1, 3]"),
    ("set<text>", {"a", "b"}, "{'b', 'a', 'b'}"),
    ("map<int, text>", {1: "x", 2: "y"}, "{2: 'y', 1: 'x'}"),
    ("frozen<list<int>>", [3, 1, 3], "[3, 1, 3]"),
    ("frozen<map<text, frozen<list<int>>>>", {"k": [1]}, "{'k': [1]}"),
    ("vector<float, 4>", [0.5, -1.0, 0.0, 2.0], "[0.5, -1, 0, 2]"),
]


@pytest.mark.parametrize("cql_type, value, literal", CASES, ids=[case[0] for case in CASES])
def test_round_trip(session, cql_type, value, literal):
    session.execute(f"CREATE TABLE t (k int PRIMARY KEY, c {cql_type})")
    session.execute(session.prepare("INSERT INTO t (k, c) VALUES (1, ?)"), (value,))
    session.execute(f"INSERT INTO t (k, c) VALUES (2, {literal})")
    rows = {row.k: row.c for row in session.execute("SELECT k, c FROM t")}

    def plain(read):
        return type(value)(read) if isinstance(value, (list, set, dict)) else read

    assert plain(rows[1]) == value
    assert plain(rows[2]) == value


KEYS = [case for case in CASES if "<" not in case[0] and case[0] != "duration"]


@pytest.mark.parametrize("cql_type, value, literal", KEYS, ids=[case[0] for case in KEYS])
def test_as_keys(session, cql_type, value, literal):
    session.execute(f"CREATE TABLE t (p {cql_type}, c {cql_type}, v int, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)")
    insert = session.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, 1)")
    session.execute(insert, (value, value))
    by_value = session.prepare("SELECT c FROM t WHERE p = ? AND c = ?")
    assert [row.c for row in session.execute(by_value, (value, value))] == [value]
    assert [row.c for row in session.execute(f"SELECT c FROM t WHERE p = {literal} AND c >= {literal}")] == [value]
