"""The table of cases: filters of every kind, on every kind of column, of a table whose columns are
of one CQL type, with what brute force finds there."""

import json
import os
import random

import relations as rel
from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent
from cassandra.metadata import Murmur3Token
from cassandra.query import SimpleStatement
from edges import BY_NAME, INT

ROWS = 150
VALUES_EACH = int(os.environ.get("VALUES_EACH", 1))
"""The number of relations with other values for each operator and column."""

MIXED = ("f", "c")
"""Columns that only a request over HTTP compares together, as one is none of the key."""

LIMITS = (1, 3, 10, 1000)
TEXT = BY_NAME["text"]


KEY = ("p", "q", "c", "d")
OF_KEPT = ("f", "st")
"""The columns beside the key that a statement for the index alone selects."""


class Index:
    """An index on one of the vector columns, which all hold the same vectors. `key` are the columns
    of a local index, and `keeps` says whether the index names the other columns."""

    def __init__(self, name, column, key=(), keeps=True):
        self.name, self.column, self.key, self._keeps = name, column, key, keeps

    def target(self, table):
        parts = [f"({', '.join(self.key)})"] if self.key else []
        return ", ".join([*parts, self.column, *self.declared(table)])

    def declared(self, table):
        return [column for column in table.others if column not in self.key] if self._keeps else []

    def can_be_made(self, table):
        """Whether the columns that the index names may be in one."""
        is_key_only = not self._keeps and set(self.key) <= set(table.PARTITION)
        return table.cql_type.can_be_declared or is_key_only

    def keeps(self, table, columns):
        return columns <= {*table.PARTITION, *table.CLUSTERING, *self.key, *self.declared(table)}


INDEXES = [
    Index("global", "v"),
    Index("global_of_vectors_alone", "w", keeps=False),
    Index("local", "x", ("p",)),
    Index("local_of_vectors_alone", "y", ("p", "q"), keeps=False),
    Index("local_by_a_regular_column", "z", ("f",)),
]


OWN_INDEXES = ["f", "st", "c", "l", "s", "VALUES(m)", "KEYS(m)", "ENTRIES(m)", "KEYS(k)", "ENTRIES(k)", "FULL(fl)"]
"""The targets of secondary indexes, which make their columns such as an index on vectors names."""


class WithOwnIndexes(Index):
    """The index of vectors alone, on a table whose other columns have indexes of their own."""

    def __init__(self):
        super().__init__("global_of_vectors_alone", "w")


class Table:
    """A table with a column of each kind, all of one type, and the model of its rows."""

    PARTITION, CLUSTERING = ("p", "q"), ("c", "d")

    def __init__(self, cql_type, keyspace, name):
        self.cql_type, self.keyspace, self.name = cql_type, keyspace, name
        self.rng = random.Random(name)
        key, t = cql_type.key, cql_type
        self.types = {"p": key, "q": INT, "c": key, "d": key, "f": t, "st": t}
        # (of the keys, of the elements)
        self.parts = {"l": (None, t), "s": (None, key), "m": (TEXT, t), "k": (key, INT), "fl": (None, t)}
        self.others = ["f", "st", *self.parts]
        self.indexes = [index for index in INDEXES if index.can_be_made(self)]
        self.rows = self._random_rows()

    def equality(self, column):
        """How two values of a column are equal: in the partition key if their bytes are."""
        cql_type = self.types[column]
        if column in self.PARTITION:
            return lambda left, right: cql_type.serialize(left) == cql_type.serialize(right)
        return cql_type.is_equal

    def token(self, row):
        parts = [self.types[column].serialize(row[column]) for column in self.PARTITION]
        return Murmur3Token.hash_fn(b"".join(len(part).to_bytes(2) + part + b"\0" for part in parts))

    def count(self, index):
        """The number of rows that an index holds: those with a vector and all columns of its key."""
        return sum(all(row[column] is not None for column in ("vector", *index.key)) for row in self.rows)

    def _random_rows(self):
        rows, statics = {}, {}
        for number in range(ROWS):
            row = {column: self._random(column) for column in ("p", "c", "d")}
            row["q"] = self.rng.randrange(3)
            partition = tuple(self.types[column].serialize(row[column]) for column in self.PARTITION)
            row["st"] = statics.setdefault(partition, self._or_null(lambda: self._random("st")))
            key = (partition, *(self.types[column].order(row[column]) for column in self.CLUSTERING))
            row["f"] = self._or_null(lambda: self._random("f"))
            row |= {column: self._or_null(lambda: self.collection(column)) for column in self.parts}
            # Two rows each are as far from a query.
            row["vector"] = None if self.rng.random() < 0.05 else [number // 2, number % 2 * 2 - 1]
            row["id"] = number
            rows.setdefault(key, row)
        return list(rows.values())

    def _or_null(self, value):
        return None if self.rng.random() < 0.15 else value()

    def _random(self, column):
        return self.types[column].random(self.rng)

    def collection(self, column):
        """A random value of a collection column."""
        key, element = self.parts[column]
        elements = [element.random(self.rng) for _ in range(self.rng.randrange(1, 4))]
        if key is not None:
            return {key.random(self.rng): element for element in elements}
        return set(elements) if column == "s" else elements

    def create(self, session):
        """Makes the table with its indexes and rows. Half of the rows are there before the
        indexes."""
        types = {column: cql_type.name for column, cql_type in self.types.items()}
        types |= {"st": f"{types['st']} STATIC", "id": "int"}
        types |= {column: self._collection_type(column) for column in self.parts}
        types |= {index.column: "vector<float, 2>" for index in INDEXES}
        columns = ", ".join(" ".join(column) for column in types.items())
        session.execute(
            f"CREATE TABLE {self.keyspace}.{self.name} ({columns}, PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)"
        )
        self.insert(session, self.rows[::2])
        for index in self.indexes:
            session.execute(
                f"CREATE CUSTOM INDEX {self.index_name(index)} ON {self.keyspace}.{self.name} ({index.target(self)}) "
                "USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
            )
        self.insert(session, self.rows[1::2])

    def drop_indexes_but(self, session, kept):
        for index in self.indexes:
            if index.name != kept.name:
                session.execute(f"DROP INDEX {self.keyspace}.{self.index_name(index)}")

    def create_own_index(self, session, target):
        session.execute(f"CREATE CUSTOM INDEX ON {self.keyspace}.{self.name} ({target}) USING 'sai'")

    def index_name(self, index):
        return f"{self.name}_{index.name}"

    def _collection_type(self, column):
        key, element = self.parts[column]
        if key is not None:
            return f"map<{key.name}, {element.name}>"
        return {"l": "list<{}>", "s": "set<{}>", "fl": "frozen<list<{}>>"}[column].format(element.name)

    def insert(self, session, rows):
        columns = ["p", "q", "c", "d", "id", "f", *self.parts]
        vectors = [index.column for index in INDEXES]
        names, markers = ", ".join(columns + vectors), ", ".join("?" * len(columns + vectors))
        insert = session.prepare(f"INSERT INTO {self.keyspace}.{self.name} ({names}) VALUES ({markers})")
        static = session.prepare(f"UPDATE {self.keyspace}.{self.name} SET st = ? WHERE p = ? AND q = ?")
        writes = [(insert, [*(row[column] for column in columns), *[row["vector"]] * len(vectors)]) for row in rows]
        writes += [(static, [row["st"], row["p"], row["q"]]) for row in rows]
        send(session, writes)


def send(session, writes):
    """Sends idempotent writes. What a node of a cluster refuses as it does not know a new table yet
    is sent again."""
    for _ in range(100):
        results = execute_concurrent(session, writes, concurrency=16, raise_on_first_error=False)
        for is_done, error in results:
            if not is_done and "INCOMPATIBLE_SCHEMA" not in str(error):
                raise error
        writes = [write for write, (is_done, _) in zip(writes, results) if not is_done]
        if not writes:
            return
    raise AssertionError(f"{len(writes)} writes are refused for a table that a node does not know")


def relations(table):
    """Relations of every kind on every column of a table, with values that lie at the edges."""
    rng = table.rng
    for _ in range(VALUES_EACH):
        for column, cql_type in table.types.items():
            value = lambda: cql_type.random(rng)  # noqa: B023, E731
            for sign in rel.SIGNS if cql_type.can_be_declared else ["="]:
                yield rel.compare(table, column, sign, value())
            yield rel.is_in(table, column, [value() for _ in range(rng.randrange(1, 4))])
        pair = lambda: [table.types[column].random(rng) for column in table.CLUSTERING]  # noqa: E731
        for sign in rel.SIGNS:
            yield rel.compare_tuples(table, table.CLUSTERING, sign, pair())
            yield rel.token(table, sign, table.token(rng.choice(table.rows)))
        yield rel.in_tuples(table, table.CLUSTERING, [pair() for _ in range(3)])
        if table.cql_type.can_be_declared:
            mixed = lambda: [table.types[column].random(rng) for column in MIXED]  # noqa: E731
            for sign in rel.SIGNS:
                yield rel.compare_tuples(table, MIXED, sign, mixed())
            yield rel.in_tuples(table, MIXED, [mixed() for _ in range(3)])
        for column, (key, element) in table.parts.items():
            yield rel.contains(table, column, element.random(rng))
            if key is not None:
                yield rel.contains_key(table, column, key.random(rng))
                yield rel.entry(table, column, *present(table, column))
        yield rel.whole(table, "fl", present(table, "fl"))


def present(table, column):
    """What a row has in a collection column: an entry of a map, or all of a list."""
    held = [row[column] for row in table.rows if row[column]]
    found = table.rng.choice(held)
    return table.rng.choice(list(found.items())) if isinstance(found, dict) else found


class Search:
    """A search with a filter: some relations, a limit, and the place whose nearest rows are asked
    for."""

    def __init__(self, table, index, relations):
        self.table, self.index, self.relations = table, index, relations
        self.limit = table.rng.choice(LIMITS)
        self.vector = [table.rng.randrange(ROWS // 2), 0]
        self.columns = set().union(*(relation.columns for relation in relations))
        self.is_kept = index.keeps(table, self.columns)
        self._with_literals = table.rng.random() < 0.3

    def cql(self):
        """(text, values) of the statement for ids and scores; None if CQL has no such statement."""
        vector = "?" if not self._with_literals else str(self.vector)
        score = f"similarity_euclidean({self.index.column}, {vector}) AS score"
        return self._statement(f"id, {score}", [self.vector])

    def cql_of_kept(self):
        """(text, values) of the statement for columns that the index keeps, so that it answers
        alone at consistency ONE; None if it doesn't keep all, or CQL has no such statement."""
        kept = {*KEY, *OF_KEPT} <= {*KEY, *self.index.declared(self.table)}
        return self._statement(", ".join([*KEY, *OF_KEPT]), []) if kept and self.is_kept else None

    def _statement(self, selected, bound_before):
        restricted = [relation.columns for relation in self.relations]
        if sum(map(len, restricted)) > len(self.columns) or set(MIXED) in restricted:
            return None
        column, table = self.index.column, self.table
        vector = "?" if not self._with_literals else str(self.vector)
        where = [relation.with_literals() if self._with_literals else relation.text for relation in self.relations]
        text = (
            f"SELECT {selected} FROM {table.keyspace}.{table.name} "
            f"WHERE {' AND '.join(where)} ORDER BY {column} ANN OF {vector} LIMIT {self.limit}"
        )
        if not self.is_kept:
            text += " ALLOW FILTERING"
        if self._with_literals:
            return text, ()
        values = [value for relation in self.relations for value in relation.values]
        return text, (*bound_before, *values, self.vector)

    def body(self):
        """The body of the request over HTTP; None if there is none, as a value has no JSON, or that
        of a key which is an answer hasn't."""
        restrictions = [relation.json for relation in self.relations]
        keys = [self.key(row) for row in self.matching()]
        if not self.is_kept or None in restrictions or any(None in key for key in keys):
            return None
        # Equality of the key of a local index needs no permission.
        needs_it = any(not relation.key or not relation.key <= set(self.index.key) for relation in self.relations)
        filter = {"restrictions": restrictions, "allow_filtering": needs_it}
        return {"vector": self.vector, "limit": self.limit, "filter": filter, "return_columns": self.returned()}

    def returned(self):
        """The columns whose values a request wants beside the keys: the vector, and those that the
        index names, but for a map whose keys are no texts."""
        return [self.index.column, *(column for column in self.index.declared(self.table) if column != "k")]

    def value(self, row, column):
        """The value of a column in the JSON of an answer."""
        if column == self.index.column:
            return [float(element) for element in row["vector"]]
        table, value = self.table, row[column]
        if value is None:
            return None
        if column in table.types:
            return table.types[column].json_of_key(value)
        _, element = table.parts[column]
        if isinstance(value, dict):
            return {key: element.json_of_key(one) for key, one in value.items()}
        return [element.json_of_key(one) for one in (sorted(value, key=element.order) if isinstance(value, set) else value)]

    def key(self, row):
        """The primary key of a row in JSON."""
        return tuple(self.table.types[column].json_of_key(row[column]) for column in KEY)

    def matching(self):
        rows = self.table.rows
        return [row for row in rows if row["vector"] and all(relation.holds(row) for relation in self.relations)]

    def score(self, row):
        return 1 / (1 + sum((a - b) ** 2 for a, b in zip(row["vector"], self.vector)))

    def fault(self, found):
        """What is wrong with an answer, given as [(id, score)]; None if it is right."""
        matching = {row["id"]: self.score(row) for row in self.matching()}
        ids, scores = [id for id, _ in found], [score for _, score in found]
        if len(set(ids)) < len(ids):
            return f"a row comes twice: {ids}"
        if not set(ids) <= set(matching):
            wrong = [row for row in self.table.rows if row["id"] in set(ids) - set(matching)]
            return f"these rows don't match: {wrong or ids}"
        wanted = sorted(matching.values(), reverse=True)[: self.limit]
        if len(scores) < len(wanted):
            missing = [row for row in self.matching() if row["id"] not in ids]
            return f"{len(scores)} rows of {len(wanted)}; not among them {missing[:2]}"
        if any(abs(matching[id] - score) > 1e-5 * score for id, score in found):
            return f"wrong scores: {found}"
        if any(abs(a - b) > 1e-5 * b for a, b in zip(scores, wanted)):
            return f"not the nearest rows: {scores}, and there are {wanted}"
        return None

    def __str__(self):
        where = " AND ".join(relation.with_literals() for relation in self.relations)
        return f"{self.table.index_name(self.index)} {self.vector} limit {self.limit}: {where[:400]}"


def searches(table, index):
    """Searches of an index by every kind of relation, alone and with others."""
    wanted = list(relations(table))
    for relation in wanted:
        for more in ([], [table.rng.choice(wanted)]):
            chosen = [relation, *more]
            named = set().union(*(relation.key for relation in chosen))
            missing = [column for column in index.key if column not in named]
            yield Search(table, index, [*chosen, *(_one_of_key(table, column) for column in missing)])


def _one_of_key(table, column):
    """A relation that makes a column of a local index's key known."""
    held = [row[column] for row in table.rows if row[column] is not None]
    if table.rng.random() < 0.7:
        return rel.compare(table, column, "=", table.rng.choice(held))
    return rel.is_in(table, column, table.rng.choices(held, k=2))


SHOWN = 5


def none(faults):
    """Fails if there are faults, given as [(search, fault)], and shows the first."""
    faults = list(faults)
    shown = "\n".join(f"  {search}\n    {fault}" for search, fault in faults[:SHOWN])
    assert not faults, f"{len(faults)} wrong answers, such as\n{shown}"


def by_cql(session, searches):
    """The faults of the answers to statements: [(search, fault)]."""
    return _by_cql(session, searches, Search.cql, lambda search, rows: search.fault([tuple(row) for row in rows]))


def by_index_alone(session, searches):
    """The faults of the answers to statements that an index answers alone: [(search, fault)]."""
    return _by_cql(session, searches, Search.cql_of_kept, _fault_of_kept, consistency_level=ConsistencyLevel.ONE)


def _by_cql(session, searches, statement, fault, **options):
    asked = [(search, statement(search)) for search in searches]
    asked = [(search, statement) for search, statement in asked if statement is not None]
    prepared = {}
    statements = []
    for _, (text, values) in asked:
        if not values:
            statements.append((SimpleStatement(text, **options), ()))
            continue
        if text not in prepared:
            prepared[text] = session.prepare(text)
            for name, value in options.items():
                setattr(prepared[text], name, value)
        statements.append((prepared[text], values))
    answers = execute_concurrent(session, statements, concurrency=16, raise_on_first_error=False)
    for (search, _), (is_done, answer) in zip(asked, answers):
        found = fault(search, answer) if is_done else str(answer)
        if found:
            yield search, found


def _fault_of_kept(search, answer):
    """What is wrong with an answer that has the key and the columns `OF_KEPT`."""
    types = search.table.types

    def serialized(values):
        return tuple(value if value is None else types[column].serialize(value) for column, value in values.items())

    rows = {serialized({column: row[column] for column in KEY}): row for row in search.table.rows}
    found = []
    for told in answer:
        row = rows[serialized({column: getattr(told, column) for column in KEY})]
        if serialized({column: getattr(told, column) for column in OF_KEPT}) != serialized({column: row[column] for column in OF_KEPT}):
            return f"{told} has other values than {row}"
        found.append((row["id"], search.score(row)))
    return search.fault(found)


def by_http(service, searches):
    """The faults of the answers over HTTP: [(search, fault)]. `service` is an `IndexService`."""
    for search in searches:
        body = search.body()
        if body is None:
            continue
        table = search.table
        path = f"/api/v1/indexes/{table.keyspace}/{table.index_name(search.index)}/ann"
        status, text = service.http(path, body)
        found = f"{status} {text}" if status != 200 else _fault_of_json(search, json.loads(text))
        if found:
            yield search, found


def _fault_of_json(search, answer):
    """What is wrong with an answer over HTTP."""
    # As text, in which a negative zero is another key than zero.
    rows = {json.dumps(search.key(row)): row for row in search.table.rows}
    keys = zip(*(answer["primary_keys"][column] for column in KEY))
    found = [rows[json.dumps(key)] for key in keys]
    for column in search.returned():
        told, wanted = answer["column_values"][column], [search.value(row, column) for row in found]
        if json.dumps(told, sort_keys=True) != json.dumps(wanted, sort_keys=True):
            return f"column {column} has {told} where the rows have {wanted}"
    return search.fault([(row["id"], score) for row, score in zip(found, answer["similarity_scores"])])
