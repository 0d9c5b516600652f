"""`annulus store` has no tables: each route for them is answered by 404 with the reason."""

import json

import pytest
from conftest import GUARD, Api
from stores import Store

REASON = "an index service, which has no tables"


@pytest.fixture(scope="module")
def service(server, tmp_path_factory):
    """An index service whose database is the server under test, and its client of HTTP."""
    with Store([server], tmp_path_factory.mktemp("store")) as store:
        yield store, Api(store)
        assert store.stop() == 0


@pytest.mark.parametrize(
    "method,path",
    [
        ("PUT", "/tables/ks/t/rows"),
        ("GET", "/tables/ks/t/rows?id=2"),
        ("DELETE", "/tables/ks/t/rows?id=2"),
        ("POST", "/tables/ks/t/search"),
        ("GET", "/tables/ks/t"),
        ("PUT", "/tables/ks/t"),
        ("PUT", "/tables/ks/t/indexes/by_v"),
        ("DELETE", "/tables/ks/t/indexes/by_v"),
        ("POST", "/batch"),
        ("POST", "/cql"),
        ("GET", "/schema"),
        ("PUT", "/keyspaces/ks"),
    ],
)
def test_a_route_of_tables_is_answered_with_the_reason(service, method, path):
    _, api = service
    body = None if method in ("GET", "DELETE") else {}
    # Whether or not the request may change something: nothing of it is looked at.
    for headers in (GUARD, {}):
        status, sent, answer = api.raw(method, path, body, headers)
        assert (status, sent.get_content_type()) == (404, "application/json"), answer
        assert set(answer) == {"error", "hint"} and REASON in answer["error"] and "annulus serve" in answer["hint"]


def test_the_index_service_answers_its_own_routes(service):
    store, _ = service
    assert json.loads(store.http("/api/v1/indexes")[1]) == []
    paths = json.loads(store.http("/api-docs/openapi.json")[1])["paths"]
    assert "/api/v1/indexes/{keyspace}/{index}/ann" in paths
    assert not any(path.startswith(("/api/v1/tables/", "/api/v1/cql", "/api/v1/schema")) for path in paths)
