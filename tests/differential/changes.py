"""Random writes: INSERT, UPDATE, DELETE, batches, conditions, and changes of the schema."""

import json

import shapes
from terms import Terms

TIMESTAMPS = 30
LIFE_SECONDS = 1_000_000
"""The lifetime of what is written with one. It shows as `life` in answers."""


def random_change(rng, table):
    """The steps of a random write."""
    roll = rng.random()
    if table.is_counter:
        return [_counter_batch(rng, table) if roll < 0.2 else _counter_update(rng, table)]
    if roll < 0.10:
        return [_batch(rng, table)]
    # A conditional write is later than all explicit timestamps.
    if roll < (0.28 if table.explicit < 0.9 else 0.11):
        return [_conditional(rng, table)]
    # Cassandra's indexes keep what was deleted before, and hide older timestamps afterwards.
    if roll < 0.295 and not table.indexes:
        return ["TRUNCATE t"]
    if roll < 0.32:
        return _alteration(rng, table)
    terms = Terms(rng)
    return [terms.step(_single(rng, table, terms, random_using(rng, table)))]


def random_using(rng, table):
    """USING, or an empty text. A lifetime has no explicit timestamp beside it, since ties of
    timestamps would be decided by the second in which the values were written."""
    if rng.random() < table.explicit:
        return f" USING TIMESTAMP {rng.randrange(1, TIMESTAMPS)}"
    return f" USING TTL {LIFE_SECONDS}" if rng.random() < 0.15 else ""


def _single(rng, table, terms, using, make=None):
    make = make or rng.choice([_insert, _insert, _insert_json, _update, _update, _update, _delete, _delete])
    return make(rng, table, terms, using)


def equal(rng, columns, terms):
    return [f"{column.name} = {terms.of(column.pick(rng))}" for column in columns]


def _insert(rng, table, terms, using, condition=""):
    chosen = [column for column in table.values if rng.random() < 0.6]
    key = table.key
    if table.static and rng.random() < 0.15:
        key, chosen = table.partition, table.static
    columns = key + chosen
    values = [column.pick(rng) if column in key or rng.random() < 0.85 else shapes.NULL for column in columns]
    names = ", ".join(column.name for column in columns)
    return f"INSERT INTO t ({names}) VALUES ({', '.join(map(terms.of, values))}){condition}{using}"


def _insert_json(rng, table, terms, using, condition=""):
    chosen = [column for column in table.values if rng.random() < 0.6]
    values = [(column, column.pick(rng)) for column in table.key + chosen]
    if any(value.json is None for _, value in values):
        return _insert(rng, table, terms, using, condition)
    fields = [f"{json.dumps(column.name)}: {value.json}" for column, value in values]
    text = "{" + ", ".join(fields) + "}"
    default = rng.choice(["", "", " DEFAULT NULL", " DEFAULT UNSET"])
    return "INSERT INTO t JSON '" + text.replace("'", "''") + f"'{default}{condition}{using}"


def _update(rng, table, terms, using, condition=None):
    columns = table.static if table.static and rng.random() < 0.2 else table.values
    if not columns:
        return _insert(rng, table, terms, using)
    chosen = rng.sample(columns, rng.randrange(1, min(3, len(columns)) + 1))
    sets = ", ".join(assignment(rng, column, terms) for column in chosen)
    key = table.key if any(column.part == "regular" for column in chosen) or not table.static else table.partition
    # With several rows Cassandra writes a static list once for each, and Annulus once.
    adds_to_static = any(column.part == "static" for column in chosen)
    if len(key) > 1 and key == table.key and not adds_to_static and rng.random() < 0.1 and condition is None:
        first, last = key[:-1], key[-1]
        where = equal(rng, first, terms)
        where.append(f"{last.name} IN ({', '.join(terms.of(last.pick(rng)) for _ in range(2))})")
    else:
        where = equal(rng, key, terms)
    return f"UPDATE t{using} SET {sets} WHERE {' AND '.join(where)}{condition(terms) if condition else ''}"


def assignment(rng, column, terms):
    name, cql_type = column.name, column.type
    form = rng.random()
    value = shapes.NULL if rng.random() < 0.15 else column.pick(rng)
    if isinstance(cql_type, shapes.User) and not cql_type.is_frozen and form < 0.5:
        field, field_type = rng.choice(cql_type.fields)
        value = shapes.NULL if rng.random() < 0.2 else field_type.random(rng)
        return f"{name}.{field} = {terms.of(value)}"
    if not isinstance(cql_type, shapes.Collection) or cql_type.is_frozen or form < 0.3:
        return f"{name} = {terms.of(value)}"
    if form < 0.55:
        return f"{name} = {name} + {terms.of(column.pick(rng))}"
    if cql_type.kind == "list":
        if form < 0.7:
            return f"{name} = {terms.of(column.pick(rng))} + {name}"
        if form < 0.85:
            return f"{name} = {name} - {terms.of(column.pick(rng))}"
        element = shapes.NULL if rng.random() < 0.3 else cql_type.elements[0].random(rng)
        return f"{name}[{rng.randrange(0, 3)}] = {terms.of(element)}"
    if cql_type.kind == "set":
        return f"{name} = {name} - {terms.of(column.pick(rng))}"
    if form < 0.75:
        element = shapes.NULL if rng.random() < 0.3 else cql_type.elements[1].random(rng)
        return f"{name}[{terms.of(cql_type.elements[0].random(rng))}] = {terms.of(element)}"
    keys = shapes.Collection("set", cql_type.elements[:1], False)
    return f"{name} = {name} - {terms.of(keys.random(rng))}"


def _delete(rng, table, terms, using):
    using = using if "TTL" not in using else ""
    roll = rng.random()
    if roll < 0.4 and table.values:
        chosen = rng.sample(table.values, rng.randrange(1, min(2, len(table.values)) + 1))
        if any(column.part == "static" for column in chosen):
            chosen = [column for column in chosen if column.part == "static"]
        key = table.partition if chosen[0].part == "static" else table.key
        parts = ", ".join(_deleted_part(rng, column, terms) for column in chosen)
        return f"DELETE {parts} FROM t{using} WHERE {' AND '.join(equal(rng, key, terms))}"
    count = rng.randrange(0, len(table.clustering) + 1)
    where = equal(rng, table.partition + table.clustering[:count], terms)
    rest = table.clustering[count:]
    if rest and rng.random() < 0.5:
        where += bounds(rng, rest, terms)
    return f"DELETE FROM t{using} WHERE {' AND '.join(where)}"


def _deleted_part(rng, column, terms):
    cql_type = column.type
    if isinstance(cql_type, shapes.Collection) and not cql_type.is_frozen and rng.random() < 0.6:
        if cql_type.kind == "list":
            return f"{column.name}[{rng.randrange(0, 3)}]"
        return f"{column.name}[{terms.of(cql_type.elements[0].random(rng))}]"
    if isinstance(cql_type, shapes.User) and not cql_type.is_frozen and rng.random() < 0.6:
        return f"{column.name}.{rng.choice(cql_type.fields)[0]}"
    return column.name


def bounds(rng, columns, terms):
    """Bounds of the first column, or of several together."""
    count = rng.randrange(1, len(columns) + 1) if rng.random() < 0.3 else 1
    signs = rng.choice([[">"], [">="], ["<"], ["<="], [">", "<"], [">=", "<="], [">=", "<"]])
    if count == 1:
        return [f"{columns[0].name} {sign} {terms.of(columns[0].pick(rng))}" for sign in signs]
    names = ", ".join(column.name for column in columns[:count])
    return [f"({names}) {sign} ({', '.join(terms.of(c.pick(rng)) for c in columns[:count])})" for sign in signs]


def _batch(rng, table):
    terms = Terms(rng)
    using = f" USING TIMESTAMP {rng.randrange(1, TIMESTAMPS)}" if rng.random() < 0.4 else ""
    parts = []
    for _ in range(rng.randrange(1, 5)):
        own = "" if using else random_using(rng, table)
        parts.append(_single(rng, table, terms, own))
    kind = rng.choice(["BEGIN BATCH", "BEGIN UNLOGGED BATCH"])
    return terms.step(f"{kind}{using} {'; '.join(parts)}; APPLY BATCH")


def _counter_update(rng, table):
    column = rng.choice(table.values)
    key = table.partition if column.part == "static" else table.key
    amount = abs(int(column.pick(rng).literal))
    where = " AND ".join(equal(rng, key, Terms(rng, 0)))
    return f"UPDATE t SET {column.name} = {column.name} {rng.choice('+-')} {amount} WHERE {where}"


def _counter_batch(rng, table):
    parts = [_counter_update(rng, table) for _ in range(rng.randrange(1, 4))]
    return f"BEGIN COUNTER BATCH {'; '.join(parts)}; APPLY BATCH"


def _conditional(rng, table):
    terms = Terms(rng)
    roll = rng.random()
    using = f" USING TTL {LIFE_SECONDS}" if rng.random() < 0.1 else ""
    if roll < 0.3:
        make = rng.choice([_insert, _insert, _insert_json])
        return terms.step(make(rng, table, terms, using, " IF NOT EXISTS"))
    if roll < 0.6:
        return terms.step(_update(rng, table, terms, using, lambda terms: condition(rng, table, terms)))
    if roll < 0.8:
        if rng.random() < 0.5 and table.regular:
            what, key = _deleted_part(rng, rng.choice(table.regular), terms), table.key
        else:
            what, key = "", table.key
        where = " AND ".join(equal(rng, key, terms))
        return terms.step(f"DELETE {what} FROM t WHERE {where}{condition(rng, table, terms)}")
    return _conditional_batch(rng, table)


def _conditional_batch(rng, table):
    """A batch on one partition, of which one or more statements have a condition."""
    terms = Terms(rng, 0)
    partition = equal(rng, table.partition, terms)
    parts = []
    for _ in range(rng.randrange(1, 4)):
        where = " AND ".join(partition + equal(rng, table.clustering, terms))
        # A deletion beside writes to its partition is another in Cassandra: docs/cql.md.
        if table.regular and (not table.clustering or rng.random() < 0.7):
            sets = assignment(rng, rng.choice(table.regular), terms)
            text = f"UPDATE t SET {sets} WHERE {where}"
        else:
            text = f"DELETE FROM t WHERE {where}"
        parts.append(text + (condition(rng, table, terms) if rng.random() < 0.6 else ""))
    return terms.step(f"BEGIN BATCH {'; '.join(parts)}; APPLY BATCH")


def condition(rng, table, terms):
    """IF with its conditions."""
    if rng.random() < 0.3 or not table.values:
        return " IF EXISTS"
    columns = [rng.choice(table.values) for _ in range(rng.choice([1, 1, 2]))]
    return " IF " + " AND ".join(_compared(rng, column, terms) for column in columns)


def _compared(rng, column, terms):
    cql_type, name = column.type, column.name
    sign = rng.choice(["=", "=", "!=", "<", "<=", ">", ">="])
    value = shapes.NULL if rng.random() < 0.15 else column.pick(rng)
    roll = rng.random()
    if isinstance(cql_type, shapes.Collection) and roll < 0.4:
        if cql_type.kind == "map" and roll < 0.25:
            key, element = (element.random(rng) for element in cql_type.elements)
            return f"{name}[{terms.of(key)}] {sign} {terms.of(element)}"
        if cql_type.kind == "list" and roll < 0.25:
            return f"{name}[{rng.randrange(0, 3)}] {sign} {terms.of(cql_type.elements[0].random(rng))}"
        return f"{name} CONTAINS {terms.of(cql_type.elements[-1].random(rng))}"
    if isinstance(cql_type, shapes.User) and roll < 0.5:
        field, field_type = rng.choice(cql_type.fields)
        return f"{name}.{field} {sign} {terms.of(field_type.random(rng))}"
    if roll < 0.6 and roll > 0.5:
        values = [column.pick(rng) for _ in range(rng.randrange(1, 4))]
        return f"{name} IN ({', '.join(map(terms.of, values))})"
    return f"{name} {sign} {terms.of(value)}"


def _alteration(rng, table):
    """A change of the schema; the table changes with it."""
    roll = rng.random()
    if roll < 0.3:
        added = table.add_column(rng)
        return [f"ALTER TABLE t ADD {added.name} {added.type.name}"]
    indexed = {column for _, column, _, _ in table.indexes}
    if roll < 0.55 and len(table.regular) > 1:
        dropped = rng.choice(table.regular)
        if dropped.name in indexed:
            return [f"ALTER TABLE t DROP {dropped.name}"]
        table.columns.remove(dropped)
        table.dropped.append(dropped.name)
        return [f"ALTER TABLE t DROP {dropped.name}"]
    if roll < 0.8 and table.users:
        name = rng.choice(list(table.users))
        return [_altered_type(rng, table, name)]
    return create_index(rng, table)


def _altered_type(rng, table, name):
    fields = table.users[name]
    number = max(int(field[1:]) for field, _ in fields) + 1
    if any(name in column.type.name for column in table.key):
        # Keys with and without the new field are equal, and which of them is shown is chance.
        return "SELECT * FROM t"
    if rng.random() < 0.6:
        added = shapes.random_type(rng, {}, 1).frozen()
        if added.has_duration():
            added = shapes.INT
        fields.append((f"f{number}", added))
        text = f"ALTER TYPE {name} ADD f{number} {added.name}"
    else:
        at = rng.randrange(len(fields))
        old, field_type = fields[at]
        fields[at] = (f"f{number}", field_type)
        text = f"ALTER TYPE {name} RENAME {old} TO f{number}"
    for column in table.columns:
        if column.part in ("static", "regular"):
            column.renew(rng)
    return text


def create_index(rng, table):
    """An index."""
    columns = [column for column in table.columns if column.type.name != "counter"]
    column, number = rng.choice(columns), len(table.indexes)
    target = column.name
    if isinstance(column.type, shapes.Collection):
        target = rng.choice([target, f"VALUES({target})", f"KEYS({target})", f"ENTRIES({target})", f"FULL({target})"])
    is_sai = rng.random() < 0.4
    table.indexes.append((f"i{number}", column.name, target, is_sai))
    text = f"CREATE CUSTOM INDEX i{number} ON t ({target}) USING 'sai'" if is_sai else f"CREATE INDEX i{number} ON t ({target})"
    return [text]
