"""The CQL types that a column can have, with values at their edges, and the order and the JSON of
these.

The text and the order of most types are those of the histories."""

import datetime
import decimal
import math
import uuid

import numpy
from cassandra import cqltypes, util
from kinds import KINDS, Kind

EPOCH = datetime.datetime(1970, 1, 1)


def _json_of_double(value):
    """A number, or the text of an infinity, which is no number in JSON."""
    return str(value).replace("inf", "Infinity") if math.isinf(value) else value


def _json_of_float(value):
    """The shortest number that is this float."""
    return _json_of_double(value if math.isinf(value) else float(str(numpy.float32(value))))


def _json_of_timestamp(value, between="T"):
    moment = EPOCH + datetime.timedelta(milliseconds=value)
    return f"{moment.isoformat(between, 'milliseconds')}Z"


class Type(Kind):
    """A scalar type.

    `json` gives the JSON of a value in a filter, None if it has none, and `json_of_key` that of a key
    in an answer. `key` is the type that the keys of a table
    of this type have. `can_be_declared` says whether values compare by `<`, and an index keeps a
    column of them."""

    def __init__(self, name, values, literal=str, order=lambda value: value, json=str, json_of_key=None, key=None, can_be_declared=True):
        super().__init__(name, values, literal, order)
        self.json, self.json_of_key = json, json_of_key or json
        self.key, self.can_be_declared = key or self, can_be_declared

    @classmethod
    def of_histories(cls, name, values, order=None, json=str, key=None):
        """A type that is written and ordered as in the histories, with values of its own."""
        (kind,) = (kind for kind in KINDS if kind.name == name)
        return cls(name, values, kind.literal, order or kind.order, json, key=key)

    def is_equal(self, left, right):
        return self.order(left) == self.order(right)


def _java_order(value):
    """Floats in Cassandra's order, in which a negative zero is less than zero."""
    return value, math.copysign(1, value)


def _uuid_order(value):
    return value.version or 0, value.time if value.version == 1 else 0, value.bytes


def _plain(value):
    return value


_HALVES = [-1.5, -0.0, 0.0, 0.25]
_DOUBLES = [-math.inf, -1.7976931348623157e308, *_HALVES, 5e-324, 1.7976931348623157e308, math.inf]
_FLOATS = [-math.inf, -(2.0**127), *_HALVES, 2.0**-149, 2.0**127, math.inf]
_TEXTS = ["", "a", "aa", "b", "it's", "é", "𝄞", "long " * 800]
_DECIMALS = ["-1E+30", "-0.5", "0", "0.00", "0.01", "1", "1.0", "1.00", "2E+10", "123456789.123456789"]
_TIMEUUIDS = [util.uuid_from_time(seconds, node=n, clock_seq=n) for n, seconds in enumerate((0, 1.5, 1.6e9, 1.7e9, 4e9))]
_UUIDS = [uuid.UUID(int=0), *_TIMEUUIDS[:3], *(uuid.UUID(int=n << 90, version=4) for n in (1, 2**35, 2**37 + 5))]
_TIMESTAMPS = [-62135596800000, -1, 0, 1, 1_767_322_945_678, 253402300799999]

_of = Type.of_histories


def _integers(name, bits):
    largest = 2 ** (bits - 1) - 1
    return _of(name, [-largest - 1, -1, 0, 1, 2, 100, largest], json=_plain)


def _floats(name, values, json):
    """Keys are finite, as ScyllaDB knows no JSON of others."""
    make = lambda values, key: _of(name, values, _java_order, json, key)  # noqa: E731
    return make(values, make(list(filter(math.isfinite, values)), None))


INT = _integers("int", 32)
DURATIONS = [util.Duration(*parts) for parts in ((0, 0, 0), (1, 0, 0), (0, 30, 0), (0, 0, 10**9), (-1, -2, -3))]

TYPES = [
    _integers("tinyint", 8),
    _integers("smallint", 16),
    INT,
    _integers("bigint", 64),
    _of("varint", [-(2**70), -256, -1, 0, 1, 255, 2**70]),
    _floats("float", _FLOATS, _json_of_float),
    _floats("double", _DOUBLES, _json_of_double),
    _of("decimal", [decimal.Decimal(text) for text in _DECIMALS]),
    _of("text", _TEXTS),
    _of("ascii", ["", "A", "a", "ab", "b", "~" * 300]),
    _of("blob", [b"", b"\0", b"\0\0", b"\x01", b"\x7f", b"\xff", b"\xff\0", b"\x80" * 500], json=lambda value: "0x" + value.hex()),
    _of("boolean", [False, True], json=_plain),
    _of("uuid", _UUIDS, _uuid_order),
    _of("timeuuid", _TIMEUUIDS),
    # ScyllaDB writes a space where the index service writes a T.
    Type("timestamp", _TIMESTAMPS, json=lambda value: _json_of_timestamp(value, " "), json_of_key=_json_of_timestamp),
    _of("date", [util.Date(days) for days in (-719162, -1, 0, 1, 20_000, 2_932_896)]),
    _of("time", [util.Time(n) for n in (0, 1, 999, 43_200_000_000_000, 86_399_999_999_999)]),
    _of("inet", ["0.0.0.0", "10.0.0.1", "10.0.0.2", "255.255.255.255", "::1", "fe80::1", "ffff::"]),
    Type("duration", DURATIONS, order=lambda value: (value.months, value.days, value.nanoseconds), json=None, key=INT, can_be_declared=False),
]

BY_NAME = {cql_type.name: cql_type for cql_type in TYPES}
assert set(BY_NAME) <= set(cqltypes._cqltypes)
