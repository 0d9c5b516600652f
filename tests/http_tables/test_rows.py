"""Tests rows that are written over HTTP and read by CQL, and the other way round, for every type."""

import datetime
import decimal
import ipaddress
import json
import uuid

import pytest
from cassandra.util import Date, Duration, Time

TIME_UUID = uuid.UUID("f2bcd5a0-5e1f-11ee-8c99-0242ac120002")
# Type, JSON, and the value that the driver reads.
VALUES = [
    ("ascii", '"tea"', "tea"),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("blob", '"0x00ff"', b"\x00\xff"),
    ("boolean", "true", True),
    ("date", '"2026-01-02"', Date(datetime.date(2026, 1, 2))),
    ("decimal", "12345678901234567890.0123456789", decimal.Decimal("12345678901234567890.0123456789")),
    ("double", "0.1", 0.1),
    ("duration", '"1mo2d3s"', Duration(1, 2, 3_000_000_000)),
    ("float", "0.5", 0.5),
    ("inet", '"10.0.0.1"', "10.0.0.1"),
    ("int", "-7", -7),
    ("smallint", "-32768", -32768),
    ("text", '"grün \\"tea\\""', 'grün "tea"'),
    ("time", '"13:14:15.123456789"', Time("13:14:15.123456789")),
    ("timestamp", '"2026-01-02 03:04:05.678Z"', datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)),
    ("timeuuid", f'"{TIME_UUID}"', TIME_UUID),
    ("tinyint", "127", 127),
    ("uuid", '"123e4567-e89b-12d3-a456-426614174000"', uuid.UUID("123e4567-e89b-12d3-a456-426614174000")),
    ("varint", "123456789012345678901234567890", 123456789012345678901234567890),
    ("list<int>", "[1, 2, 2]", [1, 2, 2]),
    ("set<text>", '["a", "b"]', {"a", "b"}),
    ("map<text, int>", '{"a": 1}', {"a": 1}),
    ("frozen<list<text>>", '["a"]', ["a"]),
    ("tuple<int, text>", '[1, "a"]', (1, "a")),
    ("vector<float, 3>", "[1, 0.5, 0]", [1.0, 0.5, 0.0]),
    ("frozen<map<int, frozen<list<int>>>>", '{"1": [2]}', {1: [2]}),
]


@pytest.fixture(scope="module")
def keyspace(session):
    session.execute(
        "CREATE KEYSPACE rows_of_http WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    yield "rows_of_http"
    session.execute("DROP KEYSPACE rows_of_http")


@pytest.fixture(scope="module")
def typed(session, keyspace):
    """A table with a column of each type. Returns the path of its rows."""
    columns = ", ".join(f"c{at} {cql_type}" for at, (cql_type, _, _) in enumerate(VALUES))
    session.execute(f"CREATE TABLE {keyspace}.typed (id int PRIMARY KEY, {columns})")
    return f"/tables/{keyspace}/typed/rows"


def plain(value):
    """A value of the driver without types of its own."""
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    if value.__class__.__name__ in ("SortedSet",):
        return set(value)
    if value.__class__.__name__ in ("OrderedMapSerializedKey", "OrderedMap"):
        return {key: plain(one) for key, one in value.items()}
    return list(value) if isinstance(value, list) else value


def test_every_type_is_written_over_http_and_read_by_cql(session, api, keyspace, typed):
    fields = ", ".join(f'"c{at}": {json}' for at, (_, json, _) in enumerate(VALUES))
    body = f'{{"rows": [{{"id": 1, {fields}}}]}}'.encode()
    assert api.ok("PUT", typed, body) == {"written": 1}
    row = session.execute(f"SELECT * FROM {keyspace}.typed WHERE id = 1").one()
    for at, (cql_type, _, expected) in enumerate(VALUES):
        assert plain(getattr(row, f"c{at}")) == expected, cql_type


def test_the_row_of_a_get_is_that_of_select_json_and_can_be_put_again(session, api, keyspace, typed):
    fields = ", ".join(f'"c{at}": {json}' for at, (_, json, _) in enumerate(VALUES))
    api.ok("PUT", typed, f'{{"rows": [{{"id": 2, {fields}}}]}}'.encode())
    answer = api.ok("GET", f"{typed}?id=2")
    (text,) = session.execute(f"SELECT JSON * FROM {keyspace}.typed WHERE id = 2").one()
    assert answer["rows"] == [json.loads(text)]

    # Numbers beyond 64 bits do not survive a client that has none.
    def is_exact(value):
        return not isinstance(value, (int, float)) or abs(value) < 2**53

    row = {name: value for name, value in answer["rows"][0].items() if is_exact(value)}
    api.ok("PUT", typed, {"rows": [{**row, "id": 3}]})
    first, second = (session.execute(f"SELECT * FROM {keyspace}.typed WHERE id = {id}").one() for id in (2, 3))
    for name in row:
        if name != "id":
            assert getattr(first, name) == getattr(second, name), name


def test_columns_without_a_value_stay_and_null_deletes(session, api, keyspace, typed):
    api.ok("PUT", typed, {"rows": [{"id": 4, "c10": 1, "c12": "x"}]})
    api.ok("PUT", typed, {"rows": [{"id": 4, "c12": None}]})
    row = session.execute(f"SELECT c10, c12 FROM {keyspace}.typed WHERE id = 4").one()
    assert row == (1, None)


def test_a_wrong_row_is_named_and_nothing_is_written(session, api, keyspace, typed):
    for row, words in [
        ({"id": 6, "colr": 1}, "has no column colr"),
        ({"id": 6, "c10": "many"}, "c10"),
        ({"c10": 1}, "id of the primary key is missing"),
        ({"id": None}, "id of the primary key is missing"),
        ([6], "row 2"),
    ]:
        error = api.refused(400, "PUT", typed, {"rows": [{"id": 5}, row]})
        assert "row 2" in error and words in error, error
    assert session.execute(f"SELECT * FROM {keyspace}.typed WHERE id = 5").one() is None
    assert "unknown field `row`" in api.refused(400, "PUT", typed, {"row": []})
    assert "rows_of_http.typo" in api.refused(404, "PUT", typed.replace("typed", "typo"), {"rows": []})
    api.refused(400, "PUT", typed, b"{")


def test_if_not_exists_says_which_rows_are_new_and_a_ttl_ends_them(session, api, keyspace, typed):
    api.ok("PUT", typed, {"rows": [{"id": 7, "c10": 1}]})
    rows = [{"id": 7, "c10": 2}, {"id": 8, "c10": 2}]
    answer = api.ok("PUT", typed, {"rows": rows, "if_not_exists": True, "ttl": 500})
    assert answer == {"applied": [False, True]}
    ttl = f"SELECT c10, ttl(c10) FROM {keyspace}.typed WHERE id = %s"
    assert session.execute(ttl, [7]).one() == (1, None)
    value, left = session.execute(ttl, [8]).one()
    assert value == 2 and 400 < left <= 500


def test_of_rows_that_write_the_same_value_the_last_wins(session, api, keyspace):
    columns = "id int, n int, shared text STATIC, note text, PRIMARY KEY (id, n)"
    session.execute(f"CREATE TABLE {keyspace}.twice ({columns})")
    path = f"/tables/{keyspace}/twice/rows"
    for at in range(20):
        # Another key in between, and the same key in another form of JSON.
        notes = [{"id": at, "n": 1, "note": f"{n}"} for n in range(40)]
        notes.insert(7, {"n": 2, "id": at, "note": "other"})
        assert api.ok("PUT", path, {"rows": notes}) == {"written": 41}
        statics = [{"id": at, "n": n, "shared": f"{n}"} for n in range(40)]
        assert api.ok("PUT", path, {"rows": statics}) == {"written": 40}
        row = session.execute(f"SELECT note, shared FROM {keyspace}.twice WHERE id = {at} AND n = 1").one()
        assert row == ("39", "39")
    new = [{"id": 100, "n": 1, "note": f"{n}"} for n in range(3)]
    assert api.ok("PUT", path, {"rows": new, "if_not_exists": True}) == {"applied": [True, False, False]}


def test_keys_of_several_columns_name_rows(session, api, keyspace):
    columns = '"User" text, day date, n int, note text, PRIMARY KEY ("User", day, n)'
    session.execute(f"CREATE TABLE {keyspace}.visits ({columns})")
    path = f"/tables/{keyspace}/visits/rows"
    rows = [{'"User"': "a&b", "day": "2026-01-02", "n": n, "note": f"note {n}"} for n in range(5)]
    assert api.ok("PUT", path, {"rows": rows}) == {"written": 5}
    assert "in quotes" in api.refused(400, "PUT", path, {"rows": [{"User": "x", "day": "2026-01-02", "n": 1}]})
    assert api.ok("GET", f"{path}?User=a%26b&day=2026-01-02&n=3")["rows"] == [rows[3]]
    notes = api.ok("GET", f"{path}?User=a%26b&columns=n,note")["rows"]
    assert notes == [{"n": n, "note": f"note {n}"} for n in range(5)]
    page = api.ok("GET", f"{path}?User=a%26b&page_size=3")
    rest = api.ok("GET", f"{path}?User=a%26b&page_size=3&page_state={page['page_state']}")
    assert page["rows"] + rest["rows"] == rows and "page_state" not in rest
    assert api.ok("DELETE", f"{path}?User=a%26b&day=2026-01-02&n=3") == {"deleted": True}
    left = session.execute(f"SELECT n FROM {keyspace}.visits").all()
    assert [n for (n,) in left] == [0, 1, 2, 4]
    for method, query, words in [
        ("GET", "", "User is missing"),
        ("GET", "?day=2026-01-02", "without the columns before it"),
        ("GET", "?User=x&usr=y", "usr is not known"),
        ("GET", "?User=x&page_state=!", "page_state"),
        ("DELETE", "?User=x", "day is missing"),
    ]:
        assert words in api.refused(400, method, path + query)


def test_a_batch_writes_all_or_nothing(session, api, keyspace, typed):
    table = {"keyspace": keyspace, "table": "typed"}
    put = {"put": {**table, "row": {"id": 20, "c10": 1}}}
    delete = {"delete": {**table, "key": {"id": 21}}}
    api.ok("PUT", typed, {"rows": [{"id": 21}]})
    assert api.ok("POST", "/batch", {"operations": [put, delete]}) == {"written": 2}
    ids = f"SELECT id FROM {keyspace}.typed WHERE id IN (20, 21, 22)"
    assert [id for (id,) in session.execute(ids)] == [20]
    wrong = {"put": {**table, "row": {"id": 22, "c10": "x"}}}
    put = {"put": {**table, "row": {"id": 22}}}
    assert "operation 2: c10" in api.refused(400, "POST", "/batch", {"operations": [put, wrong]})
    assert [id for (id,) in session.execute(ids)] == [20]
