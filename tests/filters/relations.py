"""Relations of a WHERE clause: their CQL, their JSON over HTTP, and whether they hold for a row.

A row is a dict of its columns' values, None for null. A null satisfies nothing. Values compare in
the order of their type (`edges`), those of the partition key by their bytes for equality."""

import operator

SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Relation:
    """A relation. `text` has a `?` for each of `values`, and `literals` are their texts. `json` is
    the restriction over HTTP, None if there is none. `columns` are those it restricts, `key` those
    of them that it asks to equal something, and `holds(row)` says whether a row satisfies it."""

    def __init__(self, text, values, literals, json, columns, holds, is_equality=False):
        self.text, self.values, self.literals, self.json = text, list(values), list(literals), json
        self.columns, self.holds = set(columns), holds
        self.key = self.columns if is_equality else set()

    def with_literals(self):
        """The text with the values written into it."""
        parts = self.text.split("?")
        return "".join(part + literal for part, literal in zip(parts, [*self.literals, ""]))


def compare(table, column, sign, value):
    """`f < 5`."""
    cql_type = table.types[column]
    equal = table.equality(column)

    def holds(row):
        if row[column] is None:
            return False
        if sign == "=":
            return equal(row[column], value)
        return SIGNS[sign](cql_type.order(row[column]), cql_type.order(value))

    restriction = _json({"type": _word(sign), "lhs": column}, rhs=_scalar(cql_type, value))
    literals = [cql_type.literal(value)]
    return Relation(f"{column} {sign} ?", [value], literals, restriction, [column], holds, sign == "=")


def is_in(table, column, values):
    """`f IN (5, 6)`."""
    cql_type = table.types[column]
    equal = table.equality(column)

    def holds(row):
        return row[column] is not None and any(equal(row[column], value) for value in values)

    restriction = _json({"type": "IN", "lhs": column}, rhs=[_scalar(cql_type, value) for value in values])
    text = f"{column} IN ({_markers(values)})"
    return Relation(text, values, map(cql_type.literal, values), restriction, [column], holds, is_equality=True)


def compare_tuples(table, columns, sign, values):
    """`(c, d) < (5, 6)`."""
    restriction = _json({"type": f"(){_word(sign)}()", "lhs": list(columns)}, rhs=_scalars(table, columns, values))
    text = f"({', '.join(columns)}) {sign} ({_markers(values)})"
    literals = _literals(table, columns, values)
    return Relation(text, values, literals, restriction, columns, lambda row: _tuple_holds(table, columns, sign, values, row))


def in_tuples(table, columns, tuples):
    """`(c, d) IN ((5, 6), (7, 8))`."""

    def holds(row):
        return any(_tuple_holds(table, columns, "=", values, row) for values in tuples)

    restriction = _json({"type": "()IN()", "lhs": list(columns)}, rhs=[_scalars(table, columns, values) for values in tuples])
    text = f"({', '.join(columns)}) IN ({', '.join(f'({_markers(values)})' for values in tuples)})"
    values = [value for values in tuples for value in values]
    literals = [literal for values in tuples for literal in _literals(table, columns, values)]
    return Relation(text, values, literals, restriction, columns, holds)


def _tuple_holds(table, columns, sign, values, row):
    """The columns are compared one after the other; the first that differs decides."""
    for column, value in zip(columns, values):
        order = table.types[column].order
        if row[column] is None:
            return False
        if order(row[column]) != order(value):
            return SIGNS[sign](order(row[column]), order(value))
    return sign in ("=", "<=", ">=")


def contains(table, column, value):
    """`l CONTAINS 5`."""
    _, element = table.parts[column]

    def holds(row):
        elements = row[column] or ()
        elements = elements.values() if isinstance(elements, dict) else elements
        return any(element.is_equal(one, value) for one in elements)

    restriction = _json({"type": "CONTAINS", "lhs": column}, rhs=_scalar(element, value))
    return Relation(f"{column} CONTAINS ?", [value], [element.literal(value)], restriction, [column], holds)


def contains_key(table, column, key):
    """`m CONTAINS KEY 'a'`."""
    of, _ = table.parts[column]

    def holds(row):
        return any(of.is_equal(one, key) for one in row[column] or ())

    restriction = _json({"type": "CONTAINS KEY", "lhs": column}, rhs=_scalar(of, key))
    return Relation(f"{column} CONTAINS KEY ?", [key], [of.literal(key)], restriction, [column], holds)


def entry(table, column, key, value):
    """`m['a'] = 5`."""
    of, element = table.parts[column]

    def holds(row):
        return any(of.is_equal(a, key) and element.is_equal(b, value) for a, b in (row[column] or {}).items())

    restriction = {"type": "[]==", "lhs": column}
    restriction = _json(restriction, key=_scalar(of, key), rhs=_scalar(element, value))
    literals = [of.literal(key), element.literal(value)]
    return Relation(f"{column}[?] = ?", [key, value], literals, restriction, [column], holds)


def whole(table, column, value):
    """`fl = [5, 6]`, of a frozen list."""
    _, element = table.parts[column]

    def holds(row):
        found = row[column]
        return found is not None and list(map(element.order, found)) == list(map(element.order, value))

    literal = f"[{', '.join(map(element.literal, value))}]"
    return Relation(f"{column} = ?", [value], [literal], None, [column], holds)


def token(table, sign, number):
    """`token(p, q) < 5`."""
    columns = list(table.PARTITION)
    restriction = {"type": f"TOKEN{_word(sign)}", "lhs": columns, "rhs": number}
    text = f"token({', '.join(columns)}) {sign} ?"
    return Relation(text, [number], [str(number)], restriction, columns, lambda row: SIGNS[sign](table.token(row), number))


def _word(sign):
    return "==" if sign == "=" else sign


def _markers(values):
    return ", ".join("?" * len(values))


def _scalar(cql_type, value):
    return cql_type.json and cql_type.json(value)


def _scalars(table, columns, values):
    return [_scalar(table.types[column], value) for column, value in zip(columns, values)]


def _literals(table, columns, values):
    return [table.types[column].literal(value) for column, value in zip(columns, values)]


def _json(restriction, **values):
    """A restriction with these values; None if one of them has no JSON."""
    return None if _has_none(values) else restriction | values


def _has_none(value):
    if isinstance(value, (list, dict)):
        return any(map(_has_none, value.values() if isinstance(value, dict) else value))
    return value is None
