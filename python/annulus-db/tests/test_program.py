"""Both clients with the program itself."""

import asyncio
import datetime
import decimal
import random
import threading
import uuid

import pandas
import pyarrow
import pytest

import annulus_db
from annulus_db import Delete, Put, Query, Ranking, Search

COLUMNS = {
    "id": "int",
    "name": "text",
    "price": "int",
    "colour": "text",
    "about": "text",
    "v": "vector<float, 3>",
}
ROWS = [
    {"id": 1, "name": "tea", "price": 4, "colour": "red", "about": "a hot drink of leaves", "v": [0.9, 0.1, 0.1]},
    {"id": 2, "name": "cocoa", "price": 5, "colour": "red", "about": "a sweet hot drink", "v": [0.8, 0.3, 0.1]},
    {"id": 3, "name": "spade", "price": 20, "colour": "grey", "about": "a tool to dig", "v": [0.1, 0.1, 0.9]},
]


@pytest.fixture
def products(annulus_client, annulus_keyspace):
    """A table with rows and an index of each kind."""
    table = annulus_client.create_table(f"{annulus_keyspace}.products", COLUMNS, ["id"])
    options = {"similarity_function": "cosine"}
    table.create_index("v", "vector", name="products_v", filter_columns=["colour"], options=options)
    table.create_index("about", "text", name="products_about")
    table.create_index("price", "secondary")
    assert table.insert(ROWS).written == 3
    return table


@pytest.fixture
def table(annulus_client, annulus_keyspace):
    """Makes a table: `table("t", columns, key)`."""

    def make(name, columns, key):
        return annulus_client.create_table(f"{annulus_keyspace}.{name}", columns, key)

    return make


def ids(rows):
    return [row["id"] for row in rows]


def test_rows_are_written_read_and_deleted(products):
    assert products.get(id=2)["name"] == "cocoa"
    assert products.get(id=2)["v"] == pytest.approx([0.8, 0.3, 0.1])
    products.insert([{"id": 2, "name": "chocolate"}])
    row = products.get(id=2)
    assert (row["name"], row["price"]) == ("chocolate", 5), "columns that are not named stay"
    written = products.insert([{"id": 2, "name": "x"}, {"id": 4, "name": "y"}], if_not_exists=True)
    assert (written.applied, written.written) == ([False, True], 1)
    products.delete(id=4)
    assert products.get(id=4) is None


def test_values_of_every_kind_come_back_as_json(table):
    types = {
        "id": "uuid",
        "at": "timestamp",
        "on_day": "date",
        "at_time": "time",
        "amount": "decimal",
        "big": "varint",
        "data": "blob",
        "flag": "boolean",
        "tags": "set<text>",
        "scores": "map<int, double>",
        "path": "list<int>",
        "address": "inet",
        "Name": "text",
    }
    values = table("values", types, ["id"])
    of = uuid.UUID(int=7)
    row = {
        "id": of,
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        "on_day": datetime.date(2026, 1, 2),
        "at_time": datetime.time(3, 4, 5),
        "amount": decimal.Decimal("1.50"),
        "big": 2**80,
        "data": b"\x00\xff",
        "flag": True,
        "tags": {"a"},
        "scores": {1: 0.5},
        "path": [3, 1],
        "address": "127.0.0.1",
        "Name": "case",
    }
    values.insert([row])
    read = values.get(id=of)
    assert read["at"].startswith("2026-01-02") and "03:04:05" in read["at"]
    assert read["at_time"].startswith("03:04:05")
    assert read["amount"] == 1.5 and read["big"] == 2**80
    expected = {"id": str(of), "on_day": "2026-01-02", "data": "0x00ff", "flag": True, "tags": ["a"]}
    expected |= {"scores": {"1": 0.5}, "path": [3, 1], "address": "127.0.0.1", "Name": "case"}
    assert {name: read[name] for name in expected} == expected
    # What was read can be written.
    assert values.insert([read]).written == 1
    assert values.get(id=of) == read


def test_a_partition_is_read_by_pages(table):
    days = table("days", {"sensor": "text", "day": "int", "value": "double"}, ["sensor", "day"])
    days.insert({"sensor": "a b", "day": day, "value": day / 2} for day in range(2_500))
    rows = days.rows({"sensor": "a b"}, columns=["day"], page_size=700)
    assert [row["day"] for row in rows] == list(range(2_500))
    assert days.get(sensor="a b", day=7)["value"] == 3.5


def test_a_table_is_made_with_an_order_and_static_columns(annulus_client, annulus_keyspace):
    columns = {"a": "int", "b": "int", "day": "int", "s": "text static"}
    key = [["a", "b"], "day"]
    log = annulus_client.create_table(
        f"{annulus_keyspace}.log", columns, key, order={"day": "desc"}, options={"default_time_to_live": 60}
    )
    log.insert([{"a": 1, "b": 1, "day": day, "s": str(day)} for day in (1, 2, 3)])
    assert [(row["day"], row["s"]) for row in log.rows({"a": 1, "b": 1})] == [(3, "3"), (2, "3"), (1, "3")]
    assert log.schema()["key"] == {"partition": ["a", "b"], "clustering": ["day"]}


def test_searches_by_vector_words_row_and_both(products):
    assert ids(products.search([1, 0, 0], limit=2)) == [1, 2]
    assert ids(products.search([1, 0, 0], limit=1, offset=1)) == [2]
    assert "v" not in products.search([1, 0, 0], limit=1)[0]
    assert "v" in products.search([1, 0, 0], limit=1, with_vector=True)[0]
    assert list(products.search([1, 0, 0], limit=1, columns=["name"])[0]) == ["name"]
    assert ids(products.search(text="tool")) == [3]
    assert set(ids(products.search(query="hot AND NOT sweet"))) == {1}
    assert ids(products.search(row={"id": 1}, limit=1)) == [2]
    both = products.search([0, 0, 1], text="sweet", limit=2, explain=True)
    assert set(ids(both)) == {2, 3}
    assert {hit.by for hits in both.explain for hit in hits} == {"vector", "words"}
    weighted = [Query(vector=[0, 0, 1], weight=0.1), Query(text="sweet", weight=5)]
    assert ids(products.search(queries=weighted, rank=Ranking(by="rrf"), limit=1)) == [2]


def test_searches_with_filters_thresholds_and_counts(products):
    cheap = {"price": {"lt": 10}}
    assert set(ids(products.search([0, 0, 1], filter=cheap, allow_filtering=True))) == {1, 2}
    either = {"or": [{"colour": "grey"}, {"price": 4}]}
    assert set(ids(products.search([1, 0, 0], filter=either, allow_filtering=True))) == {1, 3}
    assert ids(products.search([1, 0, 0], score_threshold=0.99)) == [1]
    found = products.search([1, 0, 0], counts=["colour"])
    assert {(count.value, count.count) for count in found.counts["colour"]} == {("red", 2), ("grey", 1)}
    first, second = products.search_many([Search(vector=[0, 0, 1], limit=1), Search(text="leaves")])
    assert (ids(first), ids(second)) == ([3], [1])


def test_a_batch_is_done_as_a_whole(annulus_client, products, table):
    log = table("log", {"id": "int", "what": "text"}, ["id"])
    names = [f"{each.name.keyspace}.{each.name.table}" for each in (products, log)]
    annulus_client.batch([Delete(names[0], {"id": 1}), Put(names[1], {"id": 1, "what": "deleted"})])
    assert products.get(id=1) is None and log.get(id=1) == {"id": 1, "what": "deleted"}
    with pytest.raises(annulus_db.InvalidRequestError, match="operation 2"):
        annulus_client.batch([Delete(names[0], {"id": 2}), Put(names[1], {"id": 1, "size": 3})])
    assert products.get(id=2) is not None


def test_statements_of_cql_by_pages(annulus_client, annulus_keyspace, products):
    products.insert({"id": at, "name": f"n{at}"} for at in range(10, 1_010))
    answer = annulus_client.cql("SELECT id, name FROM products", keyspace=annulus_keyspace, page_size=300)
    assert [column.name for column in answer.columns] == ["id", "name"]
    assert sorted(ids(answer)) == [1, 2, 3, *range(10, 1_010)]
    one = annulus_client.cql("SELECT name FROM products WHERE id = ?", [12], keyspace=annulus_keyspace).one()
    assert one == {"name": "n12"}
    named = annulus_client.cql(
        "SELECT name FROM products WHERE id = :id", {"id": 13}, keyspace=annulus_keyspace
    )
    assert named.all() == [{"name": "n13"}]


def test_frames_and_tables_go_in_and_come_out(table, products):
    rng = random.Random(5)
    frame = pandas.DataFrame(
        {
            "id": range(1_500),
            "name": [None if at % 7 == 0 else f"n{at}" for at in range(1_500)],
            "v": [[rng.random() for _ in range(3)] for _ in range(1_500)],
        }
    )
    types = {"id": "int", "name": "text", "v": "vector<float, 3>"}
    first, second = table("first", types, ["id"]), table("second", types, ["id"])
    assert first.insert(frame).written == 1_500
    assert second.insert(pyarrow.Table.from_pandas(frame, preserve_index=False)).written == 1_500
    for each in (first, second):
        assert each.get(id=14)["name"] is None
        assert each.get(id=15)["v"] == pytest.approx(frame["v"][15], abs=1e-6)
    found = products.search([1, 0, 0], limit=2)
    assert list(found.to_pandas()["name"]) == ["tea", "cocoa"]
    assert found.to_arrow()["price"].to_pylist() == [4, 5]


def test_errors_name_the_thing_and_the_remedy(annulus_client, annulus_keyspace, products):
    with pytest.raises(annulus_db.InvalidRequestError, match="colr") as raised:
        products.insert([{"id": 1, "colr": "red"}])
    assert raised.value.hint
    with pytest.raises(annulus_db.InvalidRequestError):
        products.search([1, 0])
    with pytest.raises(annulus_db.NotFoundError, match="there is no table"):
        annulus_client.table(f"{annulus_keyspace}.absent").get(id=1)
    with pytest.raises(annulus_db.InvalidRequestError):
        annulus_client.cql("SELEC")
    with pytest.raises(annulus_db.RequestError):
        annulus_client.create_table(f"{annulus_keyspace}.products", COLUMNS, ["id"])


def test_the_schema_is_shown_and_dropped(annulus_client, annulus_keyspace, products):
    assert annulus_client.schema()["keyspaces"][annulus_keyspace]["tables"]["products"] == products.schema()
    schema = products.schema()
    assert {column["name"]: column["type"] for column in schema["columns"]} == COLUMNS
    assert schema["key"] == {"partition": ["id"], "clustering": []}
    names = {index["name"] for index in schema["indexes"]}
    assert names == {"products_v", "products_about", "products_price_idx"}
    annulus_client.create_table(f"{annulus_keyspace}.products", COLUMNS, ["id"], if_not_exists=True)
    products.create_index("v", "vector", name="products_v", if_not_exists=True)
    products.drop_index("products_about")
    with pytest.raises(annulus_db.InvalidRequestError):
        products.search(text="tea")
    products.drop_index("products_about", if_exists=True)
    annulus_client.drop_table(f"{annulus_keyspace}.products")
    annulus_client.drop_table(f"{annulus_keyspace}.products", if_exists=True)
    with pytest.raises(annulus_db.NotFoundError):
        products.get(id=1)


def test_the_asynchronous_client_does_the_same(annulus_server, annulus_keyspace):
    async def work():
        async with annulus_server.async_client() as client:
            table = await client.create_table(f"{annulus_keyspace}.products", COLUMNS, ["id"])
            await table.create_index("v", "vector")
            await table.insert(ROWS)
            rows = await asyncio.gather(*(table.get(id=1 + at % 3) for at in range(60)))
            found = await table.search([1, 0, 0], limit=2)
            answer = await client.cql(f"SELECT id FROM {annulus_keyspace}.products", page_size=1)
            return rows, found, [row["id"] async for row in answer]

    rows, found, listed = asyncio.run(work())
    assert ids(rows) == [1 + at % 3 for at in range(60)]
    assert ids(found) == [1, 2] and sorted(listed) == [1, 2, 3]


def test_threads_share_a_client(products):
    failures = []

    def write(first):
        try:
            for at in range(first, first + 50):
                products.insert([{"id": at, "name": str(at)}])
                assert products.get(id=at)["name"] == str(at)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(1_000 * at,)) for at in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
