"""Makes random writes: the text of a statement, and its effect on the model."""

import itertools

from kinds import compare_tuples
from model import STATIC
from text import Text

TIMESTAMPS = 40
"""The number of explicit timestamps. They are few, so that writes tie and come late."""

UNTOLD = 10**15
"""The first timestamp that the model gives writes without one. It is above all explicit ones, and
rises."""

_untold = itertools.count(UNTOLD)


class Statement:
    """A statement: `text` with `values` for its markers, an explicit `timestamp`, and
    `effect(table, at)`, which does the same to a model table. The effect raises `Impossible` if the
    server refuses the statement."""

    def __init__(self, text, values, timestamp, effect):
        self.text, self.values, self.timestamp, self.effect = text, values, timestamp, effect

    def apply(self, table, untold=None):
        """Applies the statement to the model. `untold` is the time of a batch, for its statements
        without a timestamp of their own."""
        at = self.timestamp if self.timestamp is not None else untold or next(_untold)
        self.effect(table, at)

    def __str__(self):
        return self.text + (f"  -- {self.values!r}" if self.values else "")


class Impossible(Exception):
    """The server refuses the statement in this state of the table."""


def random_write(rng, table):
    """A random write. One in eight is a batch, and a few change the table as a whole."""
    roll = rng.random()
    if roll < 0.12:
        return _batch(rng, table)
    if roll < 0.13:
        return Statement("TRUNCATE {t}", (), None, lambda table, _at: table.truncate())
    if roll < 0.15 and table.regular:
        return _drop_and_add(rng, table)
    return _single(rng, table, _pick_timestamp(rng, table, 0.8))


def _pick_timestamp(rng, table, explicit):
    """An explicit timestamp with the probability `explicit`, if there is one above the timestamp
    that dropped columns leave."""
    if table.floor >= UNTOLD or rng.random() >= explicit:
        return None
    return table.floor + rng.randrange(1, TIMESTAMPS)


def _single(rng, table, timestamp, in_batch=False):
    makers = [_insert, _insert, _update, _update, _delete_rows, _delete_columns]
    return rng.choice(makers)(rng, table, timestamp, in_batch)


def _batch(rng, table):
    """A batch. It has one timestamp, or each of its statements has its own."""
    shared = _pick_timestamp(rng, table, 0.4)
    parts = []
    for _ in range(rng.randrange(2, 6)):
        own = None if shared else _pick_timestamp(rng, table, 0.8)
        parts.append(_single(rng, table, own, in_batch=True))
    kind = rng.choice(["BEGIN BATCH", "BEGIN UNLOGGED BATCH"])
    values = tuple(value for part in parts for value in part.values)

    def effect(table, at):
        for part in parts:
            part.apply(table, at)

    text = f"{kind}{_using(shared)} {'; '.join(part.text for part in parts)}; APPLY BATCH"
    return Statement(text, values, shared, effect)


def _using(timestamp):
    return "" if timestamp is None else f" USING TIMESTAMP {timestamp}"


def _random_key(rng, columns):
    return tuple(column.kind.random(rng) for column in columns)


def _partition(rng, table):
    return _random_key(rng, table.partition)


def _clustering(rng, table):
    return _random_key(rng, [column for column, _ in table.clustering])


def _equal(text, columns, key):
    return [f"{column.name} = {text.scalar(column.kind, value)}" for column, value in zip(columns, key)]


def _random_value(rng, column):
    """A random value of a column; None a fifth of the time."""
    if rng.random() < 0.2:
        return None
    return _random_present(rng, column)


def _random_present(rng, column, at_least=0):
    if column.collection is None:
        return column.kind.random(rng)
    elements = [column.kind.random(rng) for _ in range(rng.randrange(at_least, 4))]
    if column.collection == "map":
        return {rng.choice("abcd"): element for element in elements}
    if column.collection == "set":
        return sorted(set(elements), key=column.kind.order)
    return elements


def _insert(rng, table, timestamp, in_batch):
    text, key = Text(rng), _partition(rng, table)
    is_static_only = bool(table.clustering) and bool(table.static) and rng.random() < 0.15
    row = STATIC if is_static_only else _clustering(rng, table)
    columns = dict(table.static) if is_static_only else table.columns()
    chosen = [column for column in columns.values() if rng.random() < 0.5]
    if is_static_only and not chosen:
        chosen = [rng.choice(list(columns.values()))]
    names = [column.name for column in table.partition]
    terms = [text.scalar(column.kind, value) for column, value in zip(table.partition, key)]
    if not is_static_only:
        names += [column.name for column, _ in table.clustering]
        terms += [text.scalar(column.kind, value) for (column, _), value in zip(table.clustering, row)]
    values = [(column, _random_value(rng, column)) for column in chosen]
    names += [column.name for column, _ in values]
    terms += [text.value(column, value) for column, value in values]
    if_not_exists = timestamp is None and not in_batch and not is_static_only and rng.random() < 0.3
    condition = " IF NOT EXISTS" if if_not_exists else ""
    statement = f"INSERT INTO {{t}} ({', '.join(names)}) VALUES ({', '.join(terms)}){condition}{_using(timestamp)}"

    def effect(table, at):
        if if_not_exists and any(found == row for found, _ in table.rows(key)):
            return
        partition = table.partitions[key]
        if row != STATIC:
            partition.markers[row].append(at)
        for column, value in values:
            place = STATIC if column.name in table.static else row
            partition.assign(table, place, column, value, at)

    return Statement(statement, text.values, timestamp, effect)


def _update(rng, table, timestamp, in_batch):
    key, row = _partition(rng, table), _clustering(rng, table)
    only_static = bool(table.clustering) and bool(table.static) and rng.random() < 0.2
    columns = list((table.static if only_static else table.columns()).values())
    if not columns:
        return _insert(rng, table, timestamp, in_batch)
    chosen = rng.sample(columns, rng.randrange(1, min(3, len(columns)) + 1))
    # Clustering columns may not be given if only static columns are set.
    only_static = bool(table.clustering) and all(column.name in table.static for column in chosen)
    text = Text(rng)
    changes = [_assignment(rng, text, column, in_batch) for column in chosen]
    where = _equal(text, table.partition, key)
    if not only_static:
        where += _equal(text, [column for column, _ in table.clustering], row)
    sets = ", ".join(change for change, _ in changes)
    statement = f"UPDATE {{t}}{_using(timestamp)} SET {sets} WHERE {' AND '.join(where)}"

    def effect(table, at):
        partition = table.partitions[key]
        places = [STATIC if column.name in table.static else row for column in chosen]
        for place, (_, change) in zip(places, changes):
            getattr(change, "check", lambda *_: None)(partition, place)
        for place, (_, change) in zip(places, changes):
            change(table, partition, place, at)

    return Statement(statement, text.values, timestamp, effect)


def _assignment(rng, text, column, in_batch):
    """(text, effect) of one assignment. In a batch no assignment reads the list first."""
    name, collection = column.name, column.collection
    forms = ["="]
    if collection == "list":
        forms += ["+", "prepend"] + ([] if in_batch else ["-", "element"])
    elif collection:
        forms += ["+", "-"] + (["element"] if collection == "map" else [])
    form = rng.choice(forms)
    if form == "=":
        value = _random_value(rng, column)
        return f"{name} = {text.value(column, value)}", (
            lambda table, partition, row, at: partition.assign(table, row, column, value, at)
        )
    value = _random_present(rng, column, at_least=1)
    if form == "+":
        return f"{name} = {name} + {text.value(column, value)}", (
            lambda table, partition, row, at: partition.add(table, row, column, value, at)
        )
    if form == "prepend":
        return f"{name} = {text.value(column, value)} + {name}", (
            lambda table, partition, row, at: partition.prepend(table, row, column, value, at)
        )
    if form == "-":
        removed = sorted(value) if collection == "map" else value
        shown = text.keys(removed) if collection == "map" else text.value(column, value)
        return f"{name} = {name} - {shown}", (
            lambda table, partition, row, at: partition.subtract(row, column, removed, at)
        )
    element = _random_value(rng, type(column)(name, column.kind, None))
    if collection == "map":
        path = rng.choice("abcd")
        return f"{name}['{path}'] = {text.scalar(column.kind, element)}", (
            lambda table, partition, row, at: partition.put(row, column, path, element, at)
        )
    index = rng.randrange(0, 3)

    def check(partition, row):
        if index >= len(partition.live(row, column)):
            raise Impossible(f"{name} has no element {index}")

    def set_element(table, partition, row, at):
        partition.put(row, column, partition.live(row, column)[index][0], element, at)

    set_element.check = check
    return f"{name}[{index}] = {text.scalar(column.kind, element)}", set_element


def _delete_columns(rng, table, timestamp, in_batch):
    columns = list(table.columns().values())
    if not columns:
        return _delete_rows(rng, table, timestamp, in_batch)
    key, row, text = _partition(rng, table), _clustering(rng, table), Text(rng)
    chosen = rng.sample(columns, rng.randrange(1, min(2, len(columns)) + 1))
    if any(column.name in table.static for column in chosen) and table.clustering:
        # A row's columns and a partition's can't be deleted together.
        chosen = [column for column in chosen if column.name in table.static]
    where = _equal(text, table.partition, key)
    if any(column.name in table.regular for column in chosen):
        where += _equal(text, [column for column, _ in table.clustering], row)
    names = ", ".join(column.name for column in chosen)

    def effect(table, at):
        for column in chosen:
            place = STATIC if column.name in table.static else row
            table.partitions[key].delete_column(place, column, at)

    statement = f"DELETE {names} FROM {{t}}{_using(timestamp)} WHERE {' AND '.join(where)}"
    return Statement(statement, text.values, timestamp, effect)


def _delete_rows(rng, table, timestamp, _in_batch):
    """A DELETE of a partition, a range of rows, or a row."""
    key, row, text = _partition(rng, table), _clustering(rng, table), Text(rng)
    where = _equal(text, table.partition, key)
    clustering = [column for column, _ in table.clustering]
    count = rng.randrange(0, len(clustering) + 1)
    where += _equal(text, clustering[:count], row[:count])
    prefix = row[:count]
    covers = lambda other: other[:count] == prefix  # noqa: E731
    if count < len(clustering) and rng.random() < 0.6:
        column = clustering[count]
        bounds = [(rng.choice([">", ">="]), column.kind.random(rng)), (rng.choice(["<", "<="]), column.kind.random(rng))]
        bounds = rng.choice([bounds, bounds[:1], bounds[1:]])
        where += [f"{column.name} {sign} {text.scalar(column.kind, value)}" for sign, value in bounds]
        covers = lambda other: other[:count] == prefix and all(  # noqa: E731
            compare_tuples([column], other[count : count + 1], sign, (value,)) for sign, value in bounds
        )

    def effect(table, at):
        partition = table.partitions[key]
        if len(where) == len(table.partition):
            partition.deleted_at = max(partition.deleted_at, at)
        else:
            partition.ranges.append((covers, at))

    statement = f"DELETE FROM {{t}}{_using(timestamp)} WHERE {' AND '.join(where)}"
    return Statement(statement, text.values, timestamp, effect)


def _drop_and_add(rng, table):
    """Drops a column and adds it again at once."""
    column = rng.choice(list(table.regular.values()))
    timestamp = _pick_timestamp(rng, table, 0.9)
    using = _using(timestamp)

    def effect(table, at):
        table.drop(column.name, at)

    text = f"ALTER TABLE {{t}} DROP {column.name}{using}; ALTER TABLE {{t}} ADD {column.name} {cql_type(column)}"
    return Statement(text, (), timestamp, effect)


def cql_type(column):
    if column.collection == "map":
        return f"map<text, {column.kind.name}>"
    if column.collection:
        return f"{column.collection}<{column.kind.name}>"
    return column.kind.name
