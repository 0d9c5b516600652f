"""Filters beside a plain reading of what they mean, on made documents."""

import random
from datetime import UTC, datetime, timedelta

import numpy
import pytest
from langchain_core.documents import Document
from words import WordEmbeddings

from langchain_annulus import AnnulusVectorStore

EMBEDDINGS = WordEmbeddings(16)
COLUMNS = {
    "year": int,
    "price": float,
    "author": str,
    "new": bool,
    "at": datetime,
    "tags": list[str],
    "codes": list[int],
}
TIMES = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=400 * n) for n in range(6)]
AUTHORS = ["Ann", "Bo", "Ünal", "zoë", "", "漢字"]
TAGS = ["a", "b", "c", "d"]
QUERY = "w3 w5"


def made(rng, number):
    """A document with each field present four times of five."""
    fields = {
        "year": rng.choice([1990, 1995, 2000, 2**53 + 1, -3]),
        "price": rng.choice([0.0, -0.0, 1.5, 2, -7.25, float("inf")]),
        "author": rng.choice(AUTHORS),
        "new": rng.random() < 0.5,
        "at": rng.choice(TIMES),
        "tags": rng.sample(TAGS, rng.randrange(4)),
        "codes": [rng.randrange(4) for _ in range(rng.randrange(3))],
        "kind": rng.choice(["x", "y", "z" * 300]),
        "size": rng.choice([1, 1.0, 2.5, True, "1", 2**60, None]),
        "parts": rng.choice([["p", 1, 2.0], ["q", True], [], "p"]),
    }
    words = " ".join(f"w{rng.randrange(12)}" for _ in range(4))
    return Document(words, id=str(number), metadata={k: v for k, v in fields.items() if rng.random() < 0.8})


DOCUMENTS = [made(random.Random(number), number) for number in range(300)]


@pytest.fixture(scope="module")
def stores(session):
    """A store without namespaces, and one with them whose other namespaces are full, too."""
    at = {"session": session, "keyspace": "langchain", "metadata_columns": COLUMNS}
    plain = AnnulusVectorStore(EMBEDDINGS, table="filters", **at)
    tenant = AnnulusVectorStore(EMBEDDINGS, table="filters_of_tenants", namespace="one", **at)
    for store in (plain, tenant, tenant.for_namespace("two")):
        store.add_documents(DOCUMENTS)
    return {"plain": plain, "namespace": tenant}


def same(one, other):
    """Whether values are equal in kind and value: a bool is no number."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def comparable(one, other):
    numbers = (int, float)
    return type(one) is type(other) or (isinstance(one, numbers) and isinstance(other, numbers))


HOLDS = {
    "$eq": lambda value, wanted: same(value, wanted),
    "$ne": lambda value, wanted: not same(value, wanted),
    "$gt": lambda value, wanted: comparable(value, wanted) and value > wanted,
    "$gte": lambda value, wanted: comparable(value, wanted) and value >= wanted,
    "$lt": lambda value, wanted: comparable(value, wanted) and value < wanted,
    "$lte": lambda value, wanted: comparable(value, wanted) and value <= wanted,
    "$in": lambda value, wanted: any(same(value, one) for one in wanted),
    "$nin": lambda value, wanted: not any(same(value, one) for one in wanted),
    "$contains": lambda value, wanted: isinstance(value, list) and any(same(one, wanted) for one in value),
}


def satisfies(metadata, wanted):
    for name, value in wanted.items():
        if name == "$and":
            holds = all(satisfies(metadata, part) for part in value)
        elif name == "$or":
            holds = any(satisfies(metadata, part) for part in value)
        else:
            relations = value if isinstance(value, dict) else {"$eq": value}
            found = metadata.get(name)
            holds = found is not None and all(HOLDS[operator](found, one) for operator, one in relations.items())
        if not holds:
            return False
    return True


def score(text):
    one, other = numpy.array(EMBEDDINGS.embed_query(QUERY)), numpy.array(EMBEDDINGS.embed_query(text))
    return (1 + float(one @ other)) / 2


SCORES = {document.id: score(document.page_content) for document in DOCUMENTS}


def check(store, wanted, k):
    """Compares a search with the true answer, by scores where texts are equally near."""
    matching = [document for document in DOCUMENTS if satisfies(document.metadata, wanted)]
    found = store.similarity_search_with_score(QUERY, k=k, filter=wanted)
    by_id = {document.id: document for document in DOCUMENTS}
    assert all(document == by_id[document.id] for document, _ in found)
    assert all(satisfies(document.metadata, wanted) for document, _ in found), wanted
    assert len({document.id for document, _ in found}) == len(found), wanted
    expected = sorted((SCORES[document.id] for document in matching), reverse=True)[:k]
    assert [number for _, number in found] == pytest.approx(expected, abs=1e-5), wanted


ONE_FIELD = [
    {"year": 1990},
    {"year": 1990.0},
    {"year": {"$ne": 2000}},
    {"year": {"$nin": [1990, 2000, 7]}},
    {"year": {"$gt": 1990}},
    {"year": {"$gte": 1990, "$lt": 2000}},
    {"year": {"$gt": 1990, "$lt": 1991}},
    {"year": {"$in": [1990, 2**53 + 1, 12]}},
    {"year": {"$in": []}},
    {"year": {"$nin": []}},
    {"year": {"$in": [1990, 1995], "$gt": 1990}},
    {"year": {"$lte": -3}},
    {"price": 0},
    {"price": {"$gte": 0.0}},
    {"price": {"$lt": 0}},
    {"price": {"$gt": 2}},
    {"price": {"$ne": 1.5}},
    {"author": "Ünal"},
    {"author": ""},
    {"author": {"$gt": "zo"}},
    {"author": {"$nin": []}},
    {"price": {"$nin": []}},
    {"at": {"$nin": []}},
    {"author": {"$nin": ["Ann", "漢字"]}},
    {"new": True},
    {"new": {"$ne": True}},
    {"new": {"$in": [True, False]}},
    {"new": {"$nin": [True, False]}},
    {"at": {"$gte": TIMES[3]}},
    {"at": TIMES[1]},
    {"at": {"$lt": TIMES[4].astimezone().replace(tzinfo=None).astimezone()}},
    {"tags": {"$contains": "a"}},
    {"codes": {"$contains": 3}},
    {"kind": "x"},
    {"kind": "z" * 300},
    {"kind": {"$in": ["x", "z" * 300]}},
    {"size": 1},
    {"size": True},
    {"size": "1"},
    {"size": 2**60},
    {"size": {"$in": [2.5, True]}},
    {"parts": {"$contains": 2}},
    {"parts": {"$contains": True}},
    {"parts": "p"},
    {"no such": "x"},
]

SEVERAL_FIELDS = [
    {},
    {"year": 1990, "author": "Ann"},
    {"$and": [{"tags": {"$contains": "a"}}, {"tags": {"$contains": "b"}}]},
    {"$and": [{"year": {"$gt": 0}}, {"year": {"$gt": 1991}}, {"year": {"$lte": 2000}}]},
    {"$and": [{"year": 1990}, {"year": 1995}]},
    {"$and": [{"kind": "x"}, {"kind": "y"}]},
    {"kind": "x", "size": 1, "parts": {"$contains": "p"}},
    {"$or": [{"year": 1990}, {"author": "Ann"}, {"kind": "x"}]},
    {"$or": [{"$and": [{"year": {"$ne": 1990}}, {"new": True}]}, {"kind": {"$in": ["x", "y"]}}], "price": {"$gte": 0}},
    {"author": {"$ne": "Ann"}, "year": {"$ne": 1990}, "price": {"$ne": 2}},
]


@pytest.mark.parametrize("kind", ["plain", "namespace"])
@pytest.mark.parametrize("wanted", ONE_FIELD + SEVERAL_FIELDS, ids=lambda wanted: str(wanted)[:60])
def test_filters(stores, kind, wanted):
    for k in (3, len(DOCUMENTS)):
        check(stores[kind], wanted, k)


def random_filter(rng, depth=0):
    if depth < 2 and rng.random() < 0.4:
        return {rng.choice(["$and", "$or"]): [random_filter(rng, depth + 1) for _ in range(rng.randrange(1, 4))]}
    return rng.choice(ONE_FIELD) | (rng.choice(ONE_FIELD) if rng.random() < 0.3 else {})


@pytest.mark.parametrize("kind", ["plain", "namespace"])
def test_random_filters(stores, kind):
    for seed in range(40):
        wanted = random_filter(random.Random(seed))
        try:
            check(stores[kind], wanted, 10)
        except ValueError as refused:
            assert "alternatives" in str(refused)


async def test_filters_by_async_calls(stores):
    for wanted in SEVERAL_FIELDS:
        for store in stores.values():
            found = await store.asimilarity_search_with_score(QUERY, k=20, filter=wanted)
            assert found == store.similarity_search_with_score(QUERY, k=20, filter=wanted)


@pytest.mark.parametrize("namespace", [{}, {"namespace": "one"}])
async def test_deletes_by_filter(place, namespace):
    store = AnnulusVectorStore(EMBEDDINGS, metadata_columns=COLUMNS, **place, **namespace)
    left = DOCUMENTS[:150]
    store.add_documents(left)
    for number, wanted in enumerate(
        ({"year": {"$ne": 1990}, "new": True}, {"$or": [{"kind": "x"}, {"price": 2}]}, {"no": 1})
    ):
        if number % 2:
            await store.adelete(filter=wanted)
        else:
            store.delete(filter=wanted)
        left = [document for document in left if not satisfies(document.metadata, wanted)]
        assert {document.id for document in store.similarity_search(QUERY, k=150)} == {document.id for document in left}


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"year": "1990"}, TypeError, "'year' is declared as int, and '1990' is of type str"),
        ({"year": True}, TypeError, "'year' is declared as int, and True is of type bool"),
        ({"year": 2.5}, TypeError, "'year' is declared as int, and 2.5 is of type float"),
        ({"year": 2**63}, ValueError, "'year' is declared as int, which has 64 bits"),
        ({"year": {"$like": "1%"}}, ValueError, r"there is no operator \$like for 'year': it takes \$eq"),
        ({"tags": {"$regex": 1}}, ValueError, r"there is no operator \$regex for 'tags': it takes \$contains"),
        ({"year": {"$contains": 1}}, ValueError, r"'year' is no list, so it takes no \$contains: it takes \$eq"),
        ({"price": float("nan")}, ValueError, "'price' compares with a number: NaN is none"),
        ({"price": True}, TypeError, "'price' is declared as float, and True is of type bool"),
        ({"price": 2**53 + 1}, TypeError, "'price' is declared as float, and 9007199254740993 is of type int"),
        ({"new": {"$gt": False}}, ValueError, r"'new' is a bool, which takes no \$gt"),
        ({"tags": "a"}, ValueError, r"'tags' is a list, which takes \$contains, not \$eq"),
        ({"tags": {"$contains": 1}}, TypeError, "'tags' is declared as str, and 1 is of type int"),
        ({"year": {"$in": 1990}}, TypeError, r"\$in takes a list of values, unlike 1990"),
        ({"size": {"$gt": 1}}, ValueError, r"\$gt needs a column of its own: declare 'size' with its type"),
        ({"size": {"$nin": [1]}}, ValueError, r"\$nin needs a column of its own"),
        ({"size": None}, TypeError, "'size' compares with a str, int, float or bool, unlike None"),
        ({"size": {"$like": 1}}, ValueError, r"there is no operator \$like for 'size', which isn't declared"),
        ({"$not": {"year": 1}}, ValueError, r"there is no \$not: filters are joined by \$and and \$or"),
        ({"$or": []}, ValueError, r"\$or takes a list of filters that isn't empty"),
        (lambda document: True, TypeError, "a filter can't be a function, as the database applies it: write a mapping"),
        (["year"], TypeError, "a filter is a mapping, such as"),
        ({"size": {"$in": list(range(100))}}, ValueError, "more than 64 alternatives"),
    ],
    ids=str,
)
def test_filters_that_are_refused(stores, wanted, error, message):
    with pytest.raises(error, match=message):
        stores["plain"].similarity_search(QUERY, filter=wanted)


def test_fields_that_filters_can_ask_for(place):
    store = AnnulusVectorStore(EMBEDDINGS, filterable=["kind"], **place)
    store.add_documents([Document("w1", metadata={"kind": "x", "size": 1})])
    assert store.similarity_search("w1", filter={"kind": "x"})[0].metadata == {"kind": "x", "size": 1}
    with pytest.raises(ValueError, match="'size' is neither in metadata_columns nor in filterable"):
        store.similarity_search("w1", filter={"size": 1})
