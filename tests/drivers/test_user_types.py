"""Tests of user types as drivers see them: registered classes, metadata, prepared statements, and a restart."""

import pytest
from cassandra import InvalidRequest
from conftest import connect
from server import Server


class Place:
    """A class of the user's own, whose attributes are fields."""

    def __init__(self, street=None, zip=None):
        self.street, self.zip = street, zip

    def __eq__(self, other):
        return (self.street, self.zip) == (other.street, other.zip)


@pytest.fixture
def types(session):
    session.execute("CREATE TYPE address (street text, zip int)")
    session.execute("CREATE TYPE person (name text, home frozen<address>, phones map<text, int>)")
    # The driver can't read the class name of a vector of a type whose name has digits alone in hexadecimal, as
    # `address` has.
    session.execute("CREATE TYPE phone (country int, number text)")
    session.execute(
        "CREATE TABLE t (k int PRIMARY KEY, a address, f frozen<address>, p frozen<person>, l list<frozen<address>>, "
        "s set<frozen<address>>, m map<frozen<address>, frozen<person>>, v vector<float, 2>, u vector<frozen<phone>, 2>, "
        "x tuple<int, frozen<address>>)"
    )
    return session


def test_values_are_bound_and_read(types):
    home = ("s", 1)
    person = ("ann", home, {"a": 1})
    row = (1, home, (None, 2), person, [home, ("t", None)], {("b", 1), ("a", 2)}, {home: person}, [1, 2], [(1, "a"), (2, None)])
    types.execute(types.prepare("INSERT INTO t (k, a, f, p, l, s, m, v, u, x) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (7, ?))"), [*row, home])
    read = types.execute("SELECT * FROM t").one()
    assert (read.a, read.f, read.p) == (home, (None, 2), person)
    assert read.a.street == "s" and read.p.home.zip == 1
    assert (list(read.l), sorted(read.s), dict(read.m)) == ([home, ("t", None)], [("a", 2), ("b", 1)], {home: person})
    assert (read.v, read.u, read.x) == ([1, 2], [(1, "a"), (2, None)], (7, home))


def test_a_registered_class_is_written_and_read(server, types):
    with connect(server) as cluster:
        session = cluster.connect(types.keyspace)
        cluster.register_user_type(types.keyspace, "address", Place)
        session.execute(session.prepare("INSERT INTO t (k, a, l) VALUES (1, ?, ?)"), (Place("s", 3), [Place("t")]))
        session.execute("INSERT INTO t (k, f) VALUES (2, %s)", (Place("x", 4),))
        rows = {row.k: row for row in session.execute("SELECT k, a, f, l FROM t")}
    assert rows[1].a == Place("s", 3) and list(rows[1].l) == [Place("t")]
    assert rows[2].f == Place("x", 4)


def test_single_fields_are_written_and_read(types):
    update = types.prepare("UPDATE t USING TIMESTAMP ? SET a.street = ? WHERE k = 1")
    types.execute(update, (100, "old"))
    types.execute("UPDATE t USING TIMESTAMP 200 SET a.zip = 5 WHERE k = 1")
    types.execute(update, (150, "new"))
    row = types.execute("SELECT a, a.zip AS z, writetime(a.street) AS w FROM t").one()
    assert (row.a, row.z, row.w) == (("new", 5), 5, 150)
    types.execute("DELETE a.street FROM t WHERE k = 1")
    assert types.execute("SELECT a FROM t").one().a == (None, 5)
    types.execute("UPDATE t SET a = {street: 'whole'} WHERE k = 1")
    assert types.execute("SELECT a FROM t").one().a == ("whole", None)


def test_values_are_keys(session):
    session.execute("CREATE TYPE version (major int, minor int)")
    session.execute("CREATE TABLE t (p frozen<version>, c frozen<version>, v int, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)")
    insert = session.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, ?)")
    for v, clustering in enumerate([(1, None), (1, 0), (None, 7), (2, -1)]):
        session.execute(insert, ((1, 2), clustering, v))
    in_order = [((2, -1), 3), ((1, 0), 1), ((1, None), 0), ((None, 7), 2)]
    assert [(row.c, row.v) for row in session.execute("SELECT c, v FROM t WHERE p = {major: 1, minor: 2}")] == in_order
    above = session.prepare("SELECT v FROM t WHERE p = ? AND c > ?")
    assert [row.v for row in session.execute(above, ((1, 2), (1, None)))] == [3, 1]
    with pytest.raises(InvalidRequest, match="being used in partition key by the following tables"):
        session.execute("ALTER TYPE version ADD patch int")


def test_clustering_keys_stay_where_they_are_when_their_type_grows(session):
    session.execute("CREATE TYPE version (major int, minor int)")
    session.execute("CREATE TABLE t (p int, c frozen<version>, d int, v int, PRIMARY KEY (p, c, d))")
    insert = session.prepare("INSERT INTO t (p, c, d, v) VALUES (0, ?, ?, ?)")
    for c in [(1, 1), (1, None), (2, 0)]:
        session.execute(insert, (c, 5, 1))
    session.execute("ALTER TYPE version ADD patch int")
    session.execute("INSERT INTO t (p, c, d, v) VALUES (0, {major: 1, minor: 1}, 5, 2)")
    session.execute("INSERT INTO t (p, c, d, v) VALUES (0, {major: 1, minor: 1, patch: -1}, 5, 3)")
    rows = session.execute("SELECT c.major, c.minor, c.patch, d, v FROM t")
    assert [tuple(row) for row in rows] == [(1, None, None, 5, 1), (1, 1, None, 5, 2), (1, 1, -1, 5, 3), (2, 0, None, 5, 1)]


def test_metadata_follows_the_types(cluster, types):
    known = cluster.metadata.keyspaces[types.keyspace].user_types
    assert known["address"].export_as_string() == (
        f"CREATE TYPE {types.keyspace}.address (\n    street text,\n    zip int\n);"
    )
    assert known["person"].field_types == ["text", "frozen<address>", "map<text, int>"]
    exported = cluster.metadata.keyspaces[types.keyspace].export_as_string()
    assert exported.index(".address (") < exported.index(".person (") < exported.index("CREATE TABLE")
    types.execute("ALTER TYPE address ADD \"Country\" text")
    assert cluster.metadata.keyspaces[types.keyspace].user_types["address"].field_names == ["street", "zip", "Country"]
    types.execute("CREATE TYPE other (a int)")
    assert "other" in cluster.metadata.keyspaces[types.keyspace].user_types
    types.execute("DROP TYPE other")
    assert "other" not in cluster.metadata.keyspaces[types.keyspace].user_types
    with pytest.raises(InvalidRequest, match="still used by user types person"):
        types.execute("DROP TYPE address")
    with pytest.raises(InvalidRequest, match="still used by tables t"):
        types.execute("DROP TYPE person")


def test_prepared_statements_follow_alter_type(types):
    insert = types.prepare("INSERT INTO t (k, a, f) VALUES (?, ?, ?)")
    read = types.prepare("SELECT a, f FROM t WHERE k = ?")
    types.execute(insert, (1, ("s", 1), ("s", 1)))
    assert types.execute(read, (1,)).one() == (("s", 1), ("s", 1))
    types.execute("ALTER TYPE address ADD country text")
    # A client that still has the old type writes values without the new field.
    types.execute(insert, (2, ("t", 2), ("t", 2)))
    types.execute("UPDATE t SET a.country = 'x' WHERE k = 2")
    assert types.execute(read, (1,)).one() == (("s", 1, None), ("s", 1, None))
    assert types.execute(read, (2,)).one() == (("t", 2, "x"), ("t", 2, None))
    again = types.prepare("INSERT INTO t (k, a, f) VALUES (?, ?, ?)")
    types.execute(again, (3, ("u", 3, "y"), ("u", 3, "y")))
    assert types.execute(read, (3,)).one() == (("u", 3, "y"), ("u", 3, "y"))


def test_descriptions_can_be_executed(types):
    keyspace = types.keyspace
    types.execute('CREATE TYPE "Odd" ("select" frozen<person>, "Name" list<int>)')
    assert [row.name for row in types.execute("DESCRIBE TYPES")] == ["address", '"Odd"', "person", "phone"]
    one = types.execute("DESCRIBE TYPE address").one()
    assert (one.type, one.create_statement) == ("type", f"CREATE TYPE {keyspace}.address (\n    street text,\n    zip int\n);")
    statements = [row.create_statement for row in types.execute(f"DESCRIBE KEYSPACE {keyspace}")]
    types.execute(f"DROP KEYSPACE {keyspace}")
    for statement in statements:
        types.execute(statement)
    assert [row.create_statement for row in types.execute(f"DESCRIBE KEYSPACE {keyspace}")] == statements


@pytest.mark.embedded("CDC logs are read as ScyllaDB lays them out")
def test_a_change_log_has_the_fields(session):
    session.execute("CREATE TYPE address (street text, zip int)")
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a address, f frozen<address>) WITH cdc = {'enabled': true, 'postimage': true}")
    session.execute("INSERT INTO t (k, a, f) VALUES (1, {street: 's', zip: 1}, {zip: 2})")
    session.execute("UPDATE t SET a.zip = 3 WHERE k = 1")
    session.execute("DELETE a.street FROM t WHERE k = 1")
    session.execute("ALTER TYPE address ADD country text")
    log = 'SELECT "cdc$operation" AS op, a, f, "cdc$deleted_elements_a" AS gone FROM t_scylla_cdc_log'
    rows = [(row.op, row.a, row.f, row.gone) for row in session.execute(log)]
    assert rows == [
        (2, ("s", 1, None), (None, 2, None), None),
        (9, ("s", 1, None), (None, 2, None), None),
        (1, (None, 3, None), None, None),
        (9, ("s", 3, None), (None, 2, None), None),
        (1, None, None, {0}),
        (9, (None, 3, None), (None, 2, None), None),
    ]


@pytest.mark.embedded("it is stopped and started")
def test_types_survive_a_restart(tmp_path):
    server = Server(tmp_path / "data").start()
    cluster = connect(server)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TYPE k.z (x int)")
    session.execute("CREATE TYPE k.a (z frozen<z>, l list<frozen<z>>)")
    session.execute("CREATE TABLE k.t (p frozen<a>, c frozen<z>, u z, v vector<float, 2>, PRIMARY KEY (p, c))")
    session.execute("INSERT INTO k.t (p, c, u) VALUES ({z: {x: 1}, l: [{x: 2}]}, {x: 3}, {x: 4})")
    server.kill()
    cluster.shutdown()

    server = Server(tmp_path / "data").start()
    cluster = connect(server)
    session = cluster.connect("k")
    try:
        assert session.execute("SELECT p, c, u FROM t WHERE p = {z: {x: 1}, l: [{x: 2}]}").one() == (((1,), [(2,)]), (3,), (4,))
        assert [row.name for row in session.execute("DESCRIBE TYPES")] == ["a", "z"]
    finally:
        cluster.shutdown()
        assert server.stop() == 0


@pytest.mark.embedded("the index is made by Annulus")
def test_user_types_lie_beside_vectors(types):
    types.execute("CREATE TABLE films (k int, c frozen<address>, a address, v vector<float, 2>, PRIMARY KEY (k, c))")
    with pytest.raises(InvalidRequest, match="Unsupported vector index filtering column a of type address"):
        types.execute("CREATE CUSTOM INDEX ON films (v, a) USING 'vector_index'")
    with pytest.raises(InvalidRequest, match=r"a primary key column of type frozen<address> \(column c\)"):
        types.execute("CREATE CUSTOM INDEX ON films (v) USING 'vector_index'")
    types.execute("CREATE TABLE shows (k int PRIMARY KEY, a address, f frozen<address>, v vector<float, 2>, n int)")
    types.execute("CREATE CUSTOM INDEX shows_v ON shows (v, n) USING 'vector_index'")
    types.execute("CREATE INDEX ON shows (f) USING 'sai'")
    insert = types.prepare("INSERT INTO shows (k, a, f, v, n) VALUES (?, ?, ?, ?, ?)")
    for k in range(4):
        types.execute(insert, (k, (f"a{k}", k), (f"f{k}", None), [1, k], k % 2))
    nearest = "SELECT k, a, f.street FROM shows WHERE n = 1 ORDER BY v ANN OF [1, 0] LIMIT 2"
    assert [tuple(row) for row in types.execute(nearest)] == [(1, ("a1", 1), "f1"), (3, ("a3", 3), "f3")]
    types.execute("ALTER TYPE address ADD country text")
    types.execute("UPDATE shows SET a.country = 'x', v = [1, 0] WHERE k = 3")
    assert [tuple(row) for row in types.execute(nearest)] == [(3, ("a3", 3, "x"), "f3"), (1, ("a1", 1, None), "f1")]
    one = "SELECT k FROM shows WHERE f = {street: 'f1'} ORDER BY v ANN OF [1, 0] LIMIT 2"
    assert [row.k for row in types.execute(one)] == [1]


def test_a_secondary_index_finds_whole_values(types):
    types.execute("CREATE INDEX ON t (f) USING 'sai'")
    types.execute("CREATE INDEX ON t (s) USING 'sai'")
    insert = types.prepare("INSERT INTO t (k, f, s) VALUES (?, ?, ?)")
    for k in range(6):
        types.execute(insert, (k, ("f", k % 2), {("s", k % 3)}))
    assert {row.k for row in types.execute("SELECT k FROM t WHERE f = {street: 'f', zip: 1}")} == {1, 3, 5}
    assert {row.k for row in types.execute("SELECT k FROM t WHERE s CONTAINS {street: 's', zip: 2}")} == {2, 5}


@pytest.mark.embedded("Cassandra's index finds none of the values from before the change of their type")
def test_a_secondary_index_finds_values_from_before_their_type_got_a_field(types):
    types.execute("CREATE INDEX ON t (f) USING 'sai'")
    insert = types.prepare("INSERT INTO t (k, f) VALUES (?, ?)")
    for k in range(6):
        types.execute(insert, (k, ("f", k % 2)))
    types.execute("ALTER TYPE address ADD country text")
    types.execute("UPDATE t SET f = {street: 'f', zip: 1, country: 'x'} WHERE k = 1")
    assert {row.k for row in types.execute("SELECT k FROM t WHERE f = {street: 'f', zip: 1}")} == {3, 5}
    assert {row.k for row in types.execute("SELECT k FROM t WHERE f = {street: 'f', zip: 1, country: 'x'}")} == {1}
