"""Tests the functions of CQL that are supported: time, blobs, casts, tokens, similarity."""

import datetime
import math
import pathlib
import time
import uuid

import pytest
from cassandra import InvalidRequest
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import OverloadedErrorMessage
from cassandra.query import SimpleStatement

UTC_2026 = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000)


@pytest.fixture(scope="module")
def table(shared_session):
    session = shared_session
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, u timeuuid, at timestamp, d date, i int, x text, n text, "
        "v vector<float, 2>, w vector<float, 2>, long vector<float, 3>)"
    )
    session.execute(
        "INSERT INTO t (k, u, at, d, i, x, v, w, long) VALUES (1, minTimeuuid('2026-01-02T03:04:05.678Z'), "
        "'2026-01-02T03:04:05.678Z', '2026-01-02', 300, 'abc', [3, 4], [4, 3], [1, 2, 3])"
    )
    return session


def compute(session, expression):
    return session.execute(f"SELECT {expression} AS x FROM t WHERE k = 1").one().x


def test_now_makes_a_new_timeuuid_of_the_present_each_time(table):
    for k in range(2, 12):
        table.execute("INSERT INTO t (k, u) VALUES (%s, now())", (k,))
    made = {row.u for row in table.execute("SELECT k, u FROM t") if row.k > 1}
    assert len(made) == 10 and all(u.version == 1 for u in made)
    assert all(abs((u.time - 0x01B21DD213814000) / 1e7 - time.time()) < 60 for u in made)


def test_min_and_max_timeuuid_enclose_the_timeuuids_of_a_moment(session):
    session.execute("CREATE TABLE log (p int, u timeuuid, PRIMARY KEY (p, u))")
    for second in range(5):
        session.execute("INSERT INTO log (p, u) VALUES (1, minTimeuuid(%s))", (f"2026-01-02 00:00:0{second}+0000",))
        session.execute("INSERT INTO log (p, u) VALUES (1, maxTimeuuid(%s))", (f"2026-01-02 00:00:0{second}+0000",))
    rows = session.execute(
        "SELECT toTimestamp(u) AS at FROM log WHERE p = 1 "
        "AND u >= minTimeuuid('2026-01-02 00:00:01+0000') AND u < minTimeuuid('2026-01-02 00:00:03+0000')"
    )
    assert [row.at.second for row in rows] == [1, 1, 2, 2]
    select = session.prepare("SELECT u FROM log WHERE p = 1 AND u > maxTimeuuid(?)")
    assert len(list(session.execute(select, (datetime.datetime(2026, 1, 2, 0, 0, 3),)))) == 2


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("toTimestamp(u)", UTC_2026),
        ("to_timestamp(u)", UTC_2026),
        ("toTimestamp(d)", datetime.datetime(2026, 1, 2)),
        ("toUnixTimestamp(u)", 1_767_323_045_678),
        ("to_unix_timestamp(at)", 1_767_323_045_678),
        ("textAsBlob(x)", b"abc"),
        ("text_as_blob(x)", b"abc"),
        ("blobAsText(textAsBlob(x))", "abc"),
        ("intAsBlob(i)", b"\x00\x00\x01\x2c"),
        ("blob_as_int(0x0000012c)", 300),
        ("cast(i AS text)", "300"),
        ("cast(i AS bigint)", 300),
        ("cast(i AS double)", 300.0),
        ("textAsBlob(n)", None),
        ("(int) 5", 5),
    ],
)
def test_values(table, expression, expected):
    assert compute(table, expression) == expected


def test_dates(table):
    assert str(compute(table, "toDate(u)")) == "2026-01-02"
    assert str(compute(table, "to_date(at)")) == "2026-01-02"


def test_uuid_is_random(table):
    made = {compute(table, "uuid()") for _ in range(5)}
    assert len(made) == 5 and all(isinstance(u, uuid.UUID) and u.version == 4 for u in made)


def test_the_present(table):
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert abs((compute(table, "currentTimestamp()") - now).total_seconds()) < 60
    assert compute(table, "currentTimeUUID()").version == 1


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("similarity_cosine(v, w)", (1 + 24 / 25) / 2),
        ("similarity_euclidean(v, w)", 1 / (1 + 2)),
        ("similarity_dot_product(v, w)", (1 + 24) / 2),
        ("similarity_cosine(v, [3, 4])", 1),
        ("similarity_cosine([-3, -4], v)", 0),
        ("similarity_euclidean(v, v)", 1),
    ],
)
def test_similarity(table, expression, expected):
    assert math.isclose(compute(table, expression), expected, abs_tol=1e-6)
    bound = table.prepare("SELECT similarity_cosine(v, ?) AS x FROM t WHERE k = 1")
    assert math.isclose(table.execute(bound, ([4, 3],)).one().x, (1 + 24 / 25) / 2, abs_tol=1e-6)


@pytest.mark.parametrize(
    "expression",
    [
        "similarity_cosine(v)",
        "similarity_cosine(v, w, w)",
        "similarity_cosine(v, long)",
        "similarity_cosine(v, [1, 2, 3])",
        "similarity_cosine(v, i)",
        "similarity_cosine(v, 'abc')",
        "minTimeuuid(i)",
        "toDate(i)",
        "textAsBlob(i)",
        "blobAsInt(0x01)",
        "cast(v AS int)",
        "nothing_of_the_sort(i)",
    ],
)
def test_arguments_that_do_not_fit_are_refused(table, expression):
    with pytest.raises(InvalidRequest):
        compute(table, expression)


def peak_kib(server):
    """The most memory that the server's process has held."""
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


@pytest.mark.embedded("the bounds are its own, and its process is looked at")
def test_the_text_of_json_is_refused_before_there_is_memory_for_it(server, session):
    session.execute("CREATE TABLE j (k int PRIMARY KEY, x text)")
    session.execute("INSERT INTO j (k, x) VALUES (1, %s)", ('"' * 2**20,))
    before = peak_kib(server)
    # Each call doubles the quotes and the backslashes of the one in it.
    nested = "to_json(" * 45 + "x" + ")" * 45
    with pytest.raises(InvalidRequest, match="a JSON text has 16777216 bytes at most"):
        session.execute(f"SELECT {nested} FROM j WHERE k = 1")
    # Whole, the text of this row would take 2 GiB.
    often = ", ".join(["x"] * 1000)
    wide = SimpleStatement(f"SELECT JSON {often} FROM j WHERE k = 1", retry_policy=FallthroughRetryPolicy())
    with pytest.raises((InvalidRequest, OverloadedErrorMessage), match="larger than 256 MiB|no memory for more"):
        session.execute(wide)
    assert peak_kib(server) - before < 700 << 10
    row = session.execute("SELECT JSON k, x FROM j WHERE k = 1").one()
    assert len(row[0]) == len('{"k": 1, "x": ""}') + 2 * 2**20
