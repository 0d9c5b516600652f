"""Makes random reads: the text of a SELECT, and the rows that the model gives for it."""

from cassandra.metadata import Murmur3Token
from kinds import compare_tuples
from text import Text


class Read:
    """A SELECT: `text` with `values`. `expected(table)` gives its rows. `ordered` tells whether
    their order is defined."""

    def __init__(self, text, values, expected, page_rows, ordered=True):
        self.text, self.values, self.expected = text, values, expected
        self.page_rows, self.ordered = page_rows, ordered

    def __str__(self):
        shown = self.text + (f"  -- {self.values!r}" if self.values else "")
        return shown + (f"  -- pages of {self.page_rows}" if self.page_rows else "")


class Condition:
    """A condition of WHERE over clustering keys: its texts, and whether it takes a key."""

    def __init__(self, texts=(), takes=lambda key: True, fixed=0):
        self.texts, self.takes = list(texts), takes
        self.fixed = fixed
        """The number of leading clustering columns that are equal to one value."""


def random_read(rng, table):
    text = Text(rng)
    makers = [_of_partition, _of_partition, _of_partition, _of_partitions, _of_table, _filtered, _distinct, _counted]
    return rng.choice(makers)(rng, table, text)


def _page_rows(rng):
    return rng.choice([None, None, 1, 2, 3, 5])


def _token(table, key):
    """The token of a partition, by the driver's partitioner."""
    parts = [column.kind.serialize(value) for column, value in zip(table.partition, key)]
    if len(parts) == 1:
        return Murmur3Token.from_key(parts[0]).value
    raw = b"".join(len(part).to_bytes(2, "big") + part + b"\0" for part in parts)
    return Murmur3Token.from_key(raw).value


def _by_token(table):
    keys = [key for key in table.partitions if table.rows(key)]
    # On the server a key with no bytes has the least token; the driver's function gives none.
    return sorted(keys, key=lambda key: _token(table, key))


def _selection(rng, table):
    """Names of columns, and a function that takes their values from a row. All static columns are
    among them, so that a partition without rows is shown whichever columns the server looks at."""
    clustering = [column.name for column, _ in table.clustering]
    others = [name for name in table.regular if rng.random() < 0.6]
    names = [column.name for column in table.partition] + clustering + list(table.static) + others
    rng.shuffle(names)
    partition_at = {column.name: at for at, column in enumerate(table.partition)}
    clustering_at = {name: at for at, name in enumerate(clustering)}
    scalars = [name for name in others if table.regular[name].collection is None]
    times = [name for name in scalars if rng.random() < 0.3]

    def take(table, partition_key, row):
        key, cells = row
        values = []
        for name in names:
            if name in partition_at:
                values.append(partition_key[partition_at[name]])
            elif name in clustering_at:
                values.append(None if key is None else key[clustering_at[name]])
            else:
                values.append(cells[name])
        for name in times:
            at = None if key is None else table.partitions[partition_key].timestamp(key, table.regular[name])
            values.append(at)
        return tuple(values)

    return ", ".join(names + [f"writetime({name})" for name in times]), take


def _partition_is(rng, table, text):
    key = tuple(column.kind.random(rng) for column in table.partition)
    return key, [f"{column.name} = {text.scalar(column.kind, value)}" for column, value in zip(table.partition, key)]


def _clustering_condition(rng, table, text):
    """A prefix of equal columns, followed perhaps by a range, an IN, or a relation over several
    columns."""
    columns = [column for column, _ in table.clustering]
    if not columns or rng.random() < 0.3:
        return Condition()
    if len(columns) > 1 and rng.random() < 0.2:
        count = rng.randrange(1, len(columns) + 1)
        sign = rng.choice(["<", "<=", ">", ">="])
        bound = tuple(column.kind.random(rng) for column in columns[:count])
        terms = ", ".join(text.scalar(column.kind, value) for column, value in zip(columns, bound))
        names = ", ".join(column.name for column in columns[:count])
        return Condition(
            [f"({names}) {sign} ({terms})"], lambda key: compare_tuples(columns[:count], key[:count], sign, bound)
        )
    count = rng.randrange(0, len(columns) + 1)
    prefix = tuple(column.kind.random(rng) for column in columns[:count])
    texts = [f"{column.name} = {text.scalar(column.kind, value)}" for column, value in zip(columns, prefix)]
    is_prefix = lambda key: key[:count] == prefix  # noqa: E731
    if count == len(columns):
        return Condition(texts, is_prefix, count)
    column = columns[count]
    if rng.random() < 0.3:
        wanted = [column.kind.random(rng) for _ in range(rng.randrange(1, 4))]
        terms = ", ".join(text.scalar(column.kind, value) for value in wanted)
        texts.append(f"{column.name} IN ({terms})")
        return Condition(texts, lambda key: is_prefix(key) and key[count] in wanted, count)
    bounds = [(rng.choice([">", ">="]), column.kind.random(rng)), (rng.choice(["<", "<="]), column.kind.random(rng))]
    bounds = rng.choice([bounds, bounds[:1], bounds[1:]])
    texts += [f"{column.name} {sign} {text.scalar(column.kind, value)}" for sign, value in bounds]
    return Condition(
        texts,
        lambda key: is_prefix(key)
        and all(compare_tuples([column], key[count : count + 1], sign, (value,)) for sign, value in bounds),
        count,
    )


def _order(rng, table):
    """(ORDER BY or an empty text, whether it is the reverse of the table's order)."""
    if not table.clustering or rng.random() < 0.5:
        return "", False
    is_reversed = rng.random() < 0.6
    count = rng.randrange(1, len(table.clustering) + 1)
    parts = [
        f"{column.name} {'DESC' if descending != is_reversed else 'ASC'}"
        for column, descending in table.clustering[:count]
    ]
    return f" ORDER BY {', '.join(parts)}", is_reversed


def _limit(rng):
    return (f" LIMIT {limit}", limit) if rng.random() < 0.3 and (limit := rng.randrange(1, 6)) else ("", None)


def _matching(table, key, condition):
    """The rows of a partition that a condition takes. A row of static cells alone is among them
    only without a condition."""
    rows = table.rows(key)
    if not condition.texts:
        return rows
    return [row for row in rows if row[0] is not None and condition.takes(row[0])]


def _of_partition(rng, table, text):
    selected, take = _selection(rng, table)
    key, where = _partition_is(rng, table, text)
    condition = _clustering_condition(rng, table, text)
    order, is_reversed = _order(rng, table)
    limit_text, limit = _limit(rng)

    def expected(table):
        rows = [take(table, key, row) for row in _matching(table, key, condition)]
        return (rows[::-1] if is_reversed else rows)[:limit]

    where = " AND ".join(where + condition.texts)
    return Read(f"SELECT {selected} FROM {{t}} WHERE {where}{order}{limit_text}", text.values, expected, _page_rows(rng))


def _of_partitions(rng, table, text):
    """A SELECT with IN over the last column of the partition key."""
    selected, take = _selection(rng, table)
    first, last = table.partition[:-1], table.partition[-1]
    prefix = tuple(column.kind.random(rng) for column in first)
    where = [f"{column.name} = {text.scalar(column.kind, value)}" for column, value in zip(first, prefix)]
    wanted = [last.kind.random(rng) for _ in range(rng.randrange(1, 4))]
    where.append(f"{last.name} IN ({', '.join(text.scalar(last.kind, value) for value in wanted)})")
    condition = _clustering_condition(rng, table, text)

    def expected(table):
        rows = []
        for value in set(wanted):
            key = (*prefix, value)
            rows += [take(table, key, row) for row in _matching(table, key, condition)]
        return rows

    where = " AND ".join(where + condition.texts)
    return Read(f"SELECT {selected} FROM {{t}} WHERE {where}", text.values, expected, _page_rows(rng), ordered=False)


def _of_table(rng, table, text):
    """A scan of the whole table or of a range of tokens, with limits."""
    selected, take = _selection(rng, table)
    limit_text, limit = _limit(rng)
    per_partition = rng.randrange(1, 3) if rng.random() < 0.3 else None
    per_partition_text = f" PER PARTITION LIMIT {per_partition}" if per_partition else ""
    where, bound = "", None
    if rng.random() < 0.4:
        bound = rng.randrange(-(2**63), 2**63)
        sign = rng.choice([">", "<="])
        names = ", ".join(column.name for column in table.partition)
        where = f" WHERE token({names}) {sign} {bound}"

    def expected(table):
        rows = []
        for key in _by_token(table):
            token = _token(table, key)
            if bound is None or (token > bound if sign == ">" else token <= bound):
                rows += [take(table, key, row) for row in table.rows(key)[:per_partition]]
        return rows[:limit]

    text_of = f"SELECT {selected} FROM {{t}}{where}{per_partition_text}{limit_text}"
    return Read(text_of, (), expected, _page_rows(rng))


def _filtered(rng, table, text):
    """A SELECT with ALLOW FILTERING on a regular column."""
    scalars = [column for column in table.regular.values() if column.collection is None]
    if not scalars:
        return _of_table(rng, table, text)
    selected, take = _selection(rng, table)
    column = rng.choice(scalars)
    sign, value = rng.choice(["=", "<", "<=", ">", ">="]), column.kind.random(rng)
    if column.kind.name == "boolean":
        sign = "="
    limit_text, limit = _limit(rng)

    def expected(table):
        rows = []
        for key in _by_token(table):
            for row in table.rows(key):
                cell = row[1][column.name]
                if row[0] is not None and cell is not None and compare_tuples([column], (cell,), sign, (value,)):
                    rows.append(take(table, key, row))
        return rows[:limit]

    where = f"{column.name} {sign} {text.scalar(column.kind, value)}"
    text_of = f"SELECT {selected} FROM {{t}} WHERE {where}{limit_text} ALLOW FILTERING"
    return Read(text_of, text.values, expected, _page_rows(rng))


def _distinct(rng, table, _text):
    names = [column.name for column in table.partition]
    statics = list(table.static)

    def expected(table):
        return [
            (*key, *(table.rows(key)[0][1][name] for name in statics))
            for key in _by_token(table)
        ]

    return Read(f"SELECT DISTINCT {', '.join(names + statics)} FROM {{t}}", (), expected, _page_rows(rng))


def _counted(rng, table, text):
    key, where = _partition_is(rng, table, text)
    condition = _clustering_condition(rng, table, text)
    if table.static and not condition.texts:
        return _of_partition(rng, table, Text(rng))

    def expected(table):
        return [(len(_matching(table, key, condition)),)]

    where = " AND ".join(where + condition.texts)
    return Read(f"SELECT count(*) FROM {{t}} WHERE {where}", text.values, expected, None)
