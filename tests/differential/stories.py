"""Stories: the steps on one table, in the form of tests/compat/script.py, that follow from a seed."""

import datetime
import decimal
import math
import random
import uuid

import history
import model
import reads
import writes
from cassandra import util
from changes import create_index, random_change
from mistakes import random_mistake
from queries import random_query
from tables import Table

WRITES_FIRST = 20


def beginning(keyspace):
    """The statements that make the keyspace of a story anew."""
    return (
        f"DROP KEYSPACE IF EXISTS {keyspace}",
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
        f"USE {keyspace}",
    )


def story(seed, length):
    """The definitions and the steps of a story of about `length` statements: (steps, steps)."""
    rng = random.Random(f"differential {seed}")
    if rng.random() < 0.2:
        return _of_histories(rng, length)
    table = Table(rng)
    definitions = table.definitions()
    for _ in range(rng.choice([0, 0, 1, 2]) if not table.is_counter else 0):
        definitions += create_index(rng, table)
    steps = []
    for _ in range(WRITES_FIRST):
        steps += random_change(rng, table)
    while len(steps) < length:
        roll = rng.random()
        if roll < 0.33:
            steps += random_change(rng, table)
        elif roll < 0.87:
            steps.append(random_query(rng, table))
        else:
            steps.append(random_mistake(rng, table))
    return definitions, steps


def _of_histories(rng, length):
    """A story of tests/histories."""
    shape = history.random_shape(rng)
    table = model.Table(*shape)
    steps = []
    while len(steps) < length:
        write = writes.random_write(rng, table)
        try:
            write.apply(table)
        except writes.Impossible:
            pass
        texts = write.text.split("; ") if write.text.startswith("ALTER") else [write.text]
        steps += [_step(text, write.values) for text in texts]
        for _ in range(2):
            read = reads.random_read(rng, table)
            steps.append(_step(read.text, read.values, read.page_rows))
    return [history.create_table(shape, "t")], steps


def _step(text, values, page=None):
    lines = [f"@page {page}"] if page else []
    if values:
        lines.append(f"@bind [{', '.join(map(python, values))}]")
    return "\n".join([*lines, text.replace("{t}", "t")])


def python(value):
    """A value of the driver in the Python of a directive."""
    if isinstance(value, (set, frozenset)):
        return f"[{', '.join(map(python, sorted(value, key=repr)))}]"
    if isinstance(value, list):
        return f"[{', '.join(map(python, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python(key)}: {python(element)}" for key, element in value.items()) + "}"
    if isinstance(value, uuid.UUID):
        return f"uuid('{value}')"
    if isinstance(value, decimal.Decimal):
        return f"decimal('{value}')"
    if isinstance(value, datetime.datetime):
        return f"timestamp('{value.isoformat()}')"
    if isinstance(value, util.Date):
        return f"date({value.days_from_epoch})"
    if isinstance(value, util.Time):
        return f"time({value.nanosecond_time})"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)
