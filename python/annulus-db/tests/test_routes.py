"""What requests say, and what answers mean, with a server that answers what a test says."""

import asyncio
import datetime
import json
import uuid

import numpy
import pandas
import pytest

from annulus_db import AsyncClient, Client, Count, Delete, Hit, InvalidRequestError, Put, Query, Ranking, Search

ROWS = "/api/v1/tables/shop/products/rows"
SEARCH = "/api/v1/tables/shop/products/search"


@pytest.fixture
def client(scripted):
    with Client(scripted.url, keyspace="shop") as client:
        yield client


@pytest.fixture
def products(client):
    return client.table("products")


def request(scripted):
    """The only request that came: method, path and body."""
    (noted,) = scripted.requests
    scripted.requests.clear()
    return noted.method, noted.path, noted.body


def test_rows_are_put(scripted, products):
    scripted.answers.append((200, {"written": 2, "warnings": ["large"]}))
    rows = [{"id": 1, "v": numpy.array([1, 0.5]), "Name": "x"}, {"id": 2, "at": datetime.date(2026, 1, 2)}]
    written = products.insert(rows, ttl=60)
    assert (written.written, written.applied, written.warnings) == (2, [], ["large"])
    sent = [{"id": 1, "v": [1, 0.5], '"Name"': "x"}, {"id": 2, "at": "2026-01-02"}]
    assert request(scripted) == ("PUT", ROWS, {"rows": sent, "ttl": 60})


def test_conditional_rows_say_which_were_written(scripted, products):
    scripted.answers.append((200, {"applied": [True, False]}))
    written = products.insert([{"id": 1}, {"id": 2}], if_not_exists=True)
    assert (written.written, written.applied) == (1, [True, False])
    assert request(scripted)[2] == {"rows": [{"id": 1}, {"id": 2}], "if_not_exists": True}


def test_many_rows_are_put_by_several_requests(scripted, products):
    scripted.answers += [(200, {"written": 1_000}), (200, {"written": 1_000}), (200, {"written": 500})]
    assert products.insert({"id": at} for at in range(2_500)).written == 2_500
    sent = [[row["id"] for row in noted.body["rows"]] for noted in scripted.requests]
    assert [len(ids) for ids in sent] == [1_000, 1_000, 500]
    assert sum(sent, []) == list(range(2_500))


def test_large_rows_are_put_by_several_requests(scripted, products):
    scripted.answers += [(200, {"written": 1})] * 3
    products.insert([{"id": at, "text": "x" * 600_000} for at in range(3)])
    assert [len(noted.body["rows"]) for noted in scripted.requests] == [1, 1, 1]


def test_no_rows_need_no_request(scripted, products):
    assert products.insert([]).written == 0
    assert products.insert(pandas.DataFrame({"id": []})).written == 0
    assert scripted.requests == []


def test_a_request_that_fails_ends_an_insert(scripted, products):
    scripted.answers += [(200, {"written": 1_000}), (400, {"error": "row 1: no", "hint": "do"})]
    with pytest.raises(InvalidRequestError, match="row 1: no; do"):
        products.insert({"id": at} for at in range(3_000))
    assert len(scripted.requests) == 2


def test_a_row_is_read_by_its_key(scripted, products):
    of = uuid.UUID(int=1)
    scripted.answers += [(200, {"rows": [{"id": 1, '"Name"': "x"}]}), (200, {"rows": []})]
    assert products.get(id=of, name="a b&c") == {"id": 1, "Name": "x"}
    path = f"{ROWS}?id={of}&name=a+b%26c&page_size=1"
    assert request(scripted) == ("GET", path, None)
    assert products.get({"id": 2}) is None
    with pytest.raises(ValueError, match="named by its key"):
        products.get()


def test_rows_of_a_partition_come_by_pages(scripted, products):
    scripted.answers += [(200, {"rows": [{"id": 1}], "page_state": "s-1"}), (200, {"rows": [{"id": 2}]})]
    assert products.rows({"id": 1}, columns=["id", "name"], page_size=1).all() == [{"id": 1}, {"id": 2}]
    paths = [noted.path for noted in scripted.requests]
    assert paths == [
        f"{ROWS}?id=1&columns=id%2Cname&page_size=1",
        f"{ROWS}?id=1&columns=id%2Cname&page_size=1&page_state=s-1",
    ]


def test_a_row_is_deleted_by_its_key(scripted, products):
    scripted.answers.append((200, {"deleted": True}))
    assert products.delete(id=True) is None
    assert request(scripted) == ("DELETE", f"{ROWS}?id=true", None)


def test_names_are_quoted_in_paths(scripted, client):
    scripted.answers.append((200, {"deleted": True}))
    client.table("Käse.a/b").delete(id=1)
    assert request(scripted)[1] == "/api/v1/tables/K%C3%A4se/a%2Fb/rows?id=1"
    with pytest.raises(ValueError, match="keyspace.table"):
        Client(scripted.url).table("products")


def test_a_batch_has_operations(scripted, client):
    scripted.answers.append((200, {"written": 2}))
    assert client.batch([Put("products", {"id": 1, "N": 2}, ttl=5), Delete("logs.days", {"id": 2})]).written == 2
    place, other = {"keyspace": "shop", "table": "products"}, {"keyspace": "logs", "table": "days"}
    operations = [{"put": {**place, "row": {"id": 1, '"N"': 2}, "ttl": 5}}, {"delete": {**other, "key": {"id": 2}}}]
    assert request(scripted) == ("POST", "/api/v1/batch", {"operations": operations})


def test_a_search_says_only_what_is_wanted(scripted, products):
    scripted.answers.append((200, {"rows": [{"id": 2}, {"id": 1}]}))
    found = products.search(numpy.array([1.0, 0.0]), limit=2, filter={"price": {"lt": 10}})
    assert [row["id"] for row in found] == [2, 1] and len(found) == 2 and found[0] == {"id": 2}
    sent = {"vector": [1, 0], "limit": 2, "filter": {"price": {"lt": 10}}}
    assert request(scripted) == ("POST", SEARCH, sent)
    with pytest.raises(ValueError, match="looks for something"):
        products.search(limit=3)


def test_a_search_says_all_that_is_wanted(scripted, products):
    scripted.answers.append((200, {"rows": []}))
    products.search(
        queries=[Query(vector=(1, 2), column="v", weight=0.5), Query(text="tea", score_threshold=1)],
        rank=Ranking(by="rrf", candidates=200),
        columns=["id"],
        with_vector=["v"],
        offset=5,
        score_threshold=0.5,
        counts=["colour"],
        among=100,
        explain=True,
        exact=True,
        allow_filtering=False,
    )
    assert request(scripted)[2] == {
        "queries": [{"vector": [1, 2], "column": "v", "weight": 0.5}, {"text": "tea", "score_threshold": 1}],
        "rank": {"by": "rrf", "candidates": 200},
        "columns": ["id"],
        "with_vector": ["v"],
        "offset": 5,
        "score_threshold": 0.5,
        "counts": ["colour"],
        "among": 100,
        "explain": True,
        "exact": True,
        "allow_filtering": False,
    }


def test_several_searches_share_a_request(scripted, products):
    scripted.answers.append((200, {"answers": [{"rows": [{"id": 1}]}, {"rows": []}]}))
    first, second = products.search_many([Search(row={"id": 2}, limit=1), Search(query="tea OR cocoa")])
    assert (first.rows, second.rows) == ([{"id": 1}], [])
    assert request(scripted)[2] == {"searches": [{"row": {"id": 2}, "limit": 1}, {"query": "tea OR cocoa"}]}


def test_an_answer_says_why_a_row_is_where_it_is_and_counts(scripted, products):
    hit = {"column": "v", "by": "vector", "score": 0.9, "rank": 1, "weight": 2}
    counts = {"colour": [{"value": "red", "count": 2}, {"value": None, "count": 1}]}
    answer = {"rows": [{"id": 1}], "scores": [0.9], "explain": [[hit]], "counts": counts, "warnings": ["slow"]}
    scripted.answers.append((200, answer))
    found = products.search([1, 0], counts=["colour"], explain=True)
    assert (found.scores, found.explain, found.warnings) == ([0.9], [[Hit("v", "vector", 0.9, 1, 2)]], ["slow"])
    assert found.counts == {"colour": [Count("red", 2), Count(None, 1)]}


def test_answers_become_frames_and_tables(scripted, products):
    scripted.answers.append((200, {"rows": [{"id": 1, "name": "tea"}]}))
    found = products.search(text="tea")
    assert found.to_pandas().to_dict("records") == found.to_arrow().to_pylist() == [{"id": 1, "name": "tea"}]
    assert list(found.to_pandas(["name"]).columns) == ["name"]


def test_definitions_have_bodies(scripted, client):
    scripted.answers += [(200, {"done": True})] * 6
    client.create_keyspace("k", if_not_exists=True)
    assert request(scripted) == ("PUT", "/api/v1/keyspaces/k", {"if_not_exists": True})
    columns = {"a": "int", "b": "text static", "day": "int", "v": "vector<float, 3>"}
    table = client.create_table("t", columns, [["a"], "day"], order={"day": "desc"}, options={"comment": "x"})
    body = {
        "columns": [
            {"name": "a", "type": "int"},
            {"name": "b", "type": "text", "static": True},
            {"name": "day", "type": "int"},
            {"name": "v", "type": "vector<float, 3>"},
        ],
        "key": {"partition": ["a"], "clustering": [{"column": "day", "order": "desc"}]},
        "options": {"comment": "x"},
    }
    assert request(scripted) == ("PUT", "/api/v1/tables/shop/t", body)
    table.create_index("v", "vector", filter_columns=["b"])
    sent = {"column": "v", "kind": "vector", "filter_columns": ["b"]}
    assert request(scripted) == ("PUT", "/api/v1/tables/shop/t/indexes/t_v_idx", sent)
    table.drop_index("t_v_idx", if_exists=True)
    assert request(scripted) == ("DELETE", "/api/v1/tables/shop/t/indexes/t_v_idx?if_exists=true", None)
    client.drop_table("t")
    assert request(scripted) == ("DELETE", "/api/v1/tables/shop/t", None)
    client.drop_keyspace("k")
    assert request(scripted) == ("DELETE", "/api/v1/keyspaces/k", None)


def test_a_key_of_another_form_is_refused(client):
    for key, order in [("id", None), ([], None), (["id"], {"id": "desc"})]:
        with pytest.raises(ValueError, match="key"):
            client.create_table("t", {"id": "int"}, key, order=order)


def test_the_schema_is_read(scripted, client):
    table = {"columns": [], "key": {"partition": [], "clustering": []}, "indexes": []}
    keyspaces = {"keyspaces": {"shop": {"tables": {"t": table}}}}
    scripted.answers += [(200, keyspaces), (200, table)]
    assert client.schema("shop") == keyspaces
    assert request(scripted) == ("GET", "/api/v1/schema?keyspace=shop", None)
    assert client.table("t").schema() == table
    assert request(scripted) == ("GET", "/api/v1/tables/shop/t", None)


def pages():
    columns = [{"name": "id", "type": "int"}, {"name": "Name", "type": "text"}]
    first = {"columns": columns, "rows": [{"id": 1, '"Name"': "a"}], "page_state": "s"}
    return [(200, first), (200, {"columns": columns, "rows": [{"id": 2, '"Name"': None}]})]


def test_pages_of_a_statement_are_fetched_as_they_are_needed(scripted, client):
    scripted.answers += pages()
    answer = client.cql("SELECT * FROM t WHERE id > ?", [uuid.UUID(int=1)], page_size=1)
    assert len(scripted.requests) == 1 and [column.name for column in answer.columns] == ["id", "Name"]
    assert answer.all() == [{"id": 1, "Name": "a"}, {"id": 2, "Name": None}]
    query = {"query": "SELECT * FROM t WHERE id > ?", "parameters": [str(uuid.UUID(int=1))], "keyspace": "shop"}
    bodies = [noted.body for noted in scripted.requests]
    assert bodies == [{**query, "page_size": 1}, {**query, "page_size": 1, "page_state": "s"}]
    scripted.answers += pages()
    assert client.cql("SELECT * FROM t", {"a": 1}).one() == {"id": 1, "Name": "a"}
    assert scripted.requests[-1].body["parameters"] == {"a": 1}
    scripted.answers[:] = pages()
    table = client.cql("SELECT * FROM t").to_arrow()
    assert table.column_names == ["id", "Name"] and table.num_rows == 2


def test_a_statement_without_rows(scripted, client):
    scripted.answers.append((200, {"rows": []}))
    answer = client.cql("CREATE TABLE t (id int PRIMARY KEY)")
    assert answer.all() == [] and answer.one() is None and answer.columns == []
    assert list(answer.to_pandas().columns) == []


def test_the_asynchronous_client_reads_the_same(scripted):
    async def work():
        async with AsyncClient(scripted.url, keyspace="shop") as client:
            products = client.table("products")
            scripted.answers += pages()
            answer = await client.cql("SELECT * FROM t")
            rows = [row async for row in answer]
            scripted.answers[:] = pages()
            frame = await (await client.cql("SELECT * FROM t")).to_pandas()
            scripted.answers.append((200, {"rows": [{"id": 1}]}))
            found = await products.search([1, 0], counts=["colour"])
            scripted.answers += [(200, {"written": 1_000}), (200, {"written": 1})]
            written = await products.insert({"id": at} for at in range(1_001))
            scripted.answers.append((200, {"rows": [{"id": 7}]}))
            return rows, frame, found, written, await products.get(id=7)

    rows, frame, found, written, row = asyncio.run(work())
    assert rows == [{"id": 1, "Name": "a"}, {"id": 2, "Name": None}]
    assert list(frame["id"]) == [1, 2]
    assert found.rows == [{"id": 1}] and written.written == 1_001 and row == {"id": 7}
    assert json.loads(json.dumps(scripted.requests[4].body)) == {"vector": [1, 0], "counts": ["colour"]}
