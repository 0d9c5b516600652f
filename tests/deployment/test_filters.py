"""Tests WHERE beside `ANN OF` through a gateway: each form, as text and prepared, is compared with
what a search of all rows gives."""

import random

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import SimpleStatement
from clients import client_of_all, client_of_one
from gateways import NETWORK, answered_without_rows
from ring import free_port
from server import eventually
from stores import GatewayWithStore

# No other test has a gateway on this address.
HOST = f"{NETWORK}.10"
PARTITIONS, ROWS_OF_EACH = 12, 25
# At the first the index answers alone where it can, at the second the rows are read.
ONE, QUORUM = LEVELS = ConsistencyLevel.LOCAL_ONE, ConsistencyLevel.QUORUM
COLOURS = ["red", "green", "blue"]


class Item:
    """A row of the table."""

    def __init__(self, chance, p, number):
        self.p, self.c, self.d = p, number // 5, "abcde"[number % 5]
        self.s = f"s{p % 3}"
        self.colour, self.price = chance.choice(COLOURS), chance.randrange(100)
        self.tags = set(chance.sample(["new", "old", "big"], chance.randrange(3)))
        self.sizes = {name: chance.randrange(3) for name in chance.sample(["w", "h"], chance.randrange(3))}
        self.own, self.plain = chance.randrange(5), chance.randrange(5)
        self.v = [chance.uniform(-1, 1) for _ in range(3)]

    @property
    def key(self):
        return self.p, self.c, self.d

    def distance(self, vector):
        return sum((a - b) ** 2 for a, b in zip(self.v, vector))


# Each form: its text with literals, its text with markers, the values, and the rows that satisfy it.
FREE = [
    ("p = 3", "p = ?", [3], lambda r: r.p == 3),
    ("p IN (1, 2, 77)", "p IN ?", [[1, 2, 77]], lambda r: r.p in (1, 2)),
    ("p = 3 AND c > 1", "p = ? AND c > ?", [3, 1], lambda r: r.p == 3 and r.c > 1),
    ("c = 2", "c = ?", [2], lambda r: r.c == 2),
    ("d = 'b'", "d = ?", ["b"], lambda r: r.d == "b"),
    ("(c, d) > (1, 'c')", "(c, d) > (?, ?)", [1, "c"], lambda r: (r.c, r.d) > (1, "c")),
    ("(c, d) IN ((1, 'c'), (4, 'e'))", "(c, d) IN ((?, ?), (?, ?))", [1, "c", 4, "e"], lambda r: (r.c, r.d) in ((1, "c"), (4, "e"))),
    ("s = 's1'", "s = ?", ["s1"], lambda r: r.s == "s1"),
    ("colour = 'red'", "colour = ?", ["red"], lambda r: r.colour == "red"),
    ("colour IN ('red', 'blue')", "colour IN ?", [["red", "blue"]], lambda r: r.colour in ("red", "blue")),
    ("price >= 10 AND price < 40", "price >= ? AND price < ?", [10, 40], lambda r: 10 <= r.price < 40),
    ("tags CONTAINS 'new'", "tags CONTAINS ?", ["new"], lambda r: "new" in r.tags),
    ("sizes CONTAINS KEY 'w'", "sizes CONTAINS KEY ?", ["w"], lambda r: "w" in r.sizes),
    ("sizes CONTAINS 2", "sizes CONTAINS ?", [2], lambda r: 2 in r.sizes.values()),
    ("sizes['w'] = 1", "sizes[?] = ?", ["w", 1], lambda r: r.sizes.get("w") == 1),
    ("colour = 'red' AND price < 30 AND p IN (1, 2, 3)", "colour = ? AND price < ? AND p IN ?", ["red", 30, [1, 2, 3]],
     lambda r: r.colour == "red" and r.price < 30 and r.p in (1, 2, 3)),
    ("own = 2", "own = ?", [2], lambda r: r.own == 2),
    ("colour = 'nothing'", "colour = ?", ["nothing"], lambda r: False),
]
ALLOWED = [
    ("plain = 1", "plain = ?", [1], lambda r: r.plain == 1),
    ("plain > 2 AND colour = 'red'", "plain > ? AND colour = ?", [2, "red"], lambda r: r.plain > 2 and r.colour == "red"),
    ("plain = 9", "plain = ?", [9], lambda r: False),
]


class Items:
    """The table behind a gateway, and its rows."""

    def __init__(self, session, gateway, metrics):
        self.session, self.gateway, self.metrics = session, gateway, metrics
        chance = random.Random(33)
        self.rows = [Item(chance, p, number) for p in range(PARTITIONS) for number in range(ROWS_OF_EACH)]
        self.vector = [0.1, 0.2, -0.3]
        insert = session.prepare(
            "INSERT INTO filters.items (p, c, d, s, colour, price, tags, sizes, own, plain, v) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        for r in self.rows:
            session.execute(insert, (*r.key, r.s, r.colour, r.price, r.tags, r.sizes, r.own, r.plain, r.v))

    def nearest(self, satisfies, k):
        """The keys that the answer must have, in its order."""
        rows = sorted(filter(satisfies, self.rows), key=lambda r: r.distance(self.vector))
        return [r.key for r in rows[:k]]

    def by_text(self, where, k, allow="", level=ONE):
        text = f"SELECT p, c, d FROM filters.items WHERE {where} ORDER BY v ANN OF {self.vector} LIMIT {k} {allow}"
        return [tuple(row) for row in self.session.execute(SimpleStatement(text, consistency_level=level))]

    def prepared(self, where, values, k, allow="", level=ONE):
        text = f"SELECT p, c, d FROM filters.items WHERE {where} ORDER BY v ANN OF ? LIMIT ? {allow}"
        bound = self.session.prepare(text).bind([*values, self.vector, k])
        bound.consistency_level = level
        return [tuple(row) for row in self.session.execute(bound)]

    def answered_without_rows(self):
        """The number of queries that the gateway has answered without rows."""
        return answered_without_rows(self.metrics)

    def is_kept(self, column, value):
        """Whether the index service can search by a column."""
        restriction = {"type": "==", "lhs": column, "rhs": value}
        search = {"vector": self.vector, "limit": 1, "filter": {"restrictions": [restriction], "allow_filtering": True}}
        status, _ = self.gateway.http("/api/v1/indexes/filters/near/ann", search)
        return status == 200


@pytest.fixture(scope="module")
def items(ring, tmp_path_factory):
    node = ring.hosts[0], ring.port
    # Every search waits until it knows the writes before it.
    settings = ["--index-keyspace", "filters_indexes", "--search-wait-ms", "9000", "--search-when-behind", "error"]
    metrics = f"{HOST}:{free_port(HOST)}"
    settings += ["--answer-from-index", "--metrics-listen", metrics]
    folder = tmp_path_factory.mktemp("filters")
    gateway = GatewayWithStore((HOST, free_port(HOST)), free_port(HOST), node, folder, settings)
    with gateway:
        with client_of_all([(host, ring.port) for host in ring.hosts]) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE filters WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}")
            session.execute(
                "CREATE TABLE filters.items (p int, c int, d text, s text static, colour text, price int, tags set<text>, "
                "sizes map<text, int>, own int, plain int, v vector<float, 3>, PRIMARY KEY (p, c, d))"
            )
            session.execute("CREATE INDEX own_sai ON filters.items (own) USING 'sai'")
        with client_of_one(gateway.address) as cluster:
            session = cluster.connect()
            session.execute(
                "CREATE CUSTOM INDEX near ON filters.items (v, colour, price, s, tags, sizes) USING 'vector_index' "
                "WITH OPTIONS = {'similarity_function': 'euclidean'}"
            )
            items = Items(session, gateway, metrics)
            eventually(lambda: gateway.serves("filters", "near", len(items.rows)), seconds=120)
            yield items
        assert gateway.stop() == 0


@pytest.mark.parametrize("form", FREE, ids=lambda form: form[0])
def test_a_form_answers_as_a_search_of_all_rows(items, form):
    text, markers, values, satisfies = form
    for k in (1, 7, 1000):
        expected = items.nearest(satisfies, k)
        for level in LEVELS:
            assert items.by_text(text, k, level=level) == expected
            assert items.prepared(markers, values, k, level=level) == expected


@pytest.mark.parametrize("form", ALLOWED, ids=lambda form: form[0])
def test_a_column_that_the_index_does_not_keep_needs_allow_filtering(items, form):
    text, markers, values, satisfies = form
    with pytest.raises(InvalidRequest, match="Column plain can't restrict"):
        items.by_text(text, 3)
    with pytest.raises(InvalidRequest, match="Column plain can't restrict"):
        items.prepared(markers, values, 3)
    for k in (1, 7, 1000):
        expected = items.nearest(satisfies, k)
        assert items.by_text(text, k, "ALLOW FILTERING") == expected
        assert items.prepared(markers, values, k, "ALLOW FILTERING") == expected


def test_a_token_restricts_a_search(items):
    tokens = {row.p: row.place for row in items.session.execute("SELECT p, token(p) AS place FROM filters.items")}
    middle = sorted(tokens.values())[PARTITIONS // 2]
    expected = items.nearest(lambda r: tokens[r.p] > middle, 1000)
    assert items.by_text(f"token(p) > {middle}", 1000) == expected
    assert items.prepared("token(p) > ?", [middle], 1000) == expected
    of_3 = items.nearest(lambda r: tokens[r.p] >= tokens[3], 1000)
    assert items.by_text("token(p) >= token(3)", 1000) == of_3


def test_columns_of_where_are_not_in_the_answer(items):
    row = items.session.execute(
        "SELECT d AS letter FROM filters.items WHERE colour = 'red' AND own = 2 ORDER BY v ANN OF [0.1, 0.2, -0.3] LIMIT 1"
    ).one()
    assert row._fields == ("letter",)


def test_markers_have_the_types_of_their_columns(items):
    statement = items.session.prepare(
        "SELECT p FROM filters.items WHERE p IN ? AND sizes[?] = ? AND s = :s ORDER BY v ANN OF ? LIMIT ?"
    )
    told = [(column.name, column.type.cql_parameterized_type()) for column in statement.column_metadata]
    assert told[:4] == [("in(p)", "list<int>"), ("key(sizes)", "varchar"), ("value(sizes)", "int"), ("s", "varchar")]
    assert told[5] == ("[limit]", "int")


@pytest.mark.parametrize(
    "where, message",
    [
        ("v = [1, 2, 3]", "only support ANN queries"),
        ("nothing = 1", "Undefined column name nothing"),
        ("p = 1 AND p = 2", "more than one relation"),
        ("p != 1", "Unsupported"),
        ("colour = null", "null value"),
    ],
)
def test_what_makes_no_sense_is_refused(items, where, message):
    with pytest.raises(InvalidRequest, match=message):
        items.by_text(where, 3)


def test_a_search_knows_every_write_before_it(items):
    moved = [r for r in items.rows if r.colour == "green"][:10]
    update = items.session.prepare("UPDATE filters.items SET colour = ? WHERE p = ? AND c = ? AND d = ?")
    for r in moved:
        items.session.execute(update, ("blue", *r.key))
        r.colour = "blue"
        for colour in ("blue", "green"):
            expected = items.nearest(lambda r: r.colour == colour, 1000)
            assert items.by_text(f"colour = '{colour}'", 1000) == expected
    gone = items.rows.pop()
    items.session.execute("DELETE FROM filters.items WHERE p = %s AND c = %s AND d = %s", gone.key)
    assert items.by_text(f"p = {gone.p}", 1000) == items.nearest(lambda r: r.p == gone.p, 1000)


def test_the_index_answers_alone_at_consistency_one(items):
    text = (
        "SELECT colour, p, price AS cost, s FROM filters.items WHERE price < 50 AND s = 's1' "
        "ORDER BY v ANN OF [0.1, 0.2, -0.3] LIMIT 20"
    )
    expected = sorted((r for r in items.rows if r.price < 50 and r.s == "s1"), key=lambda r: r.distance(items.vector))
    expected = [(r.colour, r.p, r.price, r.s) for r in expected[:20]]
    before = items.answered_without_rows()
    for level, answered in ((ONE, 2), (QUORUM, 2)):
        by_text = items.session.execute(SimpleStatement(text, consistency_level=level))
        assert by_text.column_names == ["colour", "p", "cost", "s"]
        assert [tuple(row) for row in by_text] == expected
        bound = items.session.prepare(text).bind([])
        bound.consistency_level = level
        assert [tuple(row) for row in items.session.execute(bound)] == expected
        assert items.answered_without_rows() == before + answered


def test_the_index_answers_alone_for_a_partition_key_of_several_columns(items):
    items.session.execute("CREATE TABLE filters.pairs (p int, q text, c int, v vector<float, 2>, PRIMARY KEY ((p, q), c))")
    items.session.execute("CREATE CUSTOM INDEX ON filters.pairs (v) USING 'vector_index'")
    items.session.execute("INSERT INTO filters.pairs (p, q, c, v) VALUES (1, 'a', 2, [1, 0])")
    eventually(lambda: items.gateway.serves("filters", "pairs_v_idx", 1), seconds=120)
    before = items.answered_without_rows()
    text = "SELECT c, q, p FROM filters.pairs WHERE q = 'a' ORDER BY v ANN OF [1, 0] LIMIT 3"
    answer = items.session.execute(SimpleStatement(text, consistency_level=ONE))
    assert [tuple(row) for row in answer] == [(2, "a", 1)]
    assert items.answered_without_rows() == before + 1


def test_a_column_is_kept_once_cassandra_has_an_index_of_its_own_on_it(items):
    assert items.is_kept("own", 2)
    assert not items.is_kept("plain", 1)
    items.session.execute("CREATE INDEX plain_sai ON filters.items (plain) USING 'sai'")
    expected = items.nearest(lambda r: r.plain == 1, 1000)

    def needs_no_filtering():
        try:
            return items.by_text("plain = 1", 1000) == expected
        except InvalidRequest:
            return False

    # While the index is built anew, the rows are checked.
    eventually(needs_no_filtering)
    eventually(lambda: items.is_kept("plain", 1), seconds=120)
    for level in LEVELS:
        assert items.by_text("plain = 1", 1000, level=level) == expected
        assert items.prepared("plain = ?", [1], 1000, level=level) == expected
    items.session.execute("DROP INDEX filters.plain_sai")
    eventually(lambda: not items.is_kept("plain", 1), seconds=120)
    assert items.by_text("plain = 1", 1000, "ALLOW FILTERING") == expected
