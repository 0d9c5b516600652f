"""Conditions on rows: relations of WHERE, which all must hold, and for HTTP trees of them with OR and
NOT.

A condition on a column without a value is neither true nor false, and so is its opposite."""

import relations as rel
from films import DAY, FIRST_SEEN


class Condition:
    """A condition: its JSON over HTTP, and its value for a row: true, false, or None for neither."""

    def __init__(self, json, value):
        self.json, self.value = json, value

    def holds(self, row):
        return self.value(row) is True


def leaf(relation):
    def value(row):
        return None if any(row[column] is None for column in relation.columns) else relation.holds(row)

    return Condition(relation.json, value)


def all_of(*conditions):
    def value(row):
        values = [condition.value(row) for condition in conditions]
        return False if False in values else None if None in values else True

    return Condition({"and": [condition.json for condition in conditions]}, value)


def any_of(*conditions):
    def value(row):
        values = [condition.value(row) for condition in conditions]
        return True if True in values else None if None in values else False

    return Condition({"or": [condition.json for condition in conditions]}, value)


def none_of(condition):
    def value(row):
        found = condition.value(row)
        return None if found is None else not found

    return Condition({"not": condition.json}, value)


def differs(films, column, value):
    """`!=`, the opposite of `=` in one word."""
    opposite = none_of(leaf(rel.compare(films, column, "=", value)))
    return Condition(opposite.json["not"] | {"type": "!="}, opposite.value)


def filters(films):
    """(name, relations) of WHERE, one of each kind and some together."""
    rng = films.rng
    year = lambda: rng.randrange(1990, 2000)  # noqa: E731
    compare = lambda column, sign, value: rel.compare(films, column, sign, value)  # noqa: E731
    seen = FIRST_SEEN + rng.randrange(20, 80) * DAY
    first = year()
    yield "none", []
    yield "key", [compare("p", "=", rng.randrange(films.partitions))]
    yield "key_in", [rel.is_in(films, "p", rng.sample(range(films.partitions), 2))]
    yield "clustering_range", [compare("c", ">", 5), compare("c", "<=", 25)]
    yield "whole_key", [compare("p", "=", rng.randrange(films.partitions)), compare("c", "=", rng.randrange(10))]
    yield "int", [compare("year", "=", year())]
    yield "int_range", [compare("year", ">=", first), compare("year", "<", first + 4)]
    yield "int_in", [rel.is_in(films, "year", [year(), year(), year()])]
    yield "text", [compare("lang", "=", rng.choice(["en", "de"]))]
    yield "text_in", [rel.is_in(films, "lang", ["en", "fr"])]
    yield "contains", [rel.contains(films, "tags", "new")]
    yield "timestamp", [compare("seen", ">=", seen)]
    yield "several", [compare("lang", "=", "en"), compare("year", "<", 1997), rel.contains(films, "tags", "old")]
    yield "nothing", [compare("lang", "=", "none")]
    yield "not_kept", [compare("plain", "=", 1)]


def trees(films):
    """(name, condition) of filters that CQL does not have."""
    rng = films.rng
    is_ = lambda column, sign, value: leaf(rel.compare(films, column, sign, value))  # noqa: E731
    new, english = leaf(rel.contains(films, "tags", "new")), is_("lang", "=", "en")
    year = lambda sign: is_("year", sign, rng.randrange(1992, 1998))  # noqa: E731
    yield "one", english
    yield "or", any_of(year("="), year("="), english)
    yield "or_of_columns", any_of(english, new)
    yield "not", none_of(english)
    yield "not_equal", none_of(year("="))
    yield "differs", differs(films, "lang", "de")
    yield "not_differs", any_of(none_of(differs(films, "lang", "de")), differs(films, "c", 7))
    yield "not_contains", none_of(new)
    yield "not_of_range", none_of(is_("seen", "<", FIRST_SEEN + 40 * DAY))
    yield "not_of_or", none_of(any_of(english, year("<")))
    yield "not_of_and", none_of(all_of(english, new))
    yield "not_not", none_of(none_of(english))
    yield "nested", all_of(any_of(english, none_of(new)), any_of(year("<"), all_of(new, year(">="))))
    yield "keys", any_of(is_("p", "=", 1), all_of(is_("p", "=", 2), is_("c", "<", 10)), none_of(is_("c", "<", 30)))
    yield "nothing", all_of(english, none_of(english))
    yield "all", any_of(english, none_of(english))
