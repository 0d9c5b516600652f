"""The CQL types of histories: random values, their literals, and their order.

Domains are small, so that keys collide and values tie."""

import datetime
import decimal
import ipaddress
import math
import uuid

from cassandra import cqltypes, util


class Kind:
    """A scalar type.

    `values` is the domain, as the driver returns it. `literal` turns a value into CQL text. `order`
    gives a sort key."""

    def __init__(self, name, values, literal=str, order=lambda value: value):
        self.name, self.values, self.literal, self.order = name, values, literal, order
        self._cql_type = cqltypes._cqltypes[name]

    def random(self, rng):
        return rng.choice(self.values)

    def without_empty(self):
        """This type for a partition key, which may not be empty."""
        return Kind(self.name, [value for value in self.values if self.serialize(value)], self.literal, self.order)

    def serialize(self, value):
        return self._cql_type.serialize(value, 4)


def _quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def _timestamp(value):
    return str(round((value - datetime.datetime(1970, 1, 1)) / datetime.timedelta(milliseconds=1)))


_UUIDS = [uuid.UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128, version=4) for n in range(1, 8)]
_TIMEUUIDS = [util.uuid_from_time(1_600_000_000 + 977 * n, node=n, clock_seq=n) for n in range(7)]
_TIMES = [datetime.datetime(1969, 12, 31, 23) + datetime.timedelta(hours=11 * n) for n in range(7)]
_DATES = [util.Date(n) for n in (-800_000, -1, 0, 1, 20_000)]

KINDS = [
    Kind("tinyint", [-128, -1, 0, 1, 2, 127]),
    Kind("smallint", [-32768, -1, 0, 1, 2, 300]),
    Kind("int", [-(2**31), -1, 0, 1, 2, 3, 4, 2**31 - 1]),
    Kind("bigint", [-(2**63), -1, 0, 1, 2, 2**63 - 1]),
    Kind("varint", [-(2**70), -256, -1, 0, 1, 255, 2**70]),
    Kind("text", ["", "a", "aa", "b", "it's", "é", "𝄞"], _quoted, lambda value: value.encode()),
    Kind("ascii", ["", "A", "a", "ab", "b"], _quoted),
    Kind("blob", [b"", b"\0", b"\0\0", b"\x01", b"\xff", b"\xff\0"], lambda value: "0x" + value.hex()),
    Kind("boolean", [False, True], lambda value: str(value).lower()),
    Kind("uuid", _UUIDS, str, lambda value: value.bytes),
    Kind("timeuuid", _TIMEUUIDS, str, lambda value: value.time),
    Kind("timestamp", _TIMES, _timestamp),
    Kind("date", _DATES, lambda value: str(value.days_from_epoch + 2**31), lambda value: value.days_from_epoch),
    Kind("time", [util.Time(n) for n in (0, 1, 999, 86_399_999_999_999)], _quoted, lambda value: value.nanosecond_time),
    Kind("double", [-math.inf, -1.5, 0.0, 0.25, 1e300, math.inf], lambda value: repr(value).replace("inf", "Infinity")),
    Kind("float", [-math.inf, -1.5, 0.0, 0.25, 2.0**100], lambda value: repr(value).replace("inf", "Infinity")),
    Kind("decimal", [decimal.Decimal(text) for text in ("-1E+30", "-0.5", "0", "0.01", "1", "2E+10")]),
    Kind(
        "inet",
        ["0.0.0.0", "10.0.0.1", "10.0.0.2", "::1", "fe80::1"],
        _quoted,
        lambda value: ipaddress.ip_address(value).packed,
    ),
]


def compare_tuples(columns, left, sign, right):
    """`(a, b) < (x, y)` by the order of the columns' types."""
    left = tuple(column.kind.order(value) for column, value in zip(columns, left))
    right = tuple(column.kind.order(value) for column, value in zip(columns, right))
    return {
        "=": left == right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]
