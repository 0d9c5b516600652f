"""Tests COPY TO and COPY FROM of cqlsh: every value that went out to a file comes in again.

COPY_ROWS is the number of rows (1,000): `make test-cqlsh-all` copies 100,000."""

import csv
import datetime
import decimal
import os
import uuid

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import dict_factory
from cassandra.util import Date, Time
from shell import cqlsh

ROWS = int(os.environ.get("COPY_ROWS", "1000"))
# COPY shares its rows out to processes of its own.
SECONDS = 120 + ROWS // 100

COLUMNS = {
    "k": "int",
    "c": "timeuuid",
    "a": "ascii",
    "big": "bigint",
    "bytes": "blob",
    "flag": "boolean",
    "day": "date",
    "number": "decimal",
    "d": "double",
    "f": "float",
    "address": "inet",
    "n": "int",
    "s": "smallint",
    "t": "text",
    "at_time": "time",
    "at": "timestamp",
    "tiny": "tinyint",
    "u": "uuid",
    "large": "varint",
    "l": "list<text>",
    "numbers": "set<int>",
    "m": "map<text, frozen<list<int>>>",
    "pair": "tuple<int, text>",
    "p": "frozen<place>",
    "v": "vector<float, 3>",
}
KEY = ("k", "c")
# No new lines and no backslashes: cqlsh writes them with a backslash more, and leaves it in what it
# reads.
TEXTS = ["", "plain", "a, b", "it's \"quoted\"", "é 鳥 😀", "{'like': 'a map'}", "null"]
# A null has a sign of its own, so that it isn't taken for an empty text.
OPTIONS = "WITH HEADER = true AND NULL = '<none>' AND FLOATPRECISION = 9 AND DOUBLEPRECISION = 17"


def value(column, n):
    """The value of a column in the row `n`."""
    sign = -1 if n % 2 else 1
    text = TEXTS[n % len(TEXTS)]
    return {
        "a": f"ascii {n}",
        "big": sign * (2**63 - 1 - n),
        "bytes": bytes([n % 256, 0, 255]) * (n % 5),
        "flag": n % 3 == 0,
        "day": Date(sign * n),
        "number": decimal.Decimal(sign * n).scaleb(-3),
        "d": sign * n / 7,
        "f": sign * n / 8,
        "address": f"10.0.{n // 250 % 250}.{n % 250}" if n % 2 else f"2001:db8::{n >> 8:x}:{n & 255:x}",
        "n": sign * (2**31 - 1 - n),
        "s": sign * (n % 32768),
        "t": text,
        "at_time": Time(n * 1_000_003),
        # cqlsh reads the parts of a second as a float: eighths stay as they are.
        "at": datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=sign * n * 86_400_125 % 10**12),
        "tiny": sign * (n % 128),
        "u": uuid.UUID(int=n),
        "large": sign * 10**30 * n,
        "l": [text, f"{n}"],
        "numbers": {n, -n, 7},
        "m": {text: [n], f"{n}": []},
        "pair": (n, text),
        "p": (text, n),
        "v": [n / 4, -1.5, 0.0],
    }[column]


def row(n):
    """The row `n`. Some of its columns are null, others in each row."""
    key = (n % 100, uuid.UUID(fields=(n, 0, 0x1000, 0x80, 0, 1)))
    rest = [None if (n + at) % 11 == 0 else value(column, n) for at, column in enumerate(COLUMNS) if column not in KEY]
    return (*key, *rest)


@pytest.fixture(scope="module")
def session(server):
    profile = ExecutionProfile(row_factory=dict_factory, request_timeout=60)
    with Cluster([server.host], port=server.cql_port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE copying WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.set_keyspace("copying")
        session.execute("CREATE TYPE place (street text, number int)")
        columns = ", ".join(f"{name} {cql}" for name, cql in COLUMNS.items())
        for table in ("original", "copied"):
            session.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY (k, c))")
        yield session
        session.execute("DROP KEYSPACE copying")


def rows_of(session, table):
    return {tuple(row[name] for name in KEY): row for row in session.execute(f"SELECT * FROM {table}")}


def test_what_goes_out_comes_in_again(server, session, tmp_path):
    names = ", ".join(COLUMNS)
    insert = session.prepare(f"INSERT INTO original ({names}) VALUES ({', '.join('?' * len(COLUMNS))})")
    written = execute_concurrent_with_args(session, insert, (row(n) for n in range(ROWS)), concurrency=50)
    assert all(success for success, _ in written)

    file = tmp_path / "rows.csv"
    code, text, errors = cqlsh(server, f"COPY copying.original ({names}) TO '{file}' {OPTIONS}", seconds=SECONDS)
    assert (code, errors) == (0, ""), text
    assert f"{ROWS} rows exported" in text
    with open(file, newline="") as lines:
        header, *records = csv.reader(lines)
    assert header == list(COLUMNS) and len(records) == ROWS
    assert sum(cell == "<none>" for record in records for cell in record) >= ROWS

    code, text, errors = cqlsh(server, f"COPY copying.copied ({names}) FROM '{file}' {OPTIONS}", seconds=SECONDS)
    assert (code, errors) == (0, ""), text
    assert f"{ROWS} rows imported" in text
    original, copied = rows_of(session, "original"), rows_of(session, "copied")
    assert len(original) == len(copied) == ROWS
    for key, expected in original.items():
        found = copied[key]
        assert not [(name, expected[name], found[name]) for name in COLUMNS if expected[name] != found[name]], key


def test_rows_that_do_not_fit_are_named(server, session, tmp_path):
    session.execute("CREATE TABLE narrow (k int PRIMARY KEY, n int)")
    file = tmp_path / "bad.csv"
    file.write_text("1,10\n2,no number\n3,30\n")
    options = f"WITH ERRFILE = '{tmp_path / 'errors.csv'}'"
    code, text, errors = cqlsh(server, f"COPY copying.narrow (k, n) FROM '{file}' {options}", seconds=SECONDS)
    assert "no number" in (tmp_path / "errors.csv").read_text(), text + errors
    assert {row["k"] for row in session.execute("SELECT k FROM narrow")} == {1, 3}
