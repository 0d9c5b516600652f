"""The differences between Annulus and Cassandra that are meant, each with its reason.

A rule looks at a statement and at both answers, never at the seed. `tests/compat/differences.txt`
and docs/cql.md tell the same differences by example."""

import re

from compare import what_counts
from sides import has_fault, is_refused, statement_of

ROUTE = re.compile(r"^partition key from variables [\d, ]+\n", re.MULTILINE)
LEGACY = "custom 'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'"

RULES = []


def meant(reason):
    def add(rule):
        RULES.append((reason, rule))
        return rule

    return add


def reason_for(step, theirs, ours):
    """Why two different answers are meant to differ; None if they are not. An answer may differ in
    the routing of its statement besides."""
    statement = statement_of(step)
    pairs = [(theirs, ours)]
    if _routed_batch(statement, theirs, theirs) or _routed_loosely(statement):
        pairs.append((ROUTE.sub("", theirs), ROUTE.sub("", ours)))
    found = (reason for their, our in pairs for reason, rule in RULES if rule(statement, their, our))
    return next(found, None)


def _routed_loosely(statement):
    return bool(" IN (" in statement or re.search(r"[<>]=? ?\?|CONTAINS", statement))


def _code(answer):
    """The code of the error in an answer; None if there is none."""
    found = re.search(r"^error (\w{4})", answer, re.MULTILINE)
    return found and found[1]


def _same(left, right):
    return what_counts(left) == what_counts(right)


def _cells(answer):
    return [line.split(" | ") for line in answer.split("\n")]


def _same_but(theirs, ours, columns):
    """Whether answers are equal but for the cells of these columns, by their numbers."""
    pairs = list(zip(_cells(theirs), _cells(ours)))
    return len(_cells(theirs)) == len(_cells(ours)) and all(
        len(their) == len(our) and all(a == b for at, (a, b) in enumerate(zip(their, our)) if at not in columns)
        for their, our in pairs
    )


def _columns(answer):
    """The (name and type) of the columns of an answer's rows."""
    found = re.search(r"^columns.*?: (.*)", answer, re.MULTILINE)
    return found[1].split(" | ") if found else []


@meant("Cassandra fails within; Annulus answers, or says what the client's mistake is.")
def _fault(_statement, theirs, ours):
    return has_fault(theirs) and not has_fault(ours)


@meant("The mistake is named rather than the word at which the grammar ends.")
def _syntax(_statement, theirs, ours):
    return {_code(theirs), _code(ours)} == {"2000", "2200"}


@meant("A batch is routed by the first of its statements, Cassandra's by the last.")
def _routed_batch(statement, theirs, ours):
    return statement.startswith("BEGIN") and _same(ROUTE.sub("", theirs), ROUTE.sub("", ours))


@meant("A statement is routed by variables that are equal to the key, not by one in IN or beside a bound.")
def _routed_in(statement, theirs, ours):
    return _routed_loosely(statement) and not ROUTE.search(ours) and _same(ROUTE.sub("", theirs), ours)


@meant("A duration of nothing has a text that can be read again, 0s; Cassandra's is empty.")
def _no_duration(_statement, theirs, ours):
    return "0s" in ours and re.sub(r"\b0s\b", "", ours) == theirs


@meant("Masks count characters; Cassandra cuts those beyond the first plane in two.")
def _masked(statement, theirs, ours):
    return "mask_" in statement and "?" in theirs and theirs.replace("?", "") == ours.replace("?", "")


@meant("A function of timeuuids has the type timeuuid; Cassandra names a class that drivers do not know.")
def _legacy_timeuuid(_statement, theirs, ours):
    legacy = {at for at, text in enumerate(_columns(theirs)) if "LegacyTimeUUIDType" in text}
    return bool(legacy) and _same_but(theirs.replace(LEGACY, "timeuuid"), ours, legacy)


@meant("Bytes behind a duration are refused.")
def _behind_duration(_statement, theirs, ours):
    return not is_refused(theirs) and "left over after the duration" in ours


@meant("A cast to its own type leaves a value; Cassandra finds none for a clustering column in descending order.")
def _cast_descending(_statement, theirs, ours):
    found = re.search(r"system\.cast_as_(\w+)", theirs)
    return bool(found) and _code(theirs) == "2200" and not is_refused(ours)


@meant("A comparison with null is refused also where an earlier condition fails.")
def _null_later(statement, theirs, ours):
    return " IF " in statement and "false" in theirs and "Invalid comparison with null" in ours


@meant("An index on vectors serves nearest neighbours of a regular column, and needs a class.")
def _vector_index(statement, _theirs, ours):
    words = r"An index on vectors|Vector indexes are not supported|Unsupported type: .*vector"
    return statement.startswith("CREATE") and bool(re.search(words, ours))


@meant("The fields of a literal in a column's name stand as they were written; Cassandra's stand as in a hash.")
def _named_fields(statement, theirs, ours):
    def ordered(answer):
        return [sorted(line) if "columns " in line else line for line in answer.split("\n")]

    return "{f" in statement and ordered(ROUTE.sub("", theirs)) == ordered(ROUTE.sub("", ours))


@meant("A moment before 1970 lies on its own day; Cassandra gives the next one.")
def _day_before_1970(statement, theirs, ours):
    if not re.search(r"toDate|AS date", statement):
        return False
    their_cells, our_cells = (sum(_cells(answer), []) for answer in (theirs, ours))
    different = {pair for pair in zip(their_cells, our_cells) if pair[0] != pair[1]}
    return len(their_cells) == len(our_cells) and different <= {("1970-01-01", "1969-12-31")}


@meant("A tuple is written in parentheses; Cassandra reads a constant without them as a text form of tuples.")
def _tuple_constant(_statement, theirs, ours):
    return not is_refused(theirs) and bool(re.search(r"(constant .* of|value .* is not of) type frozen<(tuple|u\d)", ours))


@meant("A decimal without digits and a time beyond the day are refused: no driver can read them.")
def _unreadable(_statement, theirs, ours):
    words = r"of type decimal takes at least 5 bytes|of type time lies between 0 and"
    return not is_refused(theirs) and bool(re.search(words, ours))


@meant("A storage-attached index may lie on blobs, too.")
def _index_on_blobs(statement, theirs, _ours):
    return statement.startswith("CREATE CUSTOM INDEX") and "Unsupported type: blob" in theirs


@meant("Durations lie in no index, at no depth.")
def _index_on_durations(statement, _theirs, ours):
    return "CREATE" in statement and "containing durations" in ours


@meant("A clustering column in descending order has its own type; Cassandra takes it for none of collections.")
def _descending_collection(_statement, theirs, ours):
    words = r"on non-(map|collection) column c\d|requires an? [\w ]+ argument, but found argument c\d"
    return not is_refused(ours) and bool(re.search(words, theirs))


@meant("A blob is no tinyint.")
def _blob_of_tinyint(_statement, theirs, ours):
    return not is_refused(theirs) and "Invalid HEX constant" in ours and "of type tinyint" in ours


@meant("Of a row that is not there a refused condition shows nothing, or nulls; the databases differ in when.")
def _no_row_shown(statement, theirs, ours):
    if " IF " not in statement or is_refused(theirs) or is_refused(ours):
        return False
    rows = [_cells(answer)[-1] for answer in (theirs, ours)]
    columns = [_columns(answer) for answer in (theirs, ours)]
    return any(row == ["false"] for row in rows) and all(
        cell == "null"
        for row, names in zip(rows, columns)
        for cell, name in zip(row, names)
        if name[0] in "cv"
    )


@meant("CONTAINS looks into frozen collections, also beside a storage-attached index, where Cassandra finds nothing.")
def _contains_beside_index(statement, theirs, ours):
    rows = [line for line in theirs.split("columns of ")[-1].split("\n")[1:]]
    is_filter = " CONTAINS " in statement and "ALLOW FILTERING" in statement
    return is_filter and not is_refused(theirs) and not is_refused(ours) and not rows


@meant("A decimal is cast to a varint with all its digits; Cassandra keeps 64 bits.")
def _decimal_as_varint(statement, theirs, ours):
    cast = {at for at, text in enumerate(_columns(theirs)) if "as varint)" in text or re.match(r"a\d ", text)}
    return "AS varint" in statement and _same_but(theirs, ours, cast)


@meant("A vector that is indexed has finite elements.")
def _infinite_vector(_statement, theirs, ours):
    return not is_refused(theirs) and "must be finite numbers" in ours


@meant("Rows with an empty value are found beside a storage-attached index, too, where Cassandra finds none.")
def _empty_beside_index(statement, theirs, ours):
    rows = theirs.split("columns of ")[-1].split("\n")[1:]
    is_filter = re.search(r"IN \(''|= ''", statement) and "ALLOW FILTERING" in statement
    return bool(is_filter) and not is_refused(theirs) and not is_refused(ours) and not rows


@meant("An index on vectors of one dimension may measure the cosine.")
def _one_dimension(statement, theirs, _ours):
    return statement.startswith("CREATE CUSTOM INDEX") and "single-dimension vectors" in theirs


@meant("The row that stands in the way of a condition is shown with its static columns; Cassandra leaves them out.")
def _static_shown(statement, theirs, ours):
    if " IF " not in statement or "[applied]" not in theirs:
        return False
    # An INSERT of static columns alone meets whichever row the partition has first.
    hidden = "sc" if "IF NOT EXISTS" in statement and "c0" not in statement.partition(" VALUES ")[0] else "s"
    statics = {at for at, text in enumerate(_columns(theirs)) if text[0] in hidden}
    return bool(statics) and _same_but(theirs, ours, statics)
