"""Tests ORDER BY ... ANN OF: its forms, its errors, and rows that it must not return."""

import json
import math

import pytest
from cassandra import InvalidRequest
from cassandra.query import SimpleStatement
from server import eventually

VECTOR_UNREAD = pytest.mark.embedded("a gateway reads a vector only where it is selected; until its index knows, a row without one is found")
NO_INDEX = pytest.mark.embedded("no index of a gateway is meant: the words are Cassandra's")


@pytest.fixture(scope="module")
def table(server, shared_session):
    session = shared_session
    session.execute(
        "CREATE TABLE t (p int, c text, x text, st text STATIC, n int, v vector<float, 3>, w vector<float, 3>, "
        "ints vector<int, 3>, PRIMARY KEY (p, c))"
    )
    session.execute("CREATE CUSTOM INDEX t_v ON t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}")
    insert = session.prepare("INSERT INTO t (p, c, x, n, v) VALUES (?, ?, ?, ?, ?)")
    for n in range(20):
        session.execute(insert, (n % 3, f"c{n}", f"x{n}", n, [n, 0, 0]))
    session.execute("INSERT INTO t (p, c, n) VALUES (9, 'no vector', 99)")
    session.execute("UPDATE t SET st = 'static' WHERE p = 0")
    server.wait_for_index(session.keyspace, "t_v", 20)
    return session


def ns(rows):
    return [row.n for row in rows]


@pytest.mark.parametrize(
    "order",
    ["v ANN OF [4.1, 0, 0]", '"v" ann of [4.1, 0.0, 0]', "ANN(v, [4.1, 0, 0])", "v ANN OF [4.1, 0, 0] ASC"],
)
def test_forms(table, order):
    assert ns(table.execute(f"SELECT n FROM t ORDER BY {order} LIMIT 3")) == [4, 5, 3]


def test_bound_vectors_and_limits(table):
    for text in ["SELECT n FROM t ORDER BY v ANN OF ? LIMIT ?", "SELECT n FROM t ORDER BY ANN(v, ?) LIMIT ?"]:
        prepared = table.prepare(text)
        assert prepared.column_metadata[0].name == "v"
        for limit in [1, 2, 7]:
            assert ns(table.execute(prepared, ([19, 0, 0], limit))) == [19 - i for i in range(limit)]
    named = table.prepare("SELECT n FROM t ORDER BY v ANN OF :q LIMIT :k")
    assert ns(table.execute(named, {"k": 2, "q": [0, 0, 0]})) == [0, 1]


def test_whole_rows_come_back_nearest_first(table):
    rows = list(table.execute("SELECT * FROM t ORDER BY v ANN OF [0, 0, 0] LIMIT 1000"))
    assert ns(rows) == list(range(20))
    assert rows[0]._asdict() | {"v": list(rows[0].v)} == {
        "p": 0, "c": "c0", "st": "static", "ints": None, "n": 0, "v": [0, 0, 0], "w": None, "x": "x0",
    }  # fmt: skip


def test_the_score_can_be_selected(table):
    query = table.prepare("SELECT n, similarity_euclidean(v, ?) AS score FROM t ORDER BY v ANN OF ? LIMIT 3")
    rows = table.execute(query, ([1.5, 0, 1], [1.75, 0, 0]))
    assert [(row.n, round(row.score, 4)) for row in rows] == [(2, 0.4444), (1, 0.4444), (3, 0.2353)]


@pytest.mark.parametrize("option", ["true", "'true'", "false"])
def test_exact_neighbours_are_asked_for(table, option):
    clause = f"WITH ann_options = {{'exact': {option}}}"
    nearest = [4, 5, 3]
    assert ns(table.execute(f"SELECT n FROM t ORDER BY v ANN OF [4.1, 0, 0] LIMIT 3 {clause}")) == nearest
    prepared = table.prepare(f"SELECT n FROM t ORDER BY v ANN OF ? LIMIT ? {clause}")
    assert [spec.name for spec in prepared.column_metadata] == ["v", "[limit]"]
    assert ns(table.execute(prepared, ([4.1, 0, 0], 3))) == nearest
    filtered = table.prepare(f"SELECT n FROM t WHERE n > ? ORDER BY v ANN OF ? LIMIT 3 ALLOW FILTERING {clause}")
    assert ns(table.execute(filtered, (4, [4.1, 0, 0]))) == [5, 6, 7]


def test_a_small_page_size_gets_everything_and_a_warning(table):
    statement = SimpleStatement("SELECT n FROM t ORDER BY v ANN OF [0, 0, 0] LIMIT 15", fetch_size=4)
    future = table.execute_async(statement)
    result = future.result()
    assert ns(result.current_rows) == list(range(15)) and not result.has_more_pages
    assert future.warnings == ["Paging is not supported for Vector Search queries. The entire result set has been returned."]
    future = table.execute_async(SimpleStatement(statement.query_string, fetch_size=15))
    assert len(future.result().current_rows) == 15 and not future.warnings


@pytest.mark.parametrize(
    "query, text",
    [
        ("SELECT n FROM t ORDER BY w ANN OF [1, 2, 3] LIMIT 1", "ANN ordering by vector requires the column to be indexed"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3]", "Vector ANN queries must have a limit specified"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1001", "requires a LIMIT that is not greater than 1000. LIMIT was 1001"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 0", "(?i)limit"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] PER PARTITION LIMIT 1 LIMIT 1", "do not support per-partition limits"),
        ("SELECT count(*) FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1", "cannot be run with aggregation"),
        ("SELECT n FROM t GROUP BY p ORDER BY v ANN OF [1, 2, 3] LIMIT 1", "cannot be run with aggregation|GROUP BY"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2] LIMIT 1", "(?i)dimension|vector"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3, 4] LIMIT 1", "(?i)dimension|vector"),
        pytest.param("SELECT n FROM t ORDER BY n ANN OF [1, 2, 3] LIMIT 1", "requires a float vector argument", marks=NO_INDEX),
        pytest.param("SELECT n FROM t ORDER BY ints ANN OF [1, 2, 3] LIMIT 1", "requires a float vector argument", marks=NO_INDEX),
        ("SELECT n FROM t ORDER BY v ANN OF 'text' LIMIT 1", "v|vector"),
        pytest.param("SELECT n FROM t ORDER BY nothing ANN OF [1, 2, 3] LIMIT 1", "Unrecognized name", marks=NO_INDEX),
        ("SELECT n FROM t ORDER BY v ANN OF null LIMIT 1", "Unsupported null value for column v"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] DESC LIMIT 1", "Descending ANN ordering is not supported"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3], w ANN OF [1, 2, 3] LIMIT 1", "Cannot specify more than one similarity ordering"),
        ("SELECT n FROM t WHERE p = 1 ORDER BY v ANN OF [1, 2, 3], c ASC LIMIT 1", "ordering does not support any other ordering"),
        pytest.param("SELECT n FROM t ORDER BY similarity_cosine(v, [1, 2, 3]) LIMIT 1", r"Only ANN\(\) and BM25\(\) are supported as scoring functions in ORDER BY", marks=NO_INDEX),
        pytest.param("SELECT n FROM t WHERE v = [1, 2, 3]", "Vector indexes only support ANN queries", marks=NO_INDEX),
        ("SELECT n FROM t ORDER BY v ANN OF [1, NaN, 3] LIMIT 1", "(?i)finite|NaN|vector"),
        ("SELECT DISTINCT p FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1", "(?i)distinct"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'exakt': true}", "Unknown ANN option: 'exakt'"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'exact': 1}", "Expected true or false, but found: 1"),
        ("SELECT n FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1 WITH ann_options = {'rerank_k': 9}", "'rerank_k' is not supported"),
        pytest.param("SELECT n FROM t WITH ann_options = {'exact': true}", "ORDER BY ... ANN OF", marks=NO_INDEX),
    ],
)  # fmt: skip
def test_misuse_gets_its_error(table, query, text):
    with pytest.raises(InvalidRequest, match=text):
        table.execute(query)


def test_bound_misuse_gets_its_error(table):
    query = table.prepare("SELECT n FROM t ORDER BY v ANN OF ? LIMIT ?")
    for vector, limit, text in [
        (None, 1, "Unsupported null value for column v"),
        ([1, 2, 3], 1001, "not greater than 1000. LIMIT was 1001"),
        ([1, 2, 3], 0, "(?i)limit"),
        ([1, float("nan"), 3], 1, "(?i)finite|NaN|vector"),
    ]:
        with pytest.raises(InvalidRequest, match=text):
            table.execute(query, (vector, limit))


@pytest.mark.embedded("the HTTP API of one process with its database")
def test_a_vector_of_zeros_comes_last_by_cosine(server, session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, c int, v vector<float, 2>)")
    session.execute("CREATE CUSTOM INDEX i ON t (v, c) USING 'vector_index'")
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    for k, v in enumerate([[0, 0], [1, 0], [-1, 0], [0, 1]]):
        session.execute(insert, (k, k % 2, v))
    server.wait_for_index(session.keyspace, "i", 4)

    def found(where):
        return [row.k for row in session.execute(f"SELECT k FROM t {where} ORDER BY v ANN OF [1, 0] LIMIT 4")]

    # Also behind the opposite vector, whatever names the rows.
    assert found("") == [1, 3, 2, 0]
    assert found("WHERE c = 0") == [2, 0]
    assert found("WHERE k IN (0, 2, 3)") == [3, 2, 0]
    rows = list(session.execute("SELECT k, similarity_cosine(v, [1, 0]) AS s FROM t ORDER BY v ANN OF [1, 0] LIMIT 4"))
    assert [row.s for row in rows[:3]] == pytest.approx([1, 0.5, 0], abs=1e-6) and math.isnan(rows[3].s)

    def answer(**search):
        status, text = server.http(f"/api/v1/indexes/{session.keyspace}/i/ann", {"limit": 4, **search})
        assert status == 200, text
        answer = json.loads(text)
        scored = zip(answer["primary_keys"]["k"], answer["distances"], answer["similarity_scores"])
        return [(k, round(distance, 6), round(score, 6)) for k, distance, score in scored]

    for exact in (False, True):
        assert answer(vector=[1, 0], exact=exact) == [(1, 0, 1), (3, 1, 0.5), (2, 2, 0), (0, 2, 0)]
    restrictions = [{"type": "==", "lhs": "c", "rhs": 0}]
    filtered = answer(vector=[1, 0], filter={"restrictions": restrictions, "allow_filtering": True})
    assert filtered == [(2, 2, 0), (0, 2, 0)]
    # A query without a direction is at the distance 0 from such a row alone.
    assert [found[:2] for found in sorted(answer(vector=[0, 0]))] == [(0, 0), (1, 1), (2, 1), (3, 1)]


@pytest.mark.embedded("a gateway writes the row and leaves it out of the index")
@pytest.mark.parametrize("metric", ["euclidean", "dot_product"])
def test_components_above_1e19_are_refused_with_the_bound(server, session, metric):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)")
    session.execute(f"CREATE CUSTOM INDEX i ON t (v) USING 'vector_index' WITH OPTIONS = {{'similarity_function': '{metric}'}}")
    session.execute("INSERT INTO t (k, v) VALUES (1, [1, 0])")
    server.wait_for_index(session.keyspace, "i", 1)
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    for statement, values in [
        ("INSERT INTO t (k, v) VALUES (2, [2e19, 0])", None),
        ("UPDATE t SET v = [0, -2e19] WHERE k = 1", None),
        (insert, (2, [2e19, 0])),
        ("SELECT k FROM t ORDER BY v ANN OF [2e19, 0] LIMIT 1", None),
    ]:
        with pytest.raises(InvalidRequest, match="up to a length of 1e18"):
            session.execute(statement, values)
    status, text = server.http(f"/api/v1/indexes/{session.keyspace}/i/ann", {"vector": [2e19, 0]})
    assert status == 400 and "up to a length of 1e18" in text
    assert [(row.k, list(row.v)) for row in session.execute("SELECT k, v FROM t")] == [(1, [1, 0])]


@pytest.mark.parametrize("columns", [pytest.param("k", marks=VECTOR_UNREAD), "k, v"])
def test_deleted_and_changed_rows_never_appear_as_they_were(server, session, columns):
    """The test does not wait for the index, as rows are read after the neighbours come back."""
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}")
    insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    nearest = session.prepare(f"SELECT {columns} FROM t ORDER BY v ANN OF [0, 0] LIMIT 50")
    for k in range(50):
        session.execute(insert, (k, [k, 1]))
    server.wait_for_index(session.keyspace, "i", 50)
    for k in range(25):
        session.execute("DELETE FROM t WHERE k = %s", (k,))
        assert k not in [row.k for row in session.execute(nearest)]
    for k in range(25, 40):
        session.execute("UPDATE t SET v = null WHERE k = %s", (k,))
        assert k not in [row.k for row in session.execute(nearest)]
    server.wait_for_index(session.keyspace, "i", 10)


def test_every_way_of_losing_a_vector_reaches_the_index(server, session):
    session.execute("CREATE TABLE t (p int, c int, v vector<float, 2>, PRIMARY KEY (p, c))")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    insert = session.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, ?)")

    def contents():
        status, text = server.http(f"/api/v1/indexes/{session.keyspace}/i/ann", {"vector": [1, 1], "limit": 1000})
        if status != 200:
            return None
        keys = json.loads(text)["primary_keys"]
        return set(zip(keys["p"], keys["c"]))

    def indexed(count):
        def equal():
            rows = session.execute("SELECT p, c, v FROM t")
            table = {(row.p, row.c) for row in rows if row.v is not None}
            return len(table) == count and contents() == table

        eventually(equal)

    for p in range(4):
        for c in range(5):
            session.execute(insert, (p, c, [c + 1, p]))
    indexed(20)
    session.execute("DELETE FROM t WHERE p = 0")
    indexed(15)
    session.execute("DELETE FROM t WHERE p = 1 AND c >= 1 AND c < 4")
    indexed(12)
    session.execute("DELETE v FROM t WHERE p = 2 AND c = 2")
    indexed(11)
    session.execute("UPDATE t USING TTL 1 SET v = [1, 1] WHERE p = 2 AND c = 3")
    indexed(10)
    session.execute("INSERT INTO t (p, c, v) VALUES (0, 0, [1, 1]) USING TTL 1")
    session.execute("INSERT INTO t (p, c, v) VALUES (0, 1, [1, 1])")
    indexed(11)
    session.execute("TRUNCATE t")
    indexed(0)
    # After TRUNCATE writes with old timestamps have an effect again.
    session.execute("INSERT INTO t (p, c, v) VALUES (7, 7, [1, 1]) USING TIMESTAMP 5")
    indexed(1)
    session.execute("DROP INDEX i")
    with pytest.raises(InvalidRequest, match="requires the column to be indexed"):
        session.execute("SELECT p FROM t ORDER BY v ANN OF [1, 1] LIMIT 1")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
    indexed(1)


@pytest.mark.embedded("tablets are ScyllaDB's")
def test_vectors_in_a_keyspace_without_tablets(server, cluster):
    session = cluster.connect()
    session.execute(
        "CREATE KEYSPACE vnodes WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1} "
        "AND tablets = {'enabled': false}"
    )
    try:
        session.execute("CREATE TABLE vnodes.t (k int PRIMARY KEY, v vector<float, 2>)")
        session.execute("INSERT INTO vnodes.t (k, v) VALUES (1, [1, 0])")
        session.execute("CREATE CUSTOM INDEX i ON vnodes.t (v) USING 'vector_index'")
        session.execute("INSERT INTO vnodes.t (k, v) VALUES (2, [0, 1])")
        server.wait_for_index("vnodes", "i", 2)
        rows = session.execute("SELECT k FROM vnodes.t ORDER BY v ANN OF [0, 1] LIMIT 2")
        assert [row.k for row in rows] == [2, 1]
    finally:
        session.execute("DROP KEYSPACE vnodes")


def test_names_in_quotes(server, session):
    session.execute('CREATE TABLE "MyTable" ("Key" int PRIMARY KEY, "The Vector" vector<float, 2>)')
    session.execute('CREATE CUSTOM INDEX "MyIndex" ON "MyTable" ("The Vector") USING \'vector_index\'')
    session.execute('INSERT INTO "MyTable" ("Key", "The Vector") VALUES (1, [1, 0])')
    search = 'SELECT "Key" FROM "MyTable" ORDER BY "The Vector" ANN OF [1, 0] LIMIT 5'

    def found():
        try:
            return list(session.execute(search)) == [(1,)]
        except InvalidRequest:
            return False

    eventually(found)
    assert server.index_status(session.keyspace, "MyIndex")["count"] == 1
