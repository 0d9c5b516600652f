"""cassio: all its kinds of tables."""

import uuid

import cassio.table.tables
import pytest
from cassio.db_reader import MultiTableCassandraReader
from cassio.history import StoredBlobHistory
from cassio.table.mixins import ClusteredMixin, ElasticKeyMixin, MetadataMixin, VectorMixin
from cassio.table.query import Predicate
from cassio.vector import VectorTable
from made import DIMENSIONS, Made

TABLES = [table for name, table in vars(cassio.table.tables).items() if name.endswith("CassandraTable")]
ONE = Made(1)


def having(mixin):
    """All kinds of tables with a property."""
    return pytest.mark.parametrize("kind", [table for table in TABLES if issubclass(table, mixin)])


def options_of(kind):
    """What a kind of table needs to be told."""
    options = {}
    if issubclass(kind, ElasticKeyMixin):
        options["keys"] = ["name", "part"]
    if issubclass(kind, VectorMixin):
        options["vector_dimension"] = DIMENSIONS
    return options


def key_of(kind, number, partition="p"):
    """The key of a row."""
    key = (
        {"name": f"row {number:04}", "part": "a"}
        if issubclass(kind, ElasticKeyMixin)
        else {"row_id": f"row {number:04}"}
    )
    return key | ({"partition_id": partition} if issubclass(kind, ClusteredMixin) else {})


def row_of(kind, number, made=ONE):
    """All values of a row, without the key."""
    row = {"body_blob": f"body {number}"}
    if issubclass(kind, MetadataMixin):
        row["metadata"] = Made.metadata(number)
    if issubclass(kind, VectorMixin):
        row["vector"] = made.vectors[number % len(made.vectors)].tolist()
    return row


def filled(kind, place, rows, partition="p"):
    """A table with rows, and what they were made of."""
    made = Made(rows)
    table = kind(**place, **options_of(kind))
    for future in [table.put_async(**key_of(kind, i, partition), **row_of(kind, i, made)) for i in range(rows)]:
        future.result()
    return table, made


def bodies(rows):
    return [row["body_blob"] for row in rows]


def bodies_of(numbers):
    return [f"body {number}" for number in numbers]


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_every_kind_of_table(kind, place):
    table = kind(**place, **options_of(kind))
    assert table.get(**key_of(kind, 1)) is None
    for number in (1, 2):
        table.put(**key_of(kind, number), **row_of(kind, number))
    found = table.get(**key_of(kind, 1))
    assert found["body_blob"] == "body 1"
    assert key_of(kind, 1).items() <= found.items()
    if issubclass(kind, MetadataMixin):
        assert found["metadata"] == {"colour": "green", "year": "2001.0", "draft": "false"}
    if issubclass(kind, VectorMixin):
        assert len(found["vector"]) == DIMENSIONS

    table.put(**key_of(kind, 1), **row_of(kind, 1) | {"body_blob": "other"}, ttl_seconds=600)
    assert table.get(**key_of(kind, 1))["body_blob"] == "other"
    table.delete(**key_of(kind, 1))
    assert table.get(**key_of(kind, 1)) is None
    assert table.get(**key_of(kind, 2))["body_blob"] == "body 2"
    table.clear()
    assert table.get(**key_of(kind, 2)) is None


@pytest.mark.parametrize("kind", TABLES)
async def test_rows_by_async_calls(kind, place):
    table = kind(**place, **options_of(kind), async_setup=True)
    await table.aput(**key_of(kind, 1), **row_of(kind, 1))
    assert (await table.aget(**key_of(kind, 1)))["body_blob"] == "body 1"
    await table.adelete(**key_of(kind, 1))
    assert await table.aget(**key_of(kind, 1)) is None
    await table.aput(**key_of(kind, 2), **row_of(kind, 2))
    await table.aclear()
    assert await table.aget(**key_of(kind, 2)) is None


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_opened_again_has_its_rows(kind, place):
    table, _ = filled(kind, place, 3)
    again = kind(**place, **options_of(kind))
    assert again.get(**key_of(kind, 2)) == table.get(**key_of(kind, 2))


@having(ClusteredMixin)
async def test_partitions(kind, place):
    table, _ = filled(kind, place, 10)
    table.put(**key_of(kind, 3, "q"), **row_of(kind, 33))
    assert bodies(table.get_partition("p")) == bodies_of(range(10))
    assert bodies(table.get_partition("p", n=4)) == bodies_of(range(4))
    assert bodies(await table.aget_partition("q")) == ["body 33"]
    if not issubclass(kind, ElasticKeyMixin):
        assert bodies(table.get_partition("p", row_id=Predicate(">=", "row 0007"))) == bodies_of([7, 8, 9])
    table.delete_partition("p")
    assert bodies(table.get_partition("p")) == []
    assert bodies(table.get_partition("q")) == ["body 33"]
    await table.adelete_partition("q")
    assert bodies(await table.aget_partition("q")) == []


@pytest.mark.parametrize("order", ["ASC", "DESC"])
def test_the_order_in_a_partition(order, place):
    table = cassio.table.tables.ClusteredCassandraTable(
        **place, primary_key_type=["TEXT", "INT"], ordering_in_partition=order
    )
    for number in range(5):
        table.put(partition_id="p", row_id=number, body_blob=f"body {number}")
    assert bodies(table.get_partition("p")) == bodies_of(sorted(range(5), reverse=order == "DESC"))


def test_keys_of_several_columns(place):
    table = cassio.table.tables.ClusteredCassandraTable(
        **place, primary_key_type=["TEXT", "INT", "TEXT", "INT"], num_partition_keys=2
    )
    table.put(partition_id=("a", 1), row_id=("b", 2), body_blob="body")
    assert table.get(partition_id=("a", 1), row_id=("b", 2))["body_blob"] == "body"
    assert [row["row_id"] for row in table.get_partition(("a", 1))] == [("b", 2)]


@having(MetadataMixin)
async def test_rows_by_metadata(kind, place):
    table, made = filled(kind, place, 60)
    scope = {"partition_id": "p"} if issubclass(kind, ClusteredMixin) else {}
    for wanted in (
        {"colour": "red"},
        {"colour": "blue", "year": 2003},
        {"draft": True, "colour": "red"},
        {"colour": "no"},
    ):
        expected = sorted(bodies_of(made.matching(**wanted)))
        assert sorted(bodies(table.find_entries(n=100, metadata=wanted, **scope))) == expected, wanted
        assert sorted(bodies(await table.afind_entries(n=100, metadata=wanted, **scope))) == expected, wanted
    assert len(list(table.find_entries(n=3, metadata={"colour": "red"}, **scope))) == 3

    reds = len(made.matching(colour="red"))
    assert table.find_and_delete_entries(metadata={"colour": "red"}, batch_size=7, **scope) == reds
    assert list(table.find_entries(n=100, metadata={"colour": "red"}, **scope)) == []
    assert await table.afind_and_delete_entries(metadata={"colour": "blue"}, **scope) == len(
        made.matching(colour="blue")
    )
    assert len(list(table.find_entries(n=100, metadata={"colour": "green"}, **scope))) == len(
        made.matching(colour="green")
    )


@having(MetadataMixin)
def test_metadata_follows_an_overwrite(kind, place):
    table = kind(**place, **options_of(kind))
    scope = {"partition_id": "p"} if issubclass(kind, ClusteredMixin) else {}
    table.put(**key_of(kind, 1), **row_of(kind, 1))
    table.put(**key_of(kind, 1), **row_of(kind, 1) | {"metadata": {"colour": "black"}})
    assert list(table.find_entries(n=9, metadata={"colour": "green"}, **scope)) == []
    assert bodies(table.find_entries(n=9, metadata={"colour": "black"}, **scope)) == ["body 1"]


@pytest.mark.parametrize("policy", [("allow", ["colour"]), ("deny", ["year", "draft"]), "none"])
def test_metadata_that_is_not_searched(policy, place):
    table = cassio.table.tables.MetadataCassandraTable(**place, metadata_indexing=policy)
    table.put(row_id="a", body_blob="body", metadata=Made.metadata(0))
    assert table.get(row_id="a")["metadata"] == {"colour": "red", "year": "2000.0", "draft": "true"}
    if policy != "none":
        assert bodies(table.find_entries(n=9, metadata={"colour": "red"})) == ["body"]
    with pytest.raises(ValueError, match="Non-indexed metadata"):
        table.find_entries(n=9, metadata={"year": 2000})


@having(VectorMixin)
async def test_nearest_rows(kind, place):
    table, made = filled(kind, place, 200)
    scope = {"partition_id": "p"} if issubclass(kind, ClusteredMixin) else {}
    for seed in range(5):
        vector = made.query(seed)
        expected = bodies_of(made.nearest(vector, range(200), 10))
        assert bodies(table.ann_search(vector=vector, n=10, **scope)) == expected
        assert bodies(await table.aann_search(vector=vector, n=10, **scope)) == expected
        hits = list(table.metric_ann_search(vector=vector, n=10, metric="cos", **scope))
        assert bodies(hits) == expected
        assert [hit["distance"] for hit in hits] == sorted((hit["distance"] for hit in hits), reverse=True)
        near = hits[4]["distance"]
        assert (
            len(list(table.metric_ann_search(vector=vector, n=10, metric="cos", metric_threshold=near, **scope))) == 5
        )


@pytest.mark.parametrize(
    "kind", [table for table in TABLES if issubclass(table, VectorMixin) and issubclass(table, MetadataMixin)]
)
async def test_nearest_rows_by_metadata(kind, place):
    table, made = filled(kind, place, 200)
    scope = {"partition_id": "p"} if issubclass(kind, ClusteredMixin) else {}
    for seed, wanted in enumerate(
        (
            {"colour": "red"},
            {"colour": "blue", "year": 2003},
            {"draft": False, "year": 2001, "colour": "green"},
            {"colour": "no"},
        )
    ):
        vector = made.query(seed)
        expected = bodies_of(made.nearest(vector, made.matching(**wanted), 10))
        assert bodies(table.ann_search(vector=vector, n=10, metadata=wanted, **scope)) == expected, wanted
        assert (
            bodies(await table.ametric_ann_search(vector=vector, n=10, metric="cos", metadata=wanted, **scope))
            == expected
        ), wanted


@having(VectorMixin)
def test_a_search_knows_the_write_before_it(kind, place):
    table, made = filled(kind, place, 30)
    scope = {"partition_id": "p"} if issubclass(kind, ClusteredMixin) else {}
    for number in range(100, 110):
        vector = made.query(number)
        table.put(**key_of(kind, number), **row_of(kind, number) | {"vector": vector})
        assert bodies(table.ann_search(vector=vector, n=1, **scope)) == bodies_of([number])
        table.delete(**key_of(kind, number))
        assert bodies(table.ann_search(vector=vector, n=1, **scope)) != bodies_of([number])


@pytest.mark.parametrize(("function", "metric"), [("cosine", "cos"), ("dot_product", "dot"), ("euclidean", "l2")])
def test_similarity_functions(function, metric, place):
    made = Made(50)
    table = cassio.table.tables.VectorCassandraTable(
        **place, vector_dimension=DIMENSIONS, vector_similarity_function=function
    )
    for i, vector in enumerate(made.vectors):
        table.put(row_id=f"row {i}", body_blob=f"body {i}", vector=vector.tolist())
    vector = made.query(0)
    found = [row["row_id"] for row in table.ann_search(vector=vector, n=10)]
    ranked = [row["row_id"] for row in table.metric_ann_search(vector=vector, n=50, metric=metric)]
    assert found == ranked[:10]


def test_partitions_are_searched_apart(place):
    kind = cassio.table.tables.ClusteredMetadataVectorCassandraTable
    table, made = filled(kind, place, 60)
    filled(kind, place, 60, "q")
    vector = made.query(0)
    expected = bodies_of(made.nearest(vector, made.matching(colour="red"), 5))
    for partition in ("p", "q"):
        rows = list(table.ann_search(vector=vector, n=5, metadata={"colour": "red"}, partition_id=partition))
        assert {row["partition_id"] for row in rows} == {partition}
        assert bodies(rows) == expected
    assert len(list(table.ann_search(vector=vector, n=10, metadata={"colour": "red"}))) == 10


def test_the_older_vector_table(place):
    with pytest.warns(DeprecationWarning):
        table = VectorTable(**place, embedding_dimension=DIMENSIONS, primary_key_type="TEXT")
    made = Made(20)
    for i, vector in enumerate(made.vectors):
        table.put(f"body {i}", vector.tolist(), f"row {i}", Made.metadata(i), None)
    vector = made.query(0)
    found = [hit["document"] for hit in table.search(embedding_vector=vector, top_k=3, metadata={"colour": "red"})]
    assert found == bodies_of(made.nearest(vector, made.matching(colour="red"), 3))
    table.delete("row 0")
    assert table.get("row 0") is None


def test_a_history_of_blobs(session, place):
    with pytest.warns(DeprecationWarning):
        history = StoredBlobHistory(session, place["keyspace"], place["table"])
    for number in range(5):
        history.store("a", f"blob {number}", None)
    assert history.retrieve("a") == [f"blob {number}" for number in range(5)]
    assert history.retrieve("a", 2) == ["blob 3", "blob 4"]
    history.clear_session_id("a")
    assert history.retrieve("a") == []


def test_a_reader_of_several_tables(session, place):
    for name in ("one", "two"):
        session.execute(f"CREATE TABLE {place['keyspace']}.{place['table']}_{name} (id uuid PRIMARY KEY, {name} int)")
    row = uuid.uuid4()
    session.execute(f"INSERT INTO {place['keyspace']}.{place['table']}_one (id, one) VALUES (%s, 1)", (row,))
    reader = MultiTableCassandraReader(
        session=session,
        keyspace=place["keyspace"],
        field_mapper={
            "first": (f"{place['table']}_one", "one"),
            "second": (f"{place['table']}_two", "two"),
        },
        admit_nulls=True,
    )
    assert reader(id=row) == {"first": 1, "second": None}
