"""Writes the bytes of a value as readable text, one text for one byte string.

For a scalar that the driver would not write back as the same bytes, the text shows the bytes. So
nothing that the server sends is smoothed over.
"""

import math
import struct

from cassandra import cqltypes
from cassandra.marshal import uvint_unpack

PROTOCOL = 4


def literal(cql_type, raw):
    """The text of `raw`, the serialised form of a value of the driver's type `cql_type`. None
    becomes null."""
    if raw is None:
        return "null"
    if issubclass(cql_type, cqltypes.VectorType):
        return _joined("[]", _vector_elements(cql_type, raw))
    if issubclass(cql_type, cqltypes.MapType):
        elements = _collection_elements(cql_type.subtypes, raw)
        return _joined("{}", [f"{key}: {value}" for key, value in zip(elements[::2], elements[1::2])])
    if issubclass(cql_type, (cqltypes.ListType, cqltypes.SetType)):
        brackets = "[]" if issubclass(cql_type, cqltypes.ListType) else "{}"
        return _joined(brackets, _collection_elements(cql_type.subtypes, raw))
    if issubclass(cql_type, cqltypes.TupleType):
        return _joined("()", _fields(cql_type.subtypes, raw))
    return _scalar(cql_type, raw)


def _joined(brackets, texts):
    return brackets[0] + ", ".join(texts) + brackets[1]


def _collection_elements(types, raw):
    """The texts of a collection's elements; keys and values of a map alternate."""
    (count,) = struct.unpack_from(">i", raw)
    texts, at = [], 4
    for _ in range(count):
        for element_type in types:
            element, at = _sized(raw, at)
            texts.append(literal(element_type, element))
    assert at == len(raw), f"{len(raw) - at} bytes too many in {raw.hex()}"
    return texts


def _fields(types, raw):
    texts, at = [], 0
    for field_type in types:
        if at == len(raw):
            break
        field, at = _sized(raw, at)
        texts.append(literal(field_type, field))
    assert at == len(raw), f"{len(raw) - at} bytes too many in {raw.hex()}"
    return texts


def _sized(raw, at):
    """(value, the offset behind it) of a value with its length before it."""
    (length,) = struct.unpack_from(">i", raw, at)
    at += 4
    if length < 0:
        return None, at
    assert at + length <= len(raw), f"cut short: {raw.hex()}"
    return raw[at : at + length], at + length


def _vector_elements(cql_type, raw):
    texts, at = [], 0
    for _ in range(cql_type.vector_size):
        size = cql_type.subtype.serial_size()
        if size is None:
            size, read = uvint_unpack(raw[at:])
            at += read
        texts.append(literal(cql_type.subtype, raw[at : at + size]))
        at += size
    assert at == len(raw), f"a vector of {len(raw)} bytes, not {at}: {raw.hex()}"
    return texts


def _scalar(cql_type, raw):
    if not raw and not issubclass(cql_type, (cqltypes.UTF8Type, cqltypes.AsciiType, cqltypes.BytesType)):
        return "empty"
    show = _READABLE.get(cql_type.typename, str)
    try:
        value = cql_type.deserialize(raw, PROTOCOL)
        text, again = show(value), cql_type.serialize(value, PROTOCOL)
    except Exception:  # A value that the driver cannot read is shown as bytes.
        return f"0x{raw.hex()}"
    return text if again == raw else f"{text} 0x{raw.hex()}"


def _single(number):
    """The shortest decimal that names this float."""
    if not math.isfinite(number):
        return repr(number)
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", number):
            return text
    raise AssertionError(number)


def _quoted(text):
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "'" + escaped.replace("'", "''") + "'"


def _timestamp(value):
    return value.isoformat(timespec="milliseconds") + "Z"


# Functions that show the Python value of a type, by CQL name.
_READABLE = {
    "ascii": _quoted,
    "text": _quoted,
    "varchar": _quoted,
    "blob": lambda value: f"0x{bytes(value).hex()}",
    "float": _single,
    "double": repr,
    "boolean": lambda value: "true" if value else "false",
    "timestamp": _timestamp,
}
