"""A model of a table by Cassandra's rules in the most naive form: every write is kept, and each
read looks at all of them.

It shares no code and no idea with the product's merge, so both are unlikely to have the same
mistake. The rules:

- Of two cells the one with the higher timestamp wins; of equal ones a tombstone, then the greater
  bytes.
- A deletion at a timestamp hides what is not newer.
- Setting a whole collection deletes its elements up to one microsecond before the write.
- A row exists while its INSERT marker or one of its cells lives.
"""

import collections
import itertools

STATIC = "static"
"""The key of static cells, in the place of a clustering key."""

Column = collections.namedtuple("Column", "name kind collection")
"""A column. `collection` is None, "set", "list" or "map" (of text to the kind)."""


class Table:
    """A table. `clustering` has the columns with their directions: [(Column, is_descending)]."""

    def __init__(self, partition, clustering, static, regular):
        self.partition, self.clustering = partition, clustering
        self.static, self.regular = dict((c.name, c) for c in static), dict((c.name, c) for c in regular)
        self._sequence = itertools.count(1)
        self.floor = 0
        self.truncate()

    def truncate(self):
        self.partitions = collections.defaultdict(Partition)

    def columns(self):
        return {**self.static, **self.regular}

    def next_number(self):
        return next(self._sequence)

    def clustering_order(self, key):
        """The sort key of a row in the order of the table."""
        return tuple(
            Reversed(column.kind.order(value)) if descending else column.kind.order(value)
            for (column, descending), value in zip(self.clustering, key)
        )

    def rows(self, partition_key):
        """The live rows of a partition in the table's order: [(clustering key, {column: value})].

        Every row has the static cells. A partition that has nothing else gives one row, with None
        for its key."""
        partition = self.partitions.get(partition_key)
        if partition is None:
            return []
        static = {name: partition.value(STATIC, column) for name, column in self.static.items()}
        rows = []
        for key in sorted(partition.keys(), key=self.clustering_order):
            cells = {name: partition.value(key, column) for name, column in self.regular.items()}
            if partition.has_marker(key) or any(value is not None for value in cells.values()):
                rows.append((key, {**static, **cells}))
        if not rows and any(value is not None for value in static.values()):
            rows.append((None, {**static, **dict.fromkeys(self.regular)}))
        return rows

    def drop(self, name, timestamp):
        """DROPs a column and ADDs the same one: cells that are not newer than the drop are gone.

        `floor` keeps later writes above the drop, as Cassandra shows those below it until it has
        written them out, and no longer."""
        self.floor = max(self.floor, timestamp)
        place = STATIC if name in self.static else None
        for partition in self.partitions.values():
            partition.forget(place, name, timestamp)


class Partition:
    def __init__(self):
        self.deleted_at = -1
        self.ranges = []  # (predicate over clustering keys, timestamp)
        self.markers = collections.defaultdict(list)
        self.cells = collections.defaultdict(list)  # (key or STATIC, column, path): [(timestamp, is_dead, bytes, value)]
        self.cleared = collections.defaultdict(lambda: -1)  # (key or STATIC, column): collections deleted at

    def keys(self):
        return {key for key in self.markers} | {key for key, _, _ in self.cells if key != STATIC}

    def hidden_up_to(self, key):
        if key == STATIC:
            return self.deleted_at
        return max([self.deleted_at, *(at for covers, at in self.ranges if covers(key))])

    def has_marker(self, key):
        return max(self.markers.get(key, [-1])) > self.hidden_up_to(key)

    def live(self, key, column):
        """The live cells of a column: [(path, timestamp, value)], in the order of the paths."""
        hidden = max(self.hidden_up_to(key), self.cleared.get((key, column.name), -1))
        found = []
        for (of, name, path), writes in self.cells.items():
            if (of, name) == (key, column.name):
                timestamp, is_dead, _, value = max(writes, key=lambda write: write[:3])
                if not is_dead and timestamp > hidden:
                    found.append((path, timestamp, value))
        return sorted(found, key=lambda cell: path_order(column, cell[0]))

    def value(self, key, column):
        cells = self.live(key, column)
        if not cells:
            return None
        if column.collection is None:
            return cells[0][2]
        if column.collection == "map":
            return {path: value for path, _, value in cells}
        if column.collection == "set":
            return frozenset(path for path, _, _ in cells)
        return [value for _, _, value in cells]

    def timestamp(self, key, column):
        cells = self.live(key, column)
        return cells[0][1] if cells else None

    def forget(self, place, name, timestamp):
        for (key, of, _), writes in self.cells.items():
            if of == name and (key == STATIC) == (place == STATIC):
                writes[:] = [write for write in writes if write[0] > timestamp] or [(-1, True, b"", None)]
        for key, of in self.cleared:
            if of == name and (key == STATIC) == (place == STATIC) and self.cleared[key, of] <= timestamp:
                self.cleared[key, of] = -1

    # The effects of statements.

    def put(self, key, column, path, value, timestamp):
        """Writes one cell; None is a tombstone."""
        if value is None:
            raw = b""
        elif column.collection == "set":
            raw = b""
        else:
            raw = column.kind.serialize(value)
        self.cells[key, column.name, path].append((timestamp, value is None, raw, value))

    def clear(self, key, column, timestamp):
        self.cleared[key, column.name] = max(self.cleared[key, column.name], timestamp)

    def assign(self, table, key, column, value, timestamp):
        """The effect of `SET column = value`, which INSERT has too."""
        if column.collection is None:
            self.put(key, column, None, value, timestamp)
            return
        self.clear(key, column, timestamp - 1)
        if value:
            self.add(table, key, column, value, timestamp)

    def add(self, table, key, column, value, timestamp):
        """The effect of `SET column = column + value`."""
        if column.collection == "map":
            for path, element in value.items():
                self.put(key, column, path, element, timestamp)
        elif column.collection == "set":
            for path in value:
                self.put(key, column, path, True, timestamp)
        else:
            for element in value:
                self.put(key, column, table.next_number(), element, timestamp)

    def prepend(self, table, key, column, value, timestamp):
        for element in reversed(value):
            self.put(key, column, -table.next_number(), element, timestamp)

    def subtract(self, key, column, value, timestamp):
        """The effect of `SET column = column - value`: removes keys of a map, or elements of a set
        or list."""
        if column.collection == "list":
            for path, _, element in self.live(key, column):
                if element in value:
                    self.put(key, column, path, None, timestamp)
            return
        for path in value:
            self.put(key, column, path, None, timestamp)

    def delete_column(self, key, column, timestamp):
        if column.collection is None:
            self.put(key, column, None, None, timestamp)
        else:
            self.clear(key, column, timestamp)


def path_order(column, path):
    if column.collection == "set":
        return column.kind.order(path)
    if column.collection == "map":
        return path.encode()
    return path if path is not None else 0


class Reversed:
    """A sort key in reverse order."""

    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return other.key < self.key

    def __eq__(self, other):
        return self.key == other.key
