"""Cells and names of columns that are meant to differ, each with its reason.

Answers of one form are compared cell by cell. So several of these may stand in one answer, and all
else of it has to be equal."""

import dataclasses
import re
import uuid

HEADER = re.compile(r"^(columns|prepared columns|variables)\b.*?: ")
LEGACY = "custom 'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'"
HEADERS, CELLS = [], []


@dataclasses.dataclass
class Cell:
    """Two values that differ, below the columns (name and type) `their_column` and `our_column`."""

    statement: str
    their_column: str
    our_column: str
    theirs: str
    ours: str

    def may_be_of(self, word):
        """Whether the column is of a selector with this in it; an alias may be of any selector."""
        return word in self.our_column or bool(re.match(r"a\d ", self.our_column)) and word in self.statement.lower()


def header(reason):
    """A rule that brings two names into one form: (statement, their name, our name) to both."""
    return lambda rule: HEADERS.append((reason, rule)) or rule


def cell(reason):
    """A rule that tells whether a `Cell` is meant to differ."""
    return lambda rule: CELLS.append((reason, rule)) or rule


def reasons(statement, theirs, ours):
    """Why two different answers are meant to differ: a reason for each cell. None if one has none."""
    found, their_columns, our_columns = [], [], []
    their_lines, our_lines = theirs.split("\n"), ours.split("\n")
    if len(their_lines) != len(our_lines):
        return None
    for their, our in zip(their_lines, our_lines):
        their_parts, our_parts = (HEADER.sub("", line).split(" | ") for line in (their, our))
        is_header = bool(HEADER.match(our))
        if is_header:
            their_columns, our_columns = their_parts, our_parts
            parts = [_header_reason(statement, *pair) for pair in zip(their_parts, our_parts)]
        else:
            cells = zip(their_columns, our_columns, their_parts, our_parts)
            parts = [_cell_reason(Cell(statement, *each)) for each in cells]
        if their == our:
            continue
        if len(their_parts) != len(our_parts) or len(parts) != len(our_parts) or None in parts:
            return None
        found += [reason for reason in parts if reason]
    return found


def _header_reason(statement, their, our):
    """A reason; empty if the names are equal, None if there is no reason."""
    for reason, rule in HEADERS:
        if their == our:
            return ""
        their, our = rule(statement, their, our)
        if their == our:
            return reason
    return None


def _cell_reason(each):
    if each.theirs == each.ours:
        return ""
    return next((reason for reason, rule in CELLS if rule(each)), None)


@header("A function of timeuuids has the type timeuuid; Cassandra names a class that drivers do not know.")
def _legacy_type(_statement, their, our):
    return their.replace(LEGACY, "timeuuid"), our


@header("A cast of a column to its own type has the column's name, in descending order, too.")
def _cast_name(_statement, their, our):
    # Only where our name has no cast.
    return their if "cast(" in our else re.sub(r"^cast\((c\d) as \w+\) ", r"\1 ", their), our


@header("The fields of a literal in a column's name stand as they were written; Cassandra's stand as in a hash.")
def _named_fields(_statement, their, our):
    return ["".join(sorted(name)) if "{f" in name else name for name in (their, our)]


@cell("A function of timeuuids has the type timeuuid; Cassandra names a class that drivers do not know.")
def _legacy_value(each):
    if LEGACY not in each.their_column or not each.theirs.startswith(("b'", 'b"')):
        return False
    return str(uuid.UUID(bytes=eval(each.theirs, {}))) == each.ours


@cell("A duration of nothing has a text that can be read again, 0s; Cassandra's is empty.")
def _no_duration(each):
    return "0s" in each.ours and re.sub(r"\b0s\b", "", each.ours) == each.theirs


@cell("Masks count characters; Cassandra cuts those beyond the first plane in two.")
def _masked(each):
    return each.may_be_of("mask_") and "?" in each.theirs and each.theirs.replace("?", "") == each.ours.replace("?", "")


@cell("A moment before 1970 lies on its own day; Cassandra gives the next one.")
def _day_before_1970(each):
    is_day = each.may_be_of("todate") or each.may_be_of("as date")
    return is_day and (each.theirs, each.ours) == ("1970-01-01", "1969-12-31")


@cell("A decimal is cast to a varint with all its digits; Cassandra keeps 64 bits.")
def _decimal_as_varint(each):
    if not each.may_be_of("as varint") or not re.fullmatch(r"-?\d+", each.ours):
        return False
    kept = (int(each.ours) + 2**63) % 2**64 - 2**63
    return abs(int(each.ours)) >= 2**63 and each.theirs == str(kept)


@cell("The row that stands in the way of a condition is shown with its static columns; Cassandra leaves them out.")
def _static_shown(each):
    return " IF " in each.statement and each.our_column.startswith("s") and each.theirs == "null"


@cell("A write of static columns alone meets the first row of its partition; Cassandra passes over some rows.")
def _first_row(each):
    is_of_statics = " IF " in each.statement and not re.search(r"\bc0\b", each.statement)
    return is_of_statics and each.our_column.startswith("c")
