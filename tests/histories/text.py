"""Writes values into statements."""


class Text:
    """Writes values into a statement, as literals or as markers with a value each."""

    def __init__(self, rng):
        self._markers = rng.random() < 0.4
        self.values = ()

    def scalar(self, kind, value):
        if self._markers:
            self.values += (value,)
            return "?"
        return "null" if value is None else kind.literal(value)

    def value(self, column, value):
        if column.collection is None or self._markers:
            return self.scalar(column.kind, _bound(column, value))
        if value is None:
            return "null"
        literal = column.kind.literal
        if column.collection == "map":
            return "{" + ", ".join(f"'{key}': {literal(element)}" for key, element in value.items()) + "}"
        brackets = "{}" if column.collection == "set" else "[]"
        return brackets[0] + ", ".join(literal(element) for element in value) + brackets[1]

    def keys(self, keys):
        """Writes keys of a map, as a set."""
        if self._markers:
            self.values += (set(keys),)
            return "?"
        return "{" + ", ".join(f"'{key}'" for key in keys) + "}"


def _bound(column, value):
    return set(value) if column.collection == "set" and value is not None else value
