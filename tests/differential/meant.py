"""The differences between Annulus and Cassandra that are meant, each with its reason.

A rule looks at a `Case`, never at the seed. Cells that differ, and names of columns, have their
rules in cells.py. `tests/compat/differences.txt` and docs/cql.md tell the same differences by
example."""

import dataclasses
import re

import cells
from compare import what_counts
from sides import is_refused, statement_of

ROUTE = re.compile(r"^partition key from variables [\d, ]+\n", re.MULTILINE)
RULES = []


@dataclasses.dataclass
class Case:
    """Two different answers to a statement. `before` are the steps of the story up to it."""

    statement: str
    theirs: str
    ours: str
    before: list

    def their_error(self, code, words=""):
        return _is_error(self.theirs, code, words)

    def our_error(self, code, words=""):
        return _is_error(self.ours, code, words)

    def is_taken_by_cassandra_alone(self):
        return not is_refused(self.theirs) and is_refused(self.ours)

    def is_taken_by_annulus_alone(self):
        return is_refused(self.theirs) and not is_refused(self.ours)


def rows(answer):
    """The lines of an answer's rows."""
    return answer.split("columns of ")[-1].split("\n")[1:]


def _is_error(answer, code, words):
    return bool(re.search(rf"^error {code} .*(?:{words})", answer, re.MULTILINE))


def meant(reason, witness=None):
    """A rule. With a `witness` the long run proves each difference (witnesses.py); such differences
    are not recorded."""
    return lambda rule: RULES.append((reason, rule, witness)) or rule


def reasons_for(step, theirs, ours, before):
    """Why two different answers may be meant to differ: (reason, the witness that has to prove it or
    None) of each rule. An answer may differ in the routing of its statement besides."""
    statement = statement_of(step)
    reason = _routing(statement, theirs, ours)
    if reason:
        theirs, ours = ROUTE.sub("", theirs), ROUTE.sub("", ours)
        if what_counts(theirs) == what_counts(ours):
            return [(reason, None)]
    of_cells = cells.reasons(statement, theirs, ours)
    if of_cells:
        return [(of_cells[0], None)]
    case = Case(statement, theirs, ours, before)
    return [(reason, witness) for reason, rule, witness in RULES if rule(case)]


def _routing(statement, theirs, ours):
    """Why the variables by which a statement is routed differ; None if they do not."""
    if ROUTE.findall(theirs) == ROUTE.findall(ours):
        return None
    if statement.startswith("BEGIN"):
        return "A batch is routed by the first of its statements, Cassandra's by the last."
    is_loose = " IN (" in statement or re.search(r"[<>]=? ?\?|CONTAINS", statement)
    if is_loose and not ROUTE.search(ours):
        return "A statement is routed by variables that are equal to the key, not by one in IN or beside a bound."
    return None


@meant("A bad value is refused with its mistake; Cassandra fails within.")
def _fault_of_value(case):
    fails = case.their_error("0000", r"java\.lang\.|MarshalException") or case.their_error("1[35]00")
    words = r"Invalid (value|\w+ (constant|literal))|no counterpart of type|is not of type"
    return fails and case.our_error("2200", words)


@meant("An index is built beside values of a type that has changed; Cassandra fails within.")
def _fault_of_build(case):
    return " INDEX " in case.statement and case.their_error("1300", "was not built") and not is_refused(case.ours)


@meant("A field of null, or one that a value does not have yet, is null; Cassandra fails within.")
def _fault_of_field(case):
    fails = case.their_error("0000", "ArrayIndexOutOfBoundsException|NullPointerException: .*buffer1")
    return bool(re.search(r" IF .*[sv]\d+\.f\d", case.statement)) and fails and not is_refused(case.ours)


@meant("An empty literal is a map where the column is one; Cassandra takes it for a set in descending order.")
def _fault_of_empty_map(case):
    return "{}" in case.statement and case.their_error("0000", r"ClassCastException: \S* \S*MapType cannot be cast")


@meant("A null in parentheses is no tuple where the column is of a user type; Cassandra fails within.")
def _fault_of_null(case):
    return "(null)" in case.statement and case.their_error("0000", r"ClassCastException: \S* \S*Tuples\$Value cannot")


@meant("A slice whose end lies before its begin has no elements; Cassandra fails within for some.")
def _fault_of_slice(case):
    fails = bool(re.search(r"\b[sv]\d+\[.+\.\..+\]", case.statement)) and case.their_error("1300")
    return fails and not is_refused(case.ours)


@meant("Deleted ranges stand beside limits, groups and counts; Cassandra fails within.", witness="limits")
def _fault_of_ranges(case):
    fails = case.statement.startswith("SELECT") and case.their_error("1300")
    return fails and not is_refused(case.ours) and any("DELETE FROM" in step for step in case.before)


@meant("An empty name is a mistake of the grammar; Cassandra looks for a column of that name first.")
def _empty_name(case):
    return '""' in case.statement and case.their_error("2200") and case.our_error("2000", "a name can't be empty")


@meant("A type that does not exist is named; Cassandra calls it a mistake of the grammar.")
def _unknown_type(case):
    return "cast(" in case.statement and case.their_error("2000") and case.our_error("2200", "Unknown type")


@meant("Bytes behind a duration are refused.")
def _behind_duration(case):
    return case.is_taken_by_cassandra_alone() and case.our_error("2200", "left over after the duration")


@meant("A cast to its own type leaves a value; Cassandra finds none for a clustering column in descending order.")
def _cast_descending(case):
    return case.is_taken_by_annulus_alone() and case.their_error("2200", r"system\.cast_as_\w+")


@meant("A comparison with null is refused also where an earlier condition fails.")
def _null_later(case):
    is_condition = " IF " in case.statement and "\nfalse" in case.theirs
    return is_condition and case.our_error("2200", "Invalid comparison with null")


@meant("An index on vectors serves nearest neighbours of a regular column, and needs a class.")
def _vector_index(case):
    words = r"An index on vectors|Vector indexes are not supported|Unsupported type: .*vector"
    return case.statement.startswith("CREATE") and case.our_error("2200", words)


@meant("A tuple is written in parentheses; Cassandra reads a constant without them as a text form of tuples.")
def _tuple_constant(case):
    words = r"(constant .* of|value .* is not of) type frozen<(tuple|u\d)"
    return case.is_taken_by_cassandra_alone() and case.our_error("2200", words)


@meant("A decimal without digits and a time beyond the day are refused: no driver can read them.")
def _unreadable(case):
    words = r"of type decimal takes at least 5 bytes|of type time lies between 0 and"
    return case.is_taken_by_cassandra_alone() and case.our_error("2200", words)


@meant("A storage-attached index may lie on blobs, too.")
def _index_on_blobs(case):
    is_index = case.statement.startswith("CREATE CUSTOM INDEX") and not is_refused(case.ours)
    return is_index and case.their_error("2200", "Unsupported type: blob")


@meant("Durations lie in no index, at no depth.")
def _index_on_durations(case):
    return case.statement.startswith("CREATE") and case.our_error("2200", "containing durations")


@meant("A clustering column in descending order has its own type; Cassandra takes it for none of collections or vectors.")
def _descending_collection(case):
    words = r"on non-(map|collection) column c\d|requires an? [\w ]+ argument, but found argument c\d"
    return case.their_error("2200", words) and not case.our_error("2200", words)


@meant("A storage-attached index on texts, booleans and UUIDs serves equality; Cassandra's serves bounds in descending order.")
def _descending_bounds(case):
    names = re.findall(r"\b(c\d) [<>]", case.statement)
    serves = any(re.search(rf"^CREATE CUSTOM INDEX \w+ ON t \({name}\)", step) for name in names for step in case.before)
    return serves and case.is_taken_by_cassandra_alone() and case.our_error("2200", "use ALLOW FILTERING")


@meant("A collection of fewer than no elements is refused.")
def _negative_count(case):
    return case.is_taken_by_cassandra_alone() and case.our_error("2200", r"says it has -\d+ elements")


@meant("A blob is no tinyint.")
def _blob_of_tinyint(case):
    return case.is_taken_by_cassandra_alone() and case.our_error("2200", "Invalid HEX constant .* of type tinyint")


@meant("A type is in use within a vector, too; Cassandra drops it.")
def _type_in_vector(case):
    is_used = any(re.search(r"vector<(frozen<)?u\d", step) for step in case.before)
    is_drop = case.statement.startswith("DROP TYPE") and is_used and case.is_taken_by_cassandra_alone()
    return is_drop and case.our_error("2200", "it is still used by tables")


@meant("A write of static columns alone meets the first row of its partition; Cassandra passes over some rows.")
def _first_row(case):
    is_of_statics = " IF " in case.statement and not re.search(r"\bc0\b", case.statement)
    return is_of_statics and rows(case.theirs) == ["false"] and [row[:5] for row in rows(case.ours)] == ["false"]


@meant("An index does not change what a query finds; Cassandra's hide rows and have other orders.", witness="indexes")
def _beside_index(case):
    is_read = case.statement.startswith("SELECT") and any(" INDEX " in step for step in case.before)
    return is_read and not is_refused(case.theirs) and not is_refused(case.ours)


@meant("A limit counts the rows that are found; Cassandra's ends before some.", witness="limits")
def _limited(case):
    is_read = case.statement.startswith("SELECT") and " LIMIT " in case.statement
    return is_read and not is_refused(case.theirs) and not is_refused(case.ours)


@meant("A vector of large numbers is indexed; Cassandra fails within.")
def _fault_of_vector(case):
    is_indexed = any(step.startswith("CREATE CUSTOM INDEX") for step in case.before)
    has_vector = any("vector<float" in step for step in case.before)
    return is_indexed and has_vector and case.their_error("1500") and not is_refused(case.ours)


@meant("A sum that does not fit its type is an error; Cassandra's wraps round.")
def _sum_beyond(case):
    is_sum = re.search(r"\bsum\(", case.statement)
    return bool(is_sum) and case.is_taken_by_cassandra_alone() and case.our_error("2200", "the sum is out of range of type")


@meant("A collection may be searched for a vector; Cassandra fails within.")
def _contains_vector(case):
    has_vectors = any(re.search(r"(list|set|map)<[^ ]*vector<", step) for step in case.before)
    is_search = has_vectors and " CONTAINS " in case.statement
    return is_search and case.their_error("1300") and not is_refused(case.ours)


@meant("A vector that is indexed has finite elements.")
def _infinite_vector(case):
    return case.is_taken_by_cassandra_alone() and case.our_error("2200", "must be finite numbers")


@meant("An index on vectors of one dimension may measure the cosine.")
def _one_dimension(case):
    is_index = case.statement.startswith("CREATE CUSTOM INDEX") and not is_refused(case.ours)
    return is_index and case.their_error("2200", "single-dimension vectors")
