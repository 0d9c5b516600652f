"""Random reads: every way to name rows, and what is selected of them."""

import shapes
from changes import bounds, equal
from terms import Terms

AGGREGATES = ["count", "min", "max"]


def random_query(rng, table):
    """The step of a random SELECT."""
    terms = Terms(rng)
    makers = [_partition] * 4 + [_partitions] * 2 + [_token, _scan, _scan] + [_filtered] * 3 + [_distinct]
    makers += [_grouped] * 2 + [_loose] * 2 + ([_indexed] * 4 if table.indexes else [])
    page = rng.choice([None, None, None, 1, 2, 3, 7])
    return terms.step(rng.choice(makers)(rng, table, terms), page)


def _partition(rng, table, terms):
    selected = selection(rng, table, terms)
    where = equal(rng, table.partition, terms)
    order = ""
    if table.clustering and rng.random() < 0.7:
        count = rng.randrange(0, len(table.clustering) + 1)
        where += equal(rng, table.clustering[:count], terms)
        where += _last(rng, table.clustering[count:], terms)
        order = _order(rng, table, count)
    return _select(rng, selected, where, order, terms)


def _last(rng, columns, terms):
    """Relations of the columns behind those that are fixed."""
    if not columns or rng.random() < 0.25:
        return []
    if rng.random() < 0.35:
        column = columns[0]
        if len(columns) > 1 and rng.random() < 0.5:
            count = rng.randrange(2, len(columns) + 1)
            names = ", ".join(column.name for column in columns[:count])
            keys = [
                f"({', '.join(terms.of(column.pick(rng)) for column in columns[:count])})"
                for _ in range(rng.randrange(1, 4))
            ]
            return [f"({names}) IN ({', '.join(keys)})"]
        values = [terms.of(column.pick(rng)) for _ in range(rng.randrange(0, 4))]
        return [f"{column.name} IN ({', '.join(values)})"]
    return bounds(rng, columns, terms)


def _order(rng, table, fixed):
    if not table.clustering or rng.random() < 0.5:
        return ""
    # Columns that are fixed may be left out.
    first = rng.choice([0, 0, fixed]) if fixed < len(table.clustering) else 0
    columns = table.clustering[first : first + rng.randrange(1, len(table.clustering) + 1)]
    reverse = rng.random() < 0.6
    parts = [f"{c.name} {'DESC' if c.descending != (reverse or rng.random() < 0.05) else 'ASC'}" for c in columns]
    return f" ORDER BY {', '.join(parts)}"


def _partitions(rng, table, terms):
    selected = selection(rng, table, terms)
    first, last = table.partition[:-1], table.partition[-1]
    where = equal(rng, first, terms)
    where.append(f"{last.name} IN ({', '.join(terms.of(last.pick(rng)) for _ in range(rng.randrange(1, 4)))})")
    if table.clustering and rng.random() < 0.5:
        count = rng.randrange(0, len(table.clustering) + 1)
        where += equal(rng, table.clustering[:count], terms) + _last(rng, table.clustering[count:], terms)
    return _select(rng, selected, where, "", terms)


def _token(rng, table, terms):
    selected = selection(rng, table, terms)
    names = ", ".join(column.name for column in table.partition)
    if rng.random() < 0.3:
        key = ", ".join(terms.of(column.pick(rng)) for column in table.partition)
        where = [f"token({names}) {rng.choice(['>', '<=', '='])} token({key})"]
    else:
        where = [f"token({names}) > {rng.randrange(-(2**63), 0)}", f"token({names}) <= {rng.randrange(0, 2**63)}"]
        where = rng.choice([where, where[:1], where[1:]])
    return _select(rng, selected, where, "", terms)


def _scan(rng, table, terms):
    return _select(rng, selection(rng, table, terms), [], "", terms)


def _filtered(rng, table, terms):
    selected = selection(rng, table, terms)
    where = equal(rng, table.partition, terms) if rng.random() < 0.3 else []
    columns = table.values + table.clustering
    taken = rng.sample(columns, min(len(columns), rng.choice([1, 1, 2])))
    where += [_relation(rng, column, terms) for column in taken]
    return _select(rng, selected, where, "", terms, filtering=0.95)


def _relation(rng, column, terms):
    cql_type, name = column.type, column.name
    value = column.pick(rng)
    if isinstance(cql_type, shapes.Collection) and rng.random() < 0.7:
        roll = rng.random()
        if cql_type.kind == "map" and roll < 0.3:
            return f"{name} CONTAINS KEY {terms.of(cql_type.elements[0].random(rng))}"
        if cql_type.kind == "map" and roll < 0.5:
            key, element = (element.random(rng) for element in cql_type.elements)
            return f"{name}[{terms.of(key)}] = {terms.of(element)}"
        return f"{name} CONTAINS {terms.of(cql_type.elements[-1].random(rng))}"
    roll = rng.random()
    if roll < 0.12:
        return f"{name} IN ({', '.join(terms.of(column.pick(rng)) for _ in range(rng.randrange(1, 3)))})"
    return f"{name} {rng.choice(['=', '=', '=', '<', '<=', '>', '>='])} {terms.of(value)}"


def _indexed(rng, table, terms):
    selected = selection(rng, table, terms)
    _, name, _, _ = rng.choice(table.indexes)
    column = next((column for column in table.columns if column.name == name), None)
    if column is None:
        return _scan(rng, table, terms)
    where = [_relation(rng, column, terms)]
    if rng.random() < 0.3:
        where += equal(rng, table.partition, terms)
    if rng.random() < 0.3 and table.values:
        where.append(_relation(rng, rng.choice(table.values), terms))
    return _select(rng, selected, where, "", terms, filtering=0.3)


def _loose(rng, table, terms):
    """Relations of any columns, which may be refused."""
    selected = selection(rng, table, terms)
    columns = rng.sample(table.columns, rng.randrange(1, min(3, len(table.columns)) + 1))
    where = [_relation(rng, column, terms) for column in columns]
    return _select(rng, selected, where, _order(rng, table, 0) if rng.random() < 0.3 else "", terms, filtering=0.4)


def _distinct(rng, table, terms):
    columns = table.partition + [column for column in table.static if rng.random() < 0.7]
    names = ", ".join(column.name for column in columns)
    where = []
    if rng.random() < 0.3:
        last = table.partition[-1]
        where = equal(rng, table.partition[:-1], terms) + [f"{last.name} IN ({terms.of(last.pick(rng))})"]
    return f"SELECT DISTINCT {names} FROM t{_where(where)}{_limits(rng, per_partition=0)}"


def _grouped(rng, table, terms):
    where = []
    fixed = 0
    columns = table.key[: rng.randrange(1, len(table.key) + 1)]
    if len(columns) < len(table.partition):
        columns = table.partition
    selected = ", ".join([c.name for c in columns] + [_aggregate(rng, table) for _ in range(rng.randrange(0, 3))])
    if rng.random() < 0.4:
        where = equal(rng, table.partition, terms)
        fixed = rng.choice([0, len(table.partition)])
    names = ", ".join(column.name for column in columns[fixed:] or columns)
    order = _order(rng, table, 0) if where and rng.random() < 0.3 else ""
    return f"SELECT {selected} FROM t{_where(where)} GROUP BY {names}{order}{_limits(rng)}"


def _aggregate(rng, table):
    column = rng.choice(table.columns)
    if column.type.name in ("int", "bigint", "varint", "double", "decimal", "smallint") and rng.random() < 0.4:
        # Sums of the extremes of a type don't fit it.
        name = f"cast({column.name} AS {'double' if column.type.name in ('double', 'float') else 'varint'})"
        name = column.name if column.type.name in ("varint", "decimal", "double") else name
        return f"{rng.choice(['sum', 'avg'])}({name})"
    if isinstance(column.type, shapes.Collection) and rng.random() < 0.8:
        return f"count({column.name})"
    return rng.choice(["count(*)", f"{rng.choice(AGGREGATES)}({column.name})"])


def _where(where):
    return f" WHERE {' AND '.join(where)}" if where else ""


def _limits(rng, per_partition=0.2):
    text = f" PER PARTITION LIMIT {rng.randrange(1, 3)}" if rng.random() < per_partition else ""
    return text + (f" LIMIT {rng.randrange(1, 8)}" if rng.random() < 0.3 else "")


def _select(rng, selected, where, order, terms, filtering=0.1):
    allow = " ALLOW FILTERING" if rng.random() < filtering else ""
    return f"SELECT {selected} FROM t{_where(where)}{order}{_limits(rng)}{allow}"


def selection(rng, table, terms):
    """What is selected."""
    roll = rng.random()
    if roll < 0.3:
        return "*"
    if roll < 0.37:
        return "JSON " + rng.choice(["*", ", ".join(column.name for column in rng.sample(table.columns, 1))])
    if roll < 0.45:
        return ", ".join(_aggregate(rng, table) for _ in range(rng.randrange(1, 4)))
    columns = rng.sample(table.columns, rng.randrange(1, len(table.columns) + 1))
    if roll < 0.7:
        return ", ".join(column.name for column in columns)
    key = [column.name for column in table.key if rng.random() < 0.7]
    chosen = [_selector(rng, column, terms) for column in columns[:4]]
    chosen = [f"{text} AS a{n}" if rng.random() < 0.15 else text for n, text in enumerate(chosen)]
    return ", ".join(key + chosen)


def _selector(rng, column, terms):
    """A selector of a column by its type; some are refused."""
    name, cql_type = column.name, column.type
    makers = [lambda: f"toJson({name})", lambda: name]
    if column.part in ("static", "regular"):
        makers += [lambda: f"writetime({name})", lambda: f"ttl({name})", lambda: f"maxwritetime({name})"]
    if isinstance(cql_type, shapes.Collection):
        makers += _of_collection(rng, name, cql_type, terms)
    if isinstance(cql_type, shapes.User):
        makers += [lambda: f"{name}.{rng.choice(cql_type.fields)[0]}"] * 3
    if isinstance(cql_type, shapes.Vector) and cql_type.element.name == "float":
        other = cql_type.random(rng).literal
        if "Infinity" not in other:
            makers += [lambda: f"similarity_euclidean({name}, {other})"]
    if isinstance(cql_type, shapes.Scalar):
        makers += _of_scalar(rng, name, cql_type)
    return rng.choice(makers)()


def _of_collection(rng, name, cql_type, terms):
    makers = [lambda: f"collection_count({name})"]
    if cql_type.kind == "map":
        makers += [lambda: f"map_keys({name})", lambda: f"map_values({name})"]
    else:
        makers += [lambda: f"collection_min({name})", lambda: f"collection_max({name})"]
    if cql_type.kind != "list":
        key = lambda: cql_type.elements[0].random(rng).literal  # noqa: E731
        makers += [
            lambda: f"{name}[{key()}]",
            lambda: f"{name}[{key()}..{key()}]",
            lambda: f"{name}[{key()}..]",
            lambda: f"{name}[..{key()}]",
            lambda: f"writetime({name}[{key()}])",
            lambda: f"ttl({name}[{key()}])",
        ]
    return makers


CASTS = {
    "timestamp": ["text", "date"],
    "date": ["text", "timestamp"],
    "timeuuid": ["text", "timestamp", "date"],
    **{number: ["text", "int", "bigint", "smallint", "varint", "decimal", "double", "float"] for number in shapes.NUMBERS},
}


def _of_scalar(rng, name, cql_type):
    kind = cql_type.name
    makers = [
        lambda: f"cast({name} AS {rng.choice(CASTS.get(kind, ['text', 'int']))})",
        lambda: f"{kind}AsBlob({name})" if kind != "blob" else f"blobAsText({name})",
        lambda: f"mask_default({name})",
    ]
    if kind in shapes.NUMBERS:
        operand = rng.choice(["1", "2", "3", "0", name])
        makers += [
            lambda: f"{name} {rng.choice('+-*/%')} {operand}",
            lambda: f"abs({name})",
            lambda: f"round({name})",
            ]
    if kind in ("text", "ascii"):
        makers += [lambda: f"{name} + 'x'", lambda: f"mask_inner({name}, 1, 1)", lambda: f"mask_outer({name}, 1, null)"]
    if kind == "timestamp":
        makers += [lambda: f"toDate({name})", lambda: f"toUnixTimestamp({name})", lambda: f"{name} + 1d"]
    if kind == "date":
        makers += [lambda: f"toTimestamp({name})", lambda: f"{name} + 1d"]
    if kind == "timeuuid":
        makers += [lambda: f"toTimestamp({name})", lambda: f"toDate({name})"]
    return makers
