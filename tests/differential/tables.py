"""Random tables: their columns, user types and indexes, as they are at a moment of a story."""

import dataclasses

import shapes


@dataclasses.dataclass
class Column:
    """A column. Its values come from a small domain, so that keys collide and values tie."""

    name: str
    type: object
    domain: list
    part: str  # "partition", "clustering", "static" or "regular"
    descending: bool = False

    def pick(self, rng):
        if rng.random() < 0.03:
            return self.type.random(rng, self.part != "partition")
        return rng.choice(self.domain)

    def renew(self, rng):
        self.domain = _domain(rng, self.type, self.part)


def column(rng, name, cql_type, part, descending=False):
    return Column(name, cql_type, _domain(rng, cql_type, part), part, descending)


def _domain(rng, cql_type, part):
    size = {"partition": 3, "clustering": 4}.get(part, 5)
    return [cql_type.random(rng, part != "partition") for _ in range(size)]


class Table:
    """A table `t`. `users` are its user types: name to [(field, type)]. `indexes` are (name, column,
    target, is_sai)."""

    def __init__(self, rng):
        self.is_counter = rng.random() < 0.07
        self.users = {} if self.is_counter else _random_users(rng)
        self._numbers = {}
        self.columns = []
        for _ in range(rng.choice([1, 1, 2])):
            self._add(rng, "p", shapes.random_key_type(rng, self.users), "partition")
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
            self._add(rng, "c", shapes.random_key_type(rng, self.users), "clustering", rng.random() < 0.4)
        if self.clustering:
            for _ in range(rng.choice([0, 0, 1, 2])):
                self._add(rng, "s", self.random_value_type(rng), "static")
        for _ in range(rng.choice([1, 2, 3, 4, 5])):
            self._add(rng, "v", self.random_value_type(rng), "regular")
        self.explicit = rng.choice([0, 0.3, 0.95])
        """The share of writes with an explicit timestamp."""
        self.indexes = []
        self.dropped = []

    def random_value_type(self, rng):
        return Counter() if self.is_counter else shapes.random_type(rng, self.users)

    def _add(self, rng, letter, cql_type, part, descending=False):
        number = self._numbers[letter] = self._numbers.get(letter, -1) + 1
        added = column(rng, f"{letter}{number}", cql_type, part, descending)
        self.columns.append(added)
        return added

    def add_column(self, rng):
        """Adds a regular column of a name that was not there before."""
        return self._add(rng, "v", self.random_value_type(rng), "regular")

    def of(self, part):
        return [column for column in self.columns if column.part == part]

    partition = property(lambda self: self.of("partition"))
    clustering = property(lambda self: self.of("clustering"))
    static = property(lambda self: self.of("static"))
    regular = property(lambda self: self.of("regular"))
    values = property(lambda self: self.static + self.regular)
    key = property(lambda self: self.partition + self.clustering)

    def definitions(self):
        """The statements that make the table and its types."""
        texts = [
            f"CREATE TYPE {name} ({', '.join(f'{field} {cql_type.name}' for field, cql_type in fields)})"
            for name, fields in self.users.items()
        ]
        columns = [f"{c.name} {c.type.name}{' STATIC' if c.part == 'static' else ''}" for c in self.columns]
        key = ", ".join([f"({', '.join(c.name for c in self.partition)})"] + [c.name for c in self.clustering])
        order = ", ".join(f"{c.name} {'DESC' if c.descending else 'ASC'}" for c in self.clustering)
        order = f" WITH CLUSTERING ORDER BY ({order})" if order else ""
        texts.append(f"CREATE TABLE t ({', '.join(columns)}, PRIMARY KEY ({key})){order}")
        return texts


class Counter:
    """The type of counters; `random` gives what is added."""

    name = "counter"
    fixed_size = None

    def random(self, rng, _may_be_empty=True):
        return shapes.Scalar(next(k for k in shapes.KINDS if k.name == "bigint")).of(rng.choice([1, 2, 5, -1, 0]))

    def frozen(self):
        return self

    def has_duration(self):
        return False


def _random_users(rng):
    users = {}
    for number in range(rng.choice([0, 0, 1, 2])):
        # A type may have those before it as fields.
        fields = [(f"f{n}", shapes.random_type(rng, users, 1).frozen()) for n in range(rng.randrange(1, 4))]
        users[f"u{number}"] = fields
    return users
