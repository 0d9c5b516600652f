"""CQL types of any shape, and random values of them.

The scalar types are those of tests/histories, with their small domains. A value is written as a
literal, as bytes for a bind variable, and as JSON."""

import dataclasses
import json
import struct

from cassandra import cqltypes, util
from cassandra.marshal import uvint_pack
from kinds import KINDS


@dataclasses.dataclass(frozen=True)
class Value:
    """A value. `raw` is None if it is not sent as a variable, `json` if it has no JSON form."""

    literal: str
    raw: bytes = None
    json: str = None
    has_raw: bool = True


NULL = Value("null", None, "null")


class Scalar:
    """A scalar type of tests/histories."""

    def __init__(self, kind):
        self.kind, self.name = kind, kind.name

    def random(self, rng, may_be_empty=True):
        values = self.kind.values if may_be_empty else self.kind.without_empty().values
        return self.of(rng.choice(values))

    def of(self, value):
        return Value(self.kind.literal(value), self.kind.serialize(value), _scalar_json(self.kind, value))

    @property
    def fixed_size(self):
        return self.kind._cql_type.serial_size()

    def frozen(self):
        return self

    def has_duration(self):
        return False


class DurationType:
    """Durations, which have no order."""

    name = "duration"
    fixed_size = None
    _values = [("1mo", (1, 0, 0)), ("2d3h", (0, 2, 3 * 3_600_000_000_000)), ("-1y1ns", (-12, 0, -1)), ("0s", (0, 0, 0))]

    def random(self, rng, may_be_empty=True):
        text, parts = rng.choice(self._values)
        return Value(text, cqltypes.DurationType.serialize(util.Duration(*parts), 4), json.dumps(text))

    def frozen(self):
        return self

    def has_duration(self):
        return True


class Collection:
    """A list, set or map. Its elements' types are frozen."""

    fixed_size = None

    def __init__(self, kind, elements, is_frozen):
        self.kind, self.elements, self.is_frozen = kind, [element.frozen() for element in elements], is_frozen
        name = f"{kind}<{', '.join(element.name for element in self.elements)}>"
        self.name = f"frozen<{name}>" if is_frozen else name

    def random(self, rng, may_be_empty=True):
        count = rng.choice([0, 1, 1, 2, 2, 3]) if may_be_empty else rng.randrange(1, 4)
        return self.of([tuple(element.random(rng) for element in self.elements) for _ in range(count)])

    def of(self, items):
        """The value of tuples with an element each, for a map with a key and a value."""
        if self.kind != "list":
            # A later element with an equal key stands.
            items = list({item[0].literal: item for item in items}.values())
        literals = [": ".join(value.literal for value in item) for item in items]
        opened, closed = "[]" if self.kind == "list" else "{}"
        return Value(
            opened + ", ".join(literals) + closed, self._raw(items), self._json(items), self._raw(items) is not None
        )

    def _raw(self, items):
        if any(not value.has_raw or value.raw is None for item in items for value in item):
            return None
        if self.kind != "list" and len(items) > 1:
            # The order of other types would have to be known.
            if not isinstance(self.elements[0], Scalar) or self.elements[0].name not in ("text", "ascii", "blob", "date"):
                return None
            items = sorted(items, key=lambda item: item[0].raw)
        return struct.pack(">i", len(items)) + b"".join(_sized(value.raw) for item in items for value in item)

    def _json(self, items):
        if any(value.json is None for item in items for value in item):
            return None
        if self.kind != "map":
            return "[" + ", ".join(item[0].json for item in items) + "]"
        keys = [key.json if key.json.startswith('"') else json.dumps(key.json) for key, _ in items]
        return "{" + ", ".join(f"{key}: {value.json}" for key, (_, value) in zip(keys, items)) + "}"

    def frozen(self):
        return Collection(self.kind, self.elements, True)

    def has_duration(self):
        return any(element.has_duration() for element in self.elements)


class Tuple:
    """A tuple, which is frozen by nature."""

    fixed_size = None

    def __init__(self, fields):
        self.fields = [field.frozen() for field in fields]
        self.name = f"frozen<tuple<{', '.join(field.name for field in self.fields)}>>"

    def random(self, rng, may_be_empty=True):
        return _fields(rng, [(None, field) for field in self.fields], "()")

    def frozen(self):
        return self

    def has_duration(self):
        return any(field.has_duration() for field in self.fields)


class User:
    """A user type. `fields` is a list of (name, type), which ALTER TYPE changes."""

    fixed_size = None

    def __init__(self, type_name, fields, is_frozen):
        self.type_name, self.fields, self.is_frozen = type_name, fields, is_frozen
        self.name = f"frozen<{type_name}>" if is_frozen else type_name

    def random(self, rng, may_be_empty=True):
        return _fields(rng, self.fields, "{}")

    def frozen(self):
        return User(self.type_name, self.fields, True)

    def has_duration(self):
        return any(field.has_duration() for _, field in self.fields)


class Vector:
    def __init__(self, element, length):
        self.element, self.length = element.frozen(), length
        self.name = f"vector<{self.element.name}, {length}>"

    @property
    def fixed_size(self):
        size = self.element.fixed_size
        return size and size * self.length

    def random(self, rng, may_be_empty=True):
        values = [self.element.random(rng) for _ in range(self.length)]
        has_raw = all(value.has_raw for value in values)
        raw = None
        if has_raw:
            is_fixed = self.element.fixed_size is not None
            raw = b"".join(value.raw if is_fixed else uvint_pack(len(value.raw)) + value.raw for value in values)
        texts = None if any(value.json is None for value in values) else ", ".join(value.json for value in values)
        literal = "[" + ", ".join(value.literal for value in values) + "]"
        return Value(literal, raw, texts and f"[{texts}]", has_raw)

    def frozen(self):
        return self

    def has_duration(self):
        return self.element.has_duration()


SCALARS = [Scalar(kind) for kind in KINDS]
INT = next(scalar for scalar in SCALARS if scalar.name == "int")
TEXT = next(scalar for scalar in SCALARS if scalar.name == "text")
FLOAT = next(scalar for scalar in SCALARS if scalar.name == "float")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal")


def random_type(rng, users, depth=2):
    """A type of a regular column; `users` are the user types."""
    roll = rng.random()
    if depth == 0 or roll < 0.5:
        return DurationType() if rng.random() < 0.06 else rng.choice(SCALARS)
    if roll < 0.78:
        kind = rng.choice(["list", "set", "map"])
        elements = [random_type(rng, users, depth - 1) for _ in range(2 if kind == "map" else 1)]
        if kind != "list" and elements[0].has_duration():
            elements[0] = TEXT
        return Collection(kind, elements, rng.random() < 0.3)
    if roll < 0.85:
        return Tuple([random_type(rng, users, depth - 1) for _ in range(rng.randrange(1, 4))])
    if roll < 0.94 and users:
        name = rng.choice(list(users))
        return User(name, users[name], depth < 2 or rng.random() < 0.5)
    element = FLOAT if rng.random() < 0.5 else random_type(rng, users, depth - 1)
    return Vector(element, rng.randrange(1, 4))


def random_key_type(rng, users):
    """A type of a column of the primary key."""
    if rng.random() < 0.8:
        return rng.choice(SCALARS)
    found = random_type(rng, users).frozen()
    return rng.choice(SCALARS) if found.has_duration() else found


def _sized(raw):
    return struct.pack(">i", -1) if raw is None else struct.pack(">i", len(raw)) + raw


def _fields(rng, fields, brackets):
    """A random value of a tuple or user type, with a null here and there."""
    values = [NULL if rng.random() < 0.12 else field.random(rng) for _, field in fields]
    has_raw = all(value.has_raw for value in values)
    raw = b"".join(_sized(value.raw) for value in values) if has_raw else None
    names = [name for name, _ in fields]
    literals = [value.literal if name is None else f"{name}: {value.literal}" for name, value in zip(names, values)]
    texts = None
    if all(value.json is not None for value in values):
        texts = [value.json if name is None else f'"{name}": {value.json}' for name, value in zip(names, values)]
        texts = ("[{}]" if brackets == "()" else "{{{}}}").format(", ".join(texts))
    return Value(brackets[0] + ", ".join(literals) + brackets[1], raw, texts, has_raw)


def _scalar_json(kind, value):
    if kind.name in ("tinyint", "smallint", "int", "bigint", "varint"):
        return str(value)
    if kind.name in ("float", "double"):
        return None if abs(value) == float("inf") else repr(value)
    if kind.name == "boolean":
        return str(value).lower()
    if kind.name == "blob":
        return json.dumps("0x" + value.hex())
    if kind.name == "timestamp":
        return json.dumps(value.isoformat(timespec="milliseconds") + "Z")
    if kind.name == "date":
        return json.dumps(str(value)) if value.days_from_epoch >= -1 else None
    return json.dumps(str(value), ensure_ascii=False)
