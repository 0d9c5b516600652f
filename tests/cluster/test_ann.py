"""Tests ANN OF through a gateway: neighbours come from an index service, rows from Cassandra as
they are now."""

import random

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ReadFailure, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException
from cassandra.query import SimpleStatement
from clients import client_of_one
from server import eventually

ROWS = 60
PAGING = "Paging is not supported for Vector Search queries. The entire result set has been returned."
NEAREST = "SELECT id, name FROM films ORDER BY v ANN OF ? LIMIT ?"


def vector(number):
    """The vector of a row. Directions lie almost in a plane, so that the neighbours are known: the
    rows with the nearest numbers."""
    numbers = random.Random(number)
    return [float(number), 40.0, numbers.random() / 1000]


@pytest.fixture(scope="module", params=[False, "lz4"], ids=["plain", "lz4"])
def session(request, gateways):
    with client_of_one(gateways[0].address, ConsistencyLevel.ONE, compression=request.param) as cluster:
        yield cluster.connect()


@pytest.fixture(scope="module")
def films(session, store):
    session.execute("DROP KEYSPACE IF EXISTS shop")
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("USE shop")
    session.execute("CREATE TABLE films (id int PRIMARY KEY, name text, v vector<float, 3>)")
    insert = session.prepare("INSERT INTO films (id, name, v) VALUES (?, ?, ?)")
    for number in range(ROWS):
        session.execute(insert, (number, f"film {number}", vector(number)))
    index(session, store, "films", "films_v", "'similarity_function': 'euclidean'", ROWS)
    return session


def index(session, store, table, name, options, rows):
    session.execute(f"CREATE CUSTOM INDEX {name} ON {table}(v) USING 'vector_index' WITH OPTIONS = {{{options}}}")
    eventually(lambda: store.serves("shop", name, rows), seconds=120)


def ids(rows):
    return [row.id for row in rows]


def test_an_index_is_searched_as_soon_as_it_is_created(session, store):
    session.execute("DROP KEYSPACE IF EXISTS fresh")
    session.execute("CREATE KEYSPACE fresh WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for number in range(5):
        table = f"fresh.t{number}"
        session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v vector<float, 2>)")
        session.execute(f"INSERT INTO {table} (id, v) VALUES ({number}, [1, 2])")
        session.execute(f"CREATE CUSTOM INDEX near{number} ON {table}(v) USING 'vector_index'")
        assert ids(session.execute(f"SELECT id FROM {table} ORDER BY v ANN OF [1, 2] LIMIT 1")) == [number]
    session.execute("DROP KEYSPACE fresh")


def test_neighbours_come_in_order_prepared_or_not(films):
    prepared = films.prepare(NEAREST)
    assert [spec.name for spec in prepared.column_metadata] == ["v", "[limit]"]
    for wanted in (7, 30):
        expected = sorted(range(ROWS), key=lambda number: abs(number - wanted))[:5]
        rows = films.execute(prepared, (vector(wanted), 5)).all()
        assert set(ids(rows)) == set(expected) and ids(rows)[0] == wanted
        assert rows[0].name == f"film {wanted}"
        text = f"SELECT id, name FROM shop.films ORDER BY v ANN OF {vector(wanted)} LIMIT 5"
        assert films.execute(text).all() == rows
        bound = SimpleStatement("SELECT id, name FROM films ORDER BY ANN(v, %s) LIMIT %s")
        assert films.execute(bound, (vector(wanted), 5)).all() == rows


def test_any_selection(films):
    one = films.execute(f"SELECT * FROM films ORDER BY v ANN OF {vector(3)} LIMIT 1").one()
    assert one._fields == ("id", "name", "v") and one.name == "film 3"
    select = films.prepare(
        "SELECT name AS id, similarity_euclidean(v, ?) AS score, v FROM films ORDER BY v ANN OF ? LIMIT 2"
    )
    rows = films.execute(select, (vector(9), vector(9))).all()
    assert rows[0]._fields == ("id", "score", "v")
    assert (rows[0].id, rows[0].score) == ("film 9", 1.0)
    named = films.prepare("SELECT id FROM films ORDER BY v ANN OF :query LIMIT :rows")
    assert ids(films.execute(named, {"query": vector(4), "rows": 1})) == [4]


def test_what_cannot_be_asked(films):
    prepared = films.prepare(NEAREST)
    for values, named in [
        (([1.0] * 2, 5), "expected|dimension"),
        ((None, 5), "Unsupported null value for column v"),
        ((vector(1), 1001), "requires a LIMIT that is not greater than 1000. LIMIT was 1001"),
        ((vector(1), 0), "LIMIT must be strictly positive"),
        (([float("nan"), 0.0, 0.0], 5), "must be finite numbers"),
    ]:
        with pytest.raises((InvalidRequest, ValueError, TypeError), match=named):
            films.execute(prepared, values)
    for text, named in [
        ("ORDER BY v ANN OF [1, 2] LIMIT 3", "All arguments must have the same vector dimensions"),
        ("ORDER BY v ANN OF [1, 2, 3]", "Vector ANN queries must have a limit specified"),
        ("PER PARTITION LIMIT 1 LIMIT 3", None),
        ("ORDER BY v ANN OF [1, 2, 3] PER PARTITION LIMIT 1 LIMIT 3", "do not support per-partition limits"),
        ("ORDER BY v ANN OF [1, 2, 3] DESC LIMIT 3", "Descending ANN ordering is not supported"),
        ("WHERE name = 'film 7' ORDER BY v ANN OF [1, 2, 3] LIMIT 3 ALLOW FILTERING", None),
        ("WHERE name = 'film 7' ORDER BY v ANN OF [1, 2, 3] LIMIT 3", "ALLOW FILTERING"),
    ]:
        if named:
            with pytest.raises(InvalidRequest, match=named):
                films.execute(f"SELECT id FROM films {text}")
        else:
            films.execute(f"SELECT id FROM films {text}")
    with pytest.raises(InvalidRequest, match="cannot be run with aggregation"):
        films.execute(f"SELECT count(*) FROM films ORDER BY v ANN OF {vector(1)} LIMIT 3")
    with pytest.raises(SyntaxException):
        films.execute("SELECT id FROM films ORDER BY v ANN IN [1, 2, 3] LIMIT 3")
    with pytest.raises(InvalidRequest, match="(?i)undefined column name"):
        films.execute(f"SELECT nothing FROM films ORDER BY v ANN OF {vector(1)} LIMIT 3")


def test_rows_are_as_they_are_now(films):
    # The gateway sees whether a row still has its vector only if the vector is read.
    prepared = films.prepare("SELECT id, name, v FROM films ORDER BY v ANN OF ? LIMIT ?")
    films.execute("DELETE FROM films WHERE id = 20")
    films.execute("UPDATE films SET v = null WHERE id = 21")
    films.execute("UPDATE films SET name = 'new' WHERE id = 22")
    rows = films.execute(prepared, (vector(21), 7)).all()
    assert not {20, 21} & set(ids(rows))
    assert 20 not in ids(films.execute(films.prepare(NEAREST), (vector(20), 7)))
    assert [row.name for row in rows if row.id == 22] == ["new"]
    for number in (20, 21, 22):
        films.execute("INSERT INTO films (id, name, v) VALUES (%s, %s, %s)", (number, f"film {number}", vector(number)))


def test_pages_warnings_and_traces(films):
    prepared = films.prepare(NEAREST)
    prepared.fetch_size = 3
    result = films.execute(prepared, (vector(5), 8), trace=True)
    assert len(result.all()) == 8 and not result.has_more_pages
    # Another warning may say that the answer lacks the writes of a moment ago.
    assert PAGING in result.response_future.warnings
    trace = result.get_query_trace()
    assert trace.events
    prepared.fetch_size = 8
    assert PAGING not in (films.execute(prepared, (vector(5), 8)).response_future.warnings or [])


def test_the_consistency_is_the_callers(films, nodes):
    prepared = films.prepare(NEAREST)
    prepared.consistency_level = ConsistencyLevel.THREE
    # The driver tries all hosts that it knows, which is only one.
    with pytest.raises(NoHostAvailable) as error:
        films.execute(prepared, (vector(5), 3))
    [answer] = error.value.errors.values()
    assert isinstance(answer, Unavailable) and answer.required_replicas == 3
    prepared.consistency_level = ConsistencyLevel.ALL
    assert len(films.execute(prepared, (vector(5), 3)).all()) == 3


def test_tables_with_wider_keys(films, store):
    films.execute("CREATE TABLE parts (a text, b int, c int, d text, v vector<float, 3>, PRIMARY KEY ((a, b), c, d))")
    insert = films.prepare("INSERT INTO parts (a, b, c, d, v) VALUES (?, ?, ?, ?, ?)")
    keys = [(f"a{number % 3}", number % 2, number // 6, f"d{number}") for number in range(36)]
    for number, key in enumerate(keys):
        films.execute(insert, (*key, vector(number)))
    index(films, store, "parts", "parts_v", "'similarity_function': 'euclidean'", 36)
    select = films.prepare("SELECT d FROM parts ORDER BY v ANN OF ? LIMIT ?")
    rows = films.execute(select, (vector(17), 36)).all()
    order = [int(row.d[1:]) for row in rows]
    assert order[0] == 17 and sorted(order) == list(range(36))
    assert all(abs(order[at] - 17) <= abs(order[at + 1] - 17) for at in range(35))


def test_an_index_that_comes_and_goes(films, store):
    films.execute("CREATE TABLE others (id int PRIMARY KEY, v vector<float, 3>)")
    text = "SELECT id FROM others ORDER BY v ANN OF [1, 2, 3] LIMIT 3"
    with pytest.raises(InvalidRequest, match="(?i)requires the column to be indexed"):
        films.execute(text)
    for number in range(5):
        films.execute("INSERT INTO others (id, v) VALUES (%s, %s)", (number, vector(number)))
    index(films, store, "others", "others_v", "", 5)
    prepared = films.prepare("SELECT id FROM others ORDER BY v ANN OF ? LIMIT 3")
    assert len(films.execute(prepared, (vector(1),)).all()) == 3
    films.execute("ALTER TABLE others ADD name text")
    assert len(films.execute(prepared, (vector(1),)).all()) == 3
    films.execute("DROP INDEX others_v")
    with pytest.raises(InvalidRequest, match="(?i)requires the column to be indexed"):
        films.execute(prepared, (vector(1),))
    # Cassandra answers queries that use its own index on such a column.
    films.execute("CREATE CUSTOM INDEX others_sai ON others(v) USING 'StorageAttachedIndex'")
    eventually(lambda: answered_by_cassandra(films, text), seconds=60)


def answered_by_cassandra(session, text):
    try:
        return len(session.execute(text).all()) == 3
    except ReadFailure:
        return False  # Cassandra still builds its index


def test_searches_hold_nothing_up(films):
    prepared = films.prepare(NEAREST)
    read = films.prepare("SELECT name FROM films WHERE id = ?")
    futures = []
    for number in range(300):
        futures.append((number, films.execute_async(prepared, (vector(number % ROWS), 10))))
        futures.append((number, films.execute_async(read, (number % ROWS,))))
    for number, future in futures:
        rows = future.result().all()
        assert len(rows) in (1, 10) and f"film {number % ROWS}" in [row.name for row in rows]
